package asg

import (
	"sort"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg/policy"
	"github.com/weir-gitops/weir/reconciler/awsemu/asg/schedule"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// The lifecycle states that members of a group pass through, but for those of hooks.
const (
	memberPending     = "Pending"
	memberInService   = "InService"
	memberStandby     = "Standby"
	memberTerminating = "Terminating"
)

const (
	healthy   = "Healthy"
	unhealthy = "Unhealthy"
)

// Group is an Auto Scaling group.
type Group struct {
	Name    string
	ARN     string
	UUID    string
	Created time.Time

	Config             GroupConfig
	Min, Max, Desired  int64
	Zones              []string
	Subnets            []string // empty: default subnets of the zones
	Cooldown           int64    // seconds
	Grace              int64    // seconds
	HealthType         string
	Policies           []string // termination policies
	PlacementGroup     string
	Protect            bool
	Rebalance          *bool
	LinkedRole         string
	MaxLifetime        *int64 // seconds
	Context            string
	CapacityType       string
	Warmup             *int64 // seconds
	DeletionProtection string
	Maintenance        wire.Data
	ZoneDistribution   wire.Data
	Impairment         wire.Data
	Reservation        wire.Data
	LifecyclePolicy    wire.Data
	Tags               []GroupTag // by key
	TargetGroups       []string
	OtherSources       []trafficSource // traffic sources that are no target groups
	Metrics            []string        // that are sent to CloudWatch, sorted
	Hooks              world.Table[*Hook]
	Schedule           world.Table[*schedule.Action] // by name
	Scaling            world.Table[*policy.Policy]   // by name
	Notifications      world.Table[[]string]         // types by topic
	Warm               *WarmPool
	Suspended          []suspension // by name
	Members            []*Member    // in launch order
	WarmMembers        []*Member    // of the warm pool, in launch order
	Activities         []*activity  // oldest first
	Refreshes          []*refresh   // oldest first
	Deleting           bool
	ManagedBy          string // "eks" for the group of a nodegroup
	Surge              int64  // instances beyond Desired while members are replaced
	Launched           int64  // members launched so far
	Scheduled          bool   // a scale timer is set
	Cause              string // why the capacity was last changed
	LastScaled         time.Time
	Failures           int64     // launches that failed in a row
	FailuresTotal      int64     // launches that failed so far
	LastFailure        string    // what EC2 said of the last one
	RetryAt            time.Time // no launch before it
}

// GroupTag is a tag of a group.
type GroupTag struct {
	Key, Value string
	Propagate  bool
}

// trafficSource is a source of traffic to a group's members.
type trafficSource struct {
	Identifier, Type string
}

// suspension is a suspended process.
type suspension struct {
	Process, Reason string
}

// Member is an instance of a group.
type Member struct {
	ID           string
	Type         string
	Zone         string
	SubnetID     string
	ImageID      string
	OwnImage     bool // the image is an override's
	Lifecycle    string
	Health       string
	Template     TemplateSpec // as it was launched from
	Override     bool         // a type or template of the mixed instances policy
	Weight       string
	Units        int64 // its part of the desired capacity
	Spot         bool
	Protected    bool
	LaunchConfig string // as it was launched from, "" for none
	Seq          int64  // rises with each launch in the group
	Volume       string `json:",omitempty"` // the refresh that gave it its root volume

	Served   time.Time         // when it last went into service
	Attached bool              // it was launched by somebody else
	Told     bool              // its health was set by a call
	Spared   time.Time         // it is not replaced before
	Actions  []lifecycleAction // that it waits for
}

// key names the group in timers: the UUID distinguishes it from a namesake.
func (g *Group) key() string { return g.UUID + "/" + g.Name }

// groupByKey finds the group of a timer's key, nil where it is gone.
func (r *Region) groupByKey(key string) *Group {
	uuid, name, _ := strings.Cut(key, "/")
	if g := r.Groups.Get(name); g != nil && g.UUID == uuid {
		return g
	}
	return nil
}

// owner is the owner of the group's instances.
func (g *Group) owner() string { return ownerPrefix + g.Name }

// ownerPrefix stands before the group's name in what EC2 keeps as an instance's owner.
const ownerPrefix = "asg:"

// tagGroupName is the tag that members of groups have.
const tagGroupName = "aws:autoscaling:groupName"

// findGroup finds a group by name, with Auto Scaling's fault.
func (r *Region) findGroup(name string) (*Group, error) {
	if g := r.Groups.Get(name); g != nil {
		return g, nil
	}
	return nil, invalid("AutoScalingGroup name not found - AutoScalingGroup %s not found", name)
}

// changeableGroup finds a group that is not being deleted.
func (r *Region) changeableGroup(name string) (*Group, error) {
	g, err := r.findGroup(name)
	if err != nil {
		return nil, err
	}
	if g.Deleting {
		return nil, wire.Fail("ScalingActivityInProgress", "AutoScalingGroup %s is pending delete", name)
	}
	return g, nil
}

// Member finds a member by instance id, nil for none.
func (g *Group) Member(id string) *Member {
	for _, m := range g.Members {
		if m.ID == id {
			return m
		}
	}
	return nil
}

func (g *Group) removeMember(id string) {
	for i, m := range g.Members {
		if m.ID == id {
			g.Members = append(g.Members[:i], g.Members[i+1:]...)
			return
		}
	}
}

// Active says whether a member counts: it is neither on its way out nor in standby.
func (m *Member) Active() bool {
	return m.Lifecycle != memberStandby && m.Lifecycle != memberRetained && !m.ends()
}

// ends says whether a member is on its way out.
func (m *Member) ends() bool {
	return strings.HasPrefix(m.Lifecycle, memberTerminating) && m.Lifecycle != memberRetained
}

// capacity is the sum of the active members' parts.
func (g *Group) capacity() int64 {
	n := int64(0)
	for _, m := range g.Members {
		if m.Active() {
			n += m.Units
		}
	}
	return n
}

// Steady says whether all active members are in service and as many as wanted.
func (g *Group) Steady() bool {
	n := int64(0)
	for _, m := range g.Members {
		switch {
		case strings.HasPrefix(m.Lifecycle, memberPending), m.Active() && m.Health != healthy:
			return false
		case m.Active():
			n += m.Units
		}
	}
	return n >= g.Desired+g.Surge
}

// suspended says whether a process is suspended.
func (g *Group) suspended(process string) bool {
	for _, s := range g.Suspended {
		if s.Process == process {
			return true
		}
	}
	return false
}

// tagIndex finds the index of a tag.
func (g *Group) tagIndex(key string) (int, bool) {
	i := sort.Search(len(g.Tags), func(i int) bool { return g.Tags[i].Key >= key })
	return i, i < len(g.Tags) && g.Tags[i].Key == key
}

// SetTag adds a tag or changes it.
func (g *Group) SetTag(t GroupTag) {
	i, ok := g.tagIndex(t.Key)
	if ok {
		g.Tags[i] = t
		return
	}
	g.Tags = append(g.Tags, GroupTag{})
	copy(g.Tags[i+1:], g.Tags[i:])
	g.Tags[i] = t
}

// memberTags are the tags that a new member gets.
func (g *Group) memberTags() world.Tags {
	ts := make(world.Tags, 0, len(g.Tags)+1)
	for _, t := range g.Tags {
		if t.Propagate {
			ts.Set(t.Key, t.Value)
		}
	}
	ts.Set(tagGroupName, g.Name)
	return ts
}

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

// The lifecycle states of members, except the states of hooks.
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
	OtherSources       []trafficSource // traffic sources other than target groups
	Metrics            []string        // sent to CloudWatch, sorted
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
	Cause              string // reason of the last capacity change
	LastScaled         time.Time
	Failures           int64     // launches that failed in a row
	FailuresTotal      int64     // launches that failed so far
	LastFailure        string    // EC2's message about the last one
	RetryAt            time.Time // earliest time of the next launch
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
	OwnImage     bool // an override's image
	Lifecycle    string
	Health       string
	Template     TemplateSpec // at its launch
	Override     bool         // from an override of the mixed instances policy
	Weight       string
	Units        int64 // its part of the desired capacity
	Spot         bool
	Protected    bool
	LaunchConfig string // at its launch, "" for none
	Seq          int64  // increases with each launch in the group
	Volume       string `json:",omitempty"` // the refresh that replaced its root volume

	Served   time.Time         // when it last came into service
	Attached bool              // not launched by the group
	Told     bool              // a call set its health
	Spared   time.Time         // earliest time of its replacement
	Actions  []lifecycleAction // actions that it waits for
}

// key identifies the group in timers. The UUID distinguishes it from another group of its name.
func (g *Group) key() string { return g.UUID + "/" + g.Name }

// groupByKey finds the group of a timer's key. It returns nil if the group is gone.
func (r *Region) groupByKey(key string) *Group {
	uuid, name, _ := strings.Cut(key, "/")
	if g := r.Groups.Get(name); g != nil && g.UUID == uuid {
		return g
	}
	return nil
}

// owner returns the owner of the group's instances, for EC2.
func (g *Group) owner() string { return ownerPrefix + g.Name }

// ownerPrefix is the prefix of the group's name in an instance's owner.
const ownerPrefix = "asg:"

// tagGroupName is the tag with the group's name on its members.
const tagGroupName = "aws:autoscaling:groupName"

// findGroup finds a group by name, or returns Auto Scaling's error.
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

// Member finds a member by instance id, or returns nil.
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

// Active reports whether a member counts: it is neither ending nor in standby.
func (m *Member) Active() bool {
	return m.Lifecycle != memberStandby && m.Lifecycle != memberRetained && !m.ends()
}

// ends reports whether a member is ending.
func (m *Member) ends() bool {
	return strings.HasPrefix(m.Lifecycle, memberTerminating) && m.Lifecycle != memberRetained
}

// capacity returns the sum of the active members' units.
func (g *Group) capacity() int64 {
	n := int64(0)
	for _, m := range g.Members {
		if m.Active() {
			n += m.Units
		}
	}
	return n
}

// Steady reports whether the wanted number of members is in service.
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

// suspended reports whether a process is suspended.
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

// memberTags returns the tags of a new member.
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

package awsemu

import (
	"sort"
	"strings"
	"time"
)

// The lifecycle states that members of a group pass through. Lifecycle hooks do
// not hold a member up, save by a HookFault: the emulator plays a listener that
// answers CONTINUE at once.
const (
	memberPending     = "Pending"
	memberWaiting     = "Pending:Wait"
	memberInService   = "InService"
	memberTerminating = "Terminating"
)

const (
	healthy   = "Healthy"
	unhealthy = "Unhealthy"
)

// asgGroup is an Auto Scaling group.
type asgGroup struct {
	Name    string
	ARN     string
	UUID    string
	Created time.Time

	Config             groupConfig
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
	Maintenance        ltData
	ZoneDistribution   ltData
	Impairment         ltData
	Reservation        ltData
	LifecyclePolicy    ltData
	Tags               []groupTag // by key
	TargetGroups       []string
	OtherSources       []trafficSource // traffic sources that are no target groups
	Metrics            []string        // that are sent to CloudWatch, sorted
	Hooks              table[*hook]
	Warm               *warmPool
	Suspended          []suspension // by name
	Members            []*member    // in launch order
	WarmMembers        []*member    // of the warm pool, in launch order
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

// groupTag is a tag of a group.
type groupTag struct {
	Key, Value string
	Propagate  bool
}

// trafficSource is where a group's members receive traffic from.
type trafficSource struct {
	Identifier, Type string
}

// suspension is a suspended process.
type suspension struct {
	Process, Reason string
}

// member is an instance of a group.
type member struct {
	ID        string
	Type      string
	Zone      string
	SubnetID  string
	ImageID   string
	OwnImage  bool // the image is an override's
	Lifecycle string
	Health    string
	Template  ltSpec // as it was launched from
	Override  bool   // a type or template of the mixed instances policy
	Weight    string
	Units     int64 // what it counts for against the desired capacity
	Spot      bool
	Protected bool
	Seq       int64 // rises with each launch in the group
}

// key names the group in timers: the UUID tells it from a namesake.
func (g *asgGroup) key() string { return g.UUID + "/" + g.Name }

// groupByKey finds the group of a timer's key, nil where it is gone.
func (r *region) groupByKey(key string) *asgGroup {
	uuid, name, _ := strings.Cut(key, "/")
	if g := r.AutoScaling.Groups.get(name); g != nil && g.UUID == uuid {
		return g
	}
	return nil
}

// owner is the owner of the group's instances.
func (g *asgGroup) owner() string { return "asg:" + g.Name }

// findGroup finds a group by name, with Auto Scaling's fault.
func (r *region) findGroup(name string) (*asgGroup, error) {
	if g := r.AutoScaling.Groups.get(name); g != nil {
		return g, nil
	}
	return nil, fail("ValidationError", "AutoScalingGroup name not found - AutoScalingGroup %s not found", name)
}

// changeableGroup finds a group that is not being deleted.
func (r *region) changeableGroup(name string) (*asgGroup, error) {
	g, err := r.findGroup(name)
	if err != nil {
		return nil, err
	}
	if g.Deleting {
		return nil, fail("ScalingActivityInProgress", "AutoScalingGroup %s is pending delete", name)
	}
	return g, nil
}

// member finds a member by instance id, nil where there is none.
func (g *asgGroup) member(id string) *member {
	for _, m := range g.Members {
		if m.ID == id {
			return m
		}
	}
	return nil
}

func (g *asgGroup) removeMember(id string) {
	for i, m := range g.Members {
		if m.ID == id {
			g.Members = append(g.Members[:i], g.Members[i+1:]...)
			return
		}
	}
}

// active says whether a member counts: it is not on its way out.
func (m *member) active() bool {
	return m.Lifecycle != memberTerminating && m.Lifecycle != memberRetained
}

// capacity is the sum of what active members count for.
func (g *asgGroup) capacity() int64 {
	n := int64(0)
	for _, m := range g.Members {
		if m.active() {
			n += m.Units
		}
	}
	return n
}

// settled says whether all active members are in service and as many as wanted.
func (g *asgGroup) settled() bool {
	n := int64(0)
	for _, m := range g.Members {
		switch {
		case m.Lifecycle == memberPending, m.Lifecycle == memberWaiting, m.active() && m.Health != healthy:
			return false
		case m.active():
			n += m.Units
		}
	}
	return n >= g.Desired+g.Surge
}

// suspended says whether a process is suspended.
func (g *asgGroup) suspended(process string) bool {
	for _, s := range g.Suspended {
		if s.Process == process {
			return true
		}
	}
	return false
}

// tagIndex finds a tag's place.
func (g *asgGroup) tagIndex(key string) (int, bool) {
	i := sort.Search(len(g.Tags), func(i int) bool { return g.Tags[i].Key >= key })
	return i, i < len(g.Tags) && g.Tags[i].Key == key
}

// setTag adds a tag or changes it.
func (g *asgGroup) setTag(t groupTag) {
	i, ok := g.tagIndex(t.Key)
	if ok {
		g.Tags[i] = t
		return
	}
	g.Tags = append(g.Tags, groupTag{})
	copy(g.Tags[i+1:], g.Tags[i:])
	g.Tags[i] = t
}

// memberTags are the tags that a new member gets.
func (g *asgGroup) memberTags() tags {
	ts := make(tags, 0, len(g.Tags)+1)
	for _, t := range g.Tags {
		if t.Propagate {
			ts.set(t.Key, t.Value)
		}
	}
	ts.set("aws:autoscaling:groupName", g.Name)
	return ts
}

// nameOf is the name of a group in a request.
func nameOf(p *params) string { return p.text("AutoScalingGroupName") }

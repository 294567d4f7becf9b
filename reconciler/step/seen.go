package step

import (
	"maps"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Seen holds the facts that the end of a resource or of machines rests on: which one it
// was, and whose it said to be. It is read once more right before the request, because
// names are used again, and another may have taken the resource over since the pass
// observed it.
type Seen struct {
	Resource Resource
	// Name is a group's or nodegroup's, within Cluster; ID is a launch template's,
	// which AWS gives once.
	Name, Cluster, ID string
	// ARN and CreatedAt tell a group or nodegroup from a later one of its name.
	ARN       string
	CreatedAt time.Time
	// Tags are those that say whose it is, and whether it may go.
	Tags map[string]string
	// Moments says that it need not be read again within moments of the pass's look:
	// machines come back, and a fleet that rolls has no calls to spare.
	Moments bool
	// Made says that weir made it a moment ago: only whose it is can be compared.
	Made bool
}

// whose lists the ownership tags: if one is missing or has another value, nothing is deleted.
var whose = []string{observed.TagOwner, observed.TagSource, observed.TagTarget, observed.TagPool, observed.TagLaunchConfig, observed.TagPrune}

func whoseTags(tags map[string]string) map[string]string {
	out := make(map[string]string, len(whose))
	for _, k := range whose {
		if v, ok := tags[k]; ok {
			out[k] = v
		}
	}
	return out
}

// SeenGroup holds the facts of a group that weir must see again.
func SeenGroup(g observed.Group) *Seen {
	return &Seen{Resource: AutoScalingGroup, Name: g.Name, ARN: g.ARN, CreatedAt: g.CreatedAt, Tags: whoseTags(observed.GroupTagValues(g.Tags))}
}

// SeenNodegroup holds the facts of a nodegroup that weir must see again.
func SeenNodegroup(n observed.Nodegroup) *Seen {
	return &Seen{Resource: ManagedNodegroup, Name: n.Name, Cluster: n.Cluster, ARN: n.ARN, CreatedAt: n.CreatedAt, Tags: whoseTags(n.Tags)}
}

// SeenTemplate holds the facts of a launch template that weir must see again.
func SeenTemplate(t observed.Template) *Seen {
	return &Seen{Resource: LaunchTemplate, Name: t.Name, ID: t.ID, Tags: whoseTags(t.Tags)}
}

// Made returns the facts that weir must see of a resource that the same plan made; nil if an action
// is about none.
func (a About) Made(owner string) *Seen {
	seen := &Seen{Moments: true, Made: true, Tags: map[string]string{observed.TagOwner: owner}}
	switch {
	case a.Group != "":
		seen.Resource, seen.Name = AutoScalingGroup, a.Group
	case a.Nodegroup.Name != "":
		seen.Resource, seen.Name, seen.Cluster = ManagedNodegroup, a.Nodegroup.Name, a.Nodegroup.Cluster
	case a.Template.ID != "":
		seen.Resource, seen.Name, seen.ID = LaunchTemplate, a.Template.Name, a.Template.ID
	default:
		return nil
	}
	return seen
}

// ToRoll returns the facts that weir must see before machines are replaced or ended, which is after
// a step of the same plan has changed these tags.
func (s *Seen) ToRoll(put map[string]string, remove []string) *Seen {
	s.Moments = true
	for _, k := range remove {
		delete(s.Tags, k)
	}
	maps.Copy(s.Tags, whoseTags(put))
	return s
}

// Differs says how the present resource differs, "" if it does not.
func (s *Seen) Differs(now *Seen) string {
	if was, is := s.Tags[observed.TagOwner], now.Tags[observed.TagOwner]; s.Made {
		if was == is {
			return ""
		}
		return "its tag " + observed.TagOwner + " is " + observed.Quote(is) + ", not " + observed.Quote(was)
	}
	switch {
	case now.ID != s.ID || now.ARN != s.ARN || !now.CreatedAt.Equal(s.CreatedAt):
		return "it is another one of the same name"
	}
	for _, k := range whose {
		if was, is := s.Tags[k], now.Tags[k]; was != is {
			return "its tag " + k + " was " + observed.Quote(was) + " and is now " + observed.Quote(is)
		}
	}
	return ""
}

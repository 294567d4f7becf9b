package step

import (
	"maps"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Seen contains the identity and the owner tags of a resource on which a step relies. weir reads
// them again right before the request, because names are reused, and somebody else may have adopted
// the resource since the pass observed it.
type Seen struct {
	Resource Resource
	// Name is the name of the group or nodegroup, the latter within Cluster. ID is the id of a
	// launch template, which AWS never reuses.
	Name, Cluster, ID string
	// ARN and CreatedAt distinguish a group or nodegroup from a later one with the same name.
	ARN       string
	CreatedAt time.Time
	// Tags contains the tags that identify the owner, and the tag that forbids pruning.
	Tags map[string]string
	// Moments is set if the pass's own observation is enough for a few moments. The machines of
	// such a step are replaced, and a rollout of a fleet has no calls to spare.
	Moments bool
	// Made is set if the same plan made the resource. Only the owner can then be compared.
	Made bool
}

// whose lists the ownership tags. If one is missing or has another value, weir does not change the
// resource.
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

// SeenGroup returns the facts of a group that must still be true.
func SeenGroup(g observed.Group) *Seen {
	return &Seen{Resource: AutoScalingGroup, Name: g.Name, ARN: g.ARN, CreatedAt: g.CreatedAt, Tags: whoseTags(observed.GroupTagValues(g.Tags))}
}

// SeenNodegroup returns the facts of a nodegroup that must still be true.
func SeenNodegroup(n observed.Nodegroup) *Seen {
	return &Seen{Resource: ManagedNodegroup, Name: n.Name, Cluster: n.Cluster, ARN: n.ARN, CreatedAt: n.CreatedAt, Tags: whoseTags(n.Tags)}
}

// SeenTemplate returns the facts of a launch template that must still be true.
func SeenTemplate(t observed.Template) *Seen {
	return &Seen{Resource: LaunchTemplate, Name: t.Name, ID: t.ID, Tags: whoseTags(t.Tags)}
}

// Made returns the facts that must be true for a resource that the same plan made. It is nil if the
// action concerns no such resource.
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

// ToRoll returns the facts that must be true before machines are replaced or ended, after a step of
// the same plan has changed these tags.
func (s *Seen) ToRoll(put map[string]string, remove []string) *Seen {
	s.Moments = true
	for _, k := range remove {
		delete(s.Tags, k)
	}
	maps.Copy(s.Tags, whoseTags(put))
	return s
}

// Differs describes how the present resource differs, "" if it does not.
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

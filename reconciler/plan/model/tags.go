package model

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

const tagKubernetesCluster = "kubernetes.io/cluster/"

const DeleteDrain = "drain"

// putOwnTags adds the tags that mark a resource as a pool's of this target.
func (p Policy) putOwnTags(tags map[string]string, pool *intent.Pool) {
	tags[observed.TagOwner], tags[observed.TagTarget], tags[observed.TagSource], tags[observed.TagPool] = p.Instance, p.Target, p.Source, pool.Key.String()
	if pool.PruneDisabled {
		tags[observed.TagPrune] = "disabled"
	}
}

// Ownership gives the owner of a resource, according to its tags.
type Ownership struct {
	Ours bool
	// Why explains whose the resource is if it is not ours.
	Why string
	// remedy describes what a person can do, if there is more advice than to rename the pool.
	remedy string
}

// Owns decides whether weir may change a resource with these tags for this target. A resource of
// another target of the instance is ours as well, and weir changes its tags, unless that target
// still wants it or may want it. whole reports whether every target of the account and region
// rendered completely.
func (p Policy) Owns(tags map[string]string, wantedBy string, whole bool) Ownership {
	return ownership(p, tags, valueItself, wantedBy, whole)
}

// valueItself returns the value of a tag that is a plain string.
func valueItself(v string) string { return v }

func valueOfGroup(t observed.GroupTag) string { return t.Value }

// ownership decides by tags whether a target may change a resource, and explains why not. wantedBy
// is the target that wants the resource, "" if none does. whole is set if all targets render
// completely.
func ownership[T any](p Policy, tags map[string]T, value func(T) string, wantedBy string, whole bool) Ownership {
	_, hasOwner := tags[observed.TagOwner]
	owner, source, target := value(tags[observed.TagOwner]), value(tags[observed.TagSource]), value(tags[observed.TagTarget])
	switch {
	case !hasOwner && HasCAPATag(tags):
		return Ownership{Why: "it belongs to Cluster API Provider AWS: its tags say so and weir.dev/owner is missing"}
	case !hasOwner:
		return Ownership{Why: "it has no weir.dev/owner tag, so weir did not make it"}
	case owner != p.Instance:
		return Ownership{Why: "it belongs to the weir instance " + observed.Quote(owner)}
	case !slices.Contains(p.Sources, source) && source != p.Source:
		return Ownership{Why: "its weir.dev/source tag " + observed.Quote(source) + " names no source of this instance"}
	case target != p.Target && p.OwnTargetOnly:
		return Ownership{Why: "it belongs to the target " + observed.Quote(target)}
	case target != p.Target && p.AccountUnknown[target]:
		return Ownership{Why: "it belongs to the target " + observed.Quote(target) + ", for which weir's configuration names no account and region"}
	case target != p.Target && p.unlisted(target):
		return Ownership{Why: "it belongs to the target " + observed.Quote(target) + ", whose source may be unreadable now, so weir cannot say whether that target still wants it"}
	case target != p.Target && p.Disputed != "":
		return Ownership{Why: "it belongs to the target " + observed.Quote(target) + ", and " + p.Disputed + ": it stays that target's until the configurations agree"}
	case target != p.Target && !whole:
		return Ownership{Why: "it belongs to the target " + observed.Quote(target) + ", and not every target here renders completely, so weir cannot say whether that target still wants it"}
	case target != p.Target && wantedBy != p.Target:
		return Ownership{Why: "the target " + observed.Quote(wantedBy) + " wants it too"}
	}
	return Ownership{Ours: true}
}

// unlisted reports whether a target may belong to a source that cannot be read.
func (p Policy) unlisted(target string) bool {
	return !p.Listed[target] && slices.ContainsFunc(p.Unlisted, func(pattern string) bool {
		fits, _ := path.Match(pattern, target) // names contain no special character of patterns
		return fits
	})
}

func HasCAPATag[T any](tags map[string]T) bool {
	for k := range tags {
		if strings.HasPrefix(k, observed.TagClusterPrefix) {
			return true
		}
	}
	return false
}

// AllTags returns the tags that a resource of the pool should have: the tags of the manifests,
// weir's own, and the record of the manifests' keys.
func (p Policy) AllTags(pool *intent.Pool, manifest map[string]string) map[string]string {
	out := make(map[string]string, len(manifest)+8) // five of weir's own, and up to three that callers add
	maps.Copy(out, manifest)
	p.putOwnTags(out, pool)
	out[observed.TagKeys] = observed.KeyMarks(manifest)
	return out
}

// MissingTags returns the wanted tags that are missing or have another value in AWS, and the keys
// that weir wrote there and Git no longer wants. All other tags are foreign and stay.
func MissingTags(want, have map[string]string) (put map[string]string, remove []string) {
	return missingTags(want, have, valueItself)
}

// MissingGroupTags is MissingTags for the tags of a group.
func MissingGroupTags(want map[string]string, have map[string]observed.GroupTag) (put map[string]string, remove []string) {
	return missingTags(want, have, valueOfGroup)
}

// missingTags returns the tags to set, and the tags to remove: weir's own ones, and those that weir
// set from Git, if they are no longer wanted.
func missingTags[T any](want map[string]string, have map[string]T, value func(T) string) (put map[string]string, remove []string) {
	for k, v := range want {
		if got, ok := have[k]; !ok || value(got) != v {
			if put == nil {
				put = map[string]string{}
			}
			put[k] = v
		}
	}
	marks := value(have[observed.TagKeys])
	for k := range have {
		if _, wanted := want[k]; !wanted && (k == observed.TagPrune || k == observed.TagDelete || k == observed.TagDrainer || k == observed.TagKeep || k == observed.TagPool || k == observed.TagLaunchConfig || observed.Marked(marks, k)) {
			remove = append(remove, k)
		}
	}
	slices.Sort(remove)
	return put, remove
}

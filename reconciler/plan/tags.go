package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// Tag keys that weir puts on what it owns. They stand on templates, groups and
// nodegroups themselves, never in a template's body nor on instances.
const (
	TagOwner  = "weir.dev/owner"
	TagTarget = "weir.dev/target"
	TagSource = "weir.dev/source"
	TagPool   = "weir.dev/pool"
	// TagLaunchConfig stands in place of TagPool on a template that pools share:
	// the AWSLaunchConfig's namespace and name.
	TagLaunchConfig = "weir.dev/launch-config"
	// TagPrune is "disabled" on what must not be deleted when Git drops it.
	TagPrune = "weir.dev/prune"
	// TagKeep is how many earlier versions a template keeps, where that is not
	// DefaultKeepVersions: what the last pruning went by.
	TagKeep = "weir.dev/keep-versions"
	// TagKeys says which keys of the resource weir has put there for Git, in the
	// form of keyMarks: a tag that Git drops is removed, and a tag of somebody
	// else's is left alone, without a record of what was applied.
	TagKeys = "weir.dev/tags"
	// TagCluster names the EKS cluster on the template of a nodegroup, so that
	// the nodegroup is looked for even when Git names the cluster no more.
	TagCluster = "weir.dev/cluster"

	tagCAPARole      = "sigs.k8s.io/cluster-api-provider-aws/role"
	tagNodegroup     = "eks:nodegroup-name"
	tagClusterPrefix = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
)

// ownTags returns the tags that mark a pool's resource as this target's.
func (p Policy) ownTags(pool *intent.Pool) map[string]string {
	tags := map[string]string{
		TagOwner: p.Instance, TagTarget: p.Target, TagSource: p.Source, TagPool: pool.Key.String(),
	}
	if pool.PruneDisabled {
		tags[TagPrune] = "disabled"
	}
	return tags
}

func withTags(base map[string]string, more ...map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	for _, m := range more {
		maps.Copy(out, m)
	}
	return out
}

// ownership is what the tags of a resource say about whose it is.
type ownership struct {
	ours bool
	// why says who has it, where it is not ours.
	why string
	// wayOut says what a person can do about that, where more is known than that
	// the pool may be renamed.
	wayOut string
}

// owns decides whether a resource with these tags may be changed for this
// target. A resource of another target of the instance is ours as well (it is
// retagged), unless that target still wants it, or cannot be asked: whole says
// that every target of the account and region could.
func (p Policy) owns(tags map[string]string, wantedBy string, whole bool) ownership {
	owner, hasOwner := tags[TagOwner]
	switch {
	case !hasOwner && hasCAPATag(tags):
		return ownership{why: "it belongs to Cluster API Provider AWS: its tags say so and weir.dev/owner is missing"}
	case !hasOwner:
		return ownership{why: "it has no weir.dev/owner tag, so weir did not make it"}
	case owner != p.Instance:
		return ownership{why: "it belongs to the weir instance " + quote(owner)}
	case !slices.Contains(p.Sources, tags[TagSource]) && tags[TagSource] != p.Source:
		return ownership{why: "its weir.dev/source tag " + quote(tags[TagSource]) + " is none of this instance's sources"}
	case tags[TagTarget] != p.Target && p.OwnTargetOnly:
		return ownership{why: "it belongs to the target " + quote(tags[TagTarget])}
	case tags[TagTarget] != p.Target && p.Placeless[tags[TagTarget]]:
		return ownership{why: "it belongs to the target " + quote(tags[TagTarget]) + ", of which weir's configuration does not say where it is applied"}
	case tags[TagTarget] != p.Target && !whole:
		return ownership{why: "it belongs to the target " + quote(tags[TagTarget]) + ", and not every target here renders whole, so whether that one still wants it cannot be said"}
	case tags[TagTarget] != p.Target && wantedBy != p.Target:
		return ownership{why: "the target " + quote(wantedBy) + " wants it too"}
	}
	return ownership{ours: true}
}

func hasCAPATag(tags map[string]string) bool {
	for k := range tags {
		if strings.HasPrefix(k, tagClusterPrefix) {
			return true
		}
	}
	return false
}

// allTags are the tags that a resource of the pool should have: those of the
// manifests, weir's own, and the record of which keys those of the manifests are.
func (p Policy) allTags(pool *intent.Pool, manifest map[string]string) map[string]string {
	out := withTags(manifest, p.ownTags(pool))
	out[TagKeys] = keyMarks(manifest)
	return out
}

// missingTags returns the wanted tags that observed lacks or has otherwise, and
// the keys that weir put there and Git wants no more. Other tags that weir does
// not want are foreign and stay.
func missingTags(want, have map[string]string) (put map[string]string, remove []string) {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			if put == nil {
				put = map[string]string{}
			}
			put[k] = v
		}
	}
	marks := have[TagKeys]
	for k := range have {
		if _, wanted := want[k]; !wanted && (k == TagPrune || k == TagDelete || k == TagKeep || k == TagPool || k == TagLaunchConfig || marked(marks, k)) {
			remove = append(remove, k)
		}
	}
	slices.Sort(remove)
	return put, remove
}

func groupTagValues(tags map[string]GroupTag) map[string]string {
	out := make(map[string]string, len(tags))
	for k, t := range tags {
		out[k] = t.Value
	}
	return out
}

func quote(s string) string {
	if s == "" {
		return "(none)"
	}
	return `"` + s + `"`
}

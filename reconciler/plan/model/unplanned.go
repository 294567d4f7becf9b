package model

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Bears reports whether a resource has the pool's name, or a name that derives from its launch
// configuration.
func Bears(u *intent.Unplanned, c Claim, tags map[string]string) bool {
	switch c.Resource {
	case step.ManagedNodegroup:
		return slices.ContainsFunc(u.Nodegroups, func(name string) bool { return StandsFor(c.Name, name) })
	case step.LaunchTemplate:
		if derives(u, tags[observed.TagLaunchConfig]) {
			return true
		}
	}
	return slices.Contains(u.Names, c.Name)
}

// Keeps reports whether an unplanned entry of a target's manifests protects a resource that carries
// the target's tags.
func Keeps(u *intent.Unplanned, c Claim, tags map[string]string) bool {
	pool := tags[observed.TagPool]
	return pool != "" && slices.Contains(u.Pools, pool) || Bears(u, c, tags)
}

// derives reports whether, according to its tag, a launch template derives from a launch
// configuration of the entry.
func derives(u *intent.Unplanned, tag string) bool {
	namespace, name, ok := strings.Cut(tag, "/")
	return ok && slices.ContainsFunc(u.LaunchConfigs, func(ref intent.ObjectRef) bool {
		return ref.Namespace == namespace && (name == ref.Name || strings.HasSuffix(name, "-"+ref.Name+"-group") || strings.HasSuffix(name, "-"+ref.Name+"-nodegroup") || derivesCut(ref.Name, name))
	})
}

// cutName matches a derived name that was too long: its end is replaced by a hash of the whole
// name.
var cutName = lazyregexp.New(`^(.+)-[0-9a-f]{8}$`)

// derivesCut reports whether a truncated derived name may belong to a launch configuration: after a
// cluster's name, it continues with the configuration's name, as far as the shorter of the two
// goes. It may also match another launch configuration, whose template is then kept as well.
func derivesCut(config, name string) bool {
	m := cutName.FindStringSubmatch(name)
	if m == nil || len(name) != intent.MaxTemplateName {
		return false
	}
	for i, c := range m[1] {
		if rest := m[1][i+1:]; c == '-' && (strings.HasPrefix(config+"-", rest) || strings.HasPrefix(rest, config+"-")) {
			return true
		}
	}
	return false
}

// Standing returns the unplanned entry of the manifests that protects one of the target's
// resources, nil for none. Entries of other targets protect it by name only.
func (in Input) Standing(c Claim, tags map[string]string) *intent.Unplanned {
	for i := range in.Unplanned {
		if u := &in.Unplanned[i]; Keeps(u, c, tags) {
			return u
		}
	}
	for i := range in.Fleet.Unplanned {
		if u := &in.Fleet.Unplanned[i]; Bears(u, c, tags) {
			return u
		}
	}
	return nil
}

// Earlier returns the earlier revision to which a pool ("namespace/name") is held, nil if the
// followed revision is planned.
func (in Input) Earlier(pool string) *Fallback {
	if in.Policy.Fallback != nil {
		return in.Policy.Fallback
	}
	return in.Policy.FallbackPools[pool]
}

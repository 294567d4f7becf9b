package group

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// mostEarlier is the number of earlier versions that weir reports for a group.
const mostEarlier = 3

// before is an earlier version of a group.
type before struct {
	template observed.Template
	number   int64
	machines int
	// set reports whether the group is set to it.
	set bool
}

// earlier returns the versions that a group had before the wanted version, most frequent among its
// machines first. The group's own setting is not a reliable source: AWS sets it when a refresh
// succeeds, and all machines may run something else by then. It decides only between equally
// frequent versions, and for a group without machines. groupHasWanted reports whether the group is already
// set to the wanted version. A stopped FleetRollout may return the group to one of the versions.
func (l launching) earlier(groupHasWanted bool) []rollout.Version {
	var all []before
	find := func(ref observed.TemplateRef) *before {
		t := l.templateOf(ref.Name)
		n := model.VersionOf(t, ref)
		if n == 0 {
			return nil // a template that weir does not choose
		}
		i := slices.IndexFunc(all, func(b before) bool { return b.template.ID == t.ID && b.number == n })
		if i < 0 {
			all, i = append(all, before{template: t, number: n}), len(all)
		}
		return &all[i]
	}
	if !groupHasWanted {
		if b := find(l.have.Template); b != nil {
			b.set = true
		}
	}
	for _, i := range l.have.Instances {
		if !i.Counts() || OfOverride(l.have.MixedInstancesPolicy, i) || OfOverride(l.pool.Group.MixedInstancesPolicy, i) {
			continue
		}
		if b := find(i.Template); b != nil {
			b.machines++
		}
	}
	all = slices.DeleteFunc(all, func(b before) bool {
		wanted := l.version.Runs(observed.TemplateRef{ID: b.template.ID, Name: b.template.Name, Version: strconv.FormatInt(b.number, 10)})
		return !b.set && (wanted || b.template.Missing[b.number])
	})
	slices.SortFunc(all, func(a, b before) int {
		if a.machines == b.machines && a.set != b.set {
			return map[bool]int{true: -1, false: 1}[a.set]
		}
		return cmp.Or(cmp.Compare(b.machines, a.machines), cmp.Compare(b.number, a.number), cmp.Compare(a.template.ID, b.template.ID))
	})
	out := make([]rollout.Version, 0, len(all))
	for _, b := range all[:min(len(all), mostEarlier)] {
		out = append(out, l.versionBefore(b))
	}
	return out
}

// versionBefore returns the report of an earlier version.
func (l launching) versionBefore(b before) rollout.Version {
	t, n := b.template, b.number
	out := rollout.Version{Template: t.Name, Number: n, Pin: l.version.PinTo(l.pool, t, n)}
	policy := l.have.MixedInstancesPolicy // the most likely one, as AWS does not return it
	if p, known := l.policyBefore(b); known {
		policy, out.Policy, out.Plain = p, p, p == nil
	}
	if policy.Same(l.pool.Group.MixedInstancesPolicy) {
		policy = l.pool.Group.MixedInstancesPolicy // hashes of stopped changes use Git's form
	}
	if body := l.version.BodyOf(t, n); body != "" {
		out.Hash = hashOf(body, policy)
	}
	return out
}

// policyBefore returns the mixed instances policy that the group had with a version: the group's
// own, or the policy of the newest refresh to that version.
func (l launching) policyBefore(b before) (policy *intent.MixedInstances, known bool) {
	if b.set {
		return l.have.MixedInstancesPolicy, !l.have.UnknownPolicy
	}
	latest := l.planner.In.State.Refreshes[l.have.Name]
	for _, r := range append([]observed.Refresh{latest}, latest.Earlier...) {
		if r.ID != "" && r.Template.ID == b.template.ID && r.Template.Version == strconv.FormatInt(b.number, 10) {
			return r.MixedInstancesPolicy, true
		}
	}
	return nil, false
}

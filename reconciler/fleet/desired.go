package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/targetspec"
)

func (f *Fleet) sourceIDs(views map[string]View) []string {
	var ids []string
	for _, name := range f.o.Config.Sources {
		ids = append(ids, views[name].ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// desired returns the item as the reconciler needs it, without its account.
func (f *Fleet) desired(in *inputs, it *item, sources []string) reconciler.Desired {
	t, snap := it.target, it.view.Snapshot
	d := reconciler.Desired{
		Policy: model.Policy{
			Instance: f.o.Config.Instance, Target: it.name, Source: it.view.ID, Sources: sources, Region: t.Region,
			Suspended: t.Suspend, ReportOnly: t.Mode == targetspec.Report, DigestKey: f.o.DigestKey,
			Gates: model.Gates{AsReviewed: t.Apply == targetspec.AsReviewed}, MaxRollouts: int(t.MaxConcurrentRollouts),
			KeepVersions: f.o.Config.KeepVersions, Adoption: model.Adoption{Annotated: t.AllowAdopt},
			Prune: model.Prune{Enabled: t.Prune.Enabled, Percent: t.Prune.Limit.Percent, Count: t.Prune.Limit.Count, Allowed: it.render.allowed},
		},
		Network: resolve.Network{VPCID: t.Network.VPCID, SubnetIDs: t.Network.SubnetIDs, SecurityGroupIDs: t.Network.SecurityGroupIDs},
		Source:  t.Source, Ref: snap.Ref, Seq: it.view.Seq, Commit: content.Commit{Revision: snap.Revision, Subject: snap.Subject},
		Touched:  snap.Revision != "" && (it.render.touchedBy == snap.Revision || it.doubted),
		Proposed: it.proposed,
		Err:      it.err, Diagnostics: it.diags,
	}
	it.key = reconciler.ScopeKey{Account: t.AccountID, Region: t.Region, RoleARN: t.RoleARN, Endpoint: f.o.endpoint(t)}
	if it.err == nil {
		d.Err = unreadable(it.view.Err)
	}
	// While something cannot be read, weir uses the last build only if it has the same path, repository and
	// values. A reload may have changed them.
	if r := it.render.result; r != nil && it.render.over == nil && !it.diags.HasErrors() && it.render.of(it) {
		fill(&d, r, &it.key, t.AllowedRoleARNs)
		d.Origins = it.origins()
		d.Policy.Secretless = d.Policy.Secretless || it.hidden
	}
	d.Policy.Fault = cmp.Or(d.Policy.Fault, faultOf(d.Diagnostics))
	if !it.since.IsZero() {
		it.useLastBuild(&d)
	}
	d.Whole = d.Whole && d.Err == nil
	it.key.RoleARN = in.role(t, it.key.RoleARN)
	if it.accountUnknown() {
		// Otherwise weir would read an account that it only assumes by default.
		it.key, d.Policy.Region = reconciler.ScopeKey{}, ""
	}
	f.attachWorkload(in, &d, t)
	return d
}

// useLastBuild describes a target whose newest commit is still being rendered. It uses the target's last build,
// under that build's commit. The target is observed and planned, but weir writes nothing, because its intents
// are about to change. If commits come faster than they are rendered, weir applies the last build after
// forLong.
func (it *item) useLastBuild(d *reconciler.Desired) {
	r := it.render
	d.Whole, d.Policy.Prune.Allowed = false, nil
	d.Ref, d.Commit, d.Touched = r.ref, content.Commit{Revision: r.revision, Subject: r.subject}, r.revision != "" && r.touchedBy == r.revision
	if time.Since(r.behind) < forLong {
		d.Policy.Gates.Waits = "commit " + rollout.ShortRevision(it.view.Snapshot.Revision) + " has been rendering since " + it.since.UTC().Format("15:04:05 MST")
	}
}

// role returns the role with which a target is read: the configured one, or its own for plans.
func (in *inputs) role(t *targetspec.Target, configured string) string {
	if in.readOnly && t.PlanRoleARN != "" {
		return t.PlanRoleARN
	}
	return configured
}

// endpoint returns the address of the target's AWS endpoint. It is empty for AWS itself.
func (o *Options) endpoint(t *targetspec.Target) string {
	switch {
	case o.Endpoint != "":
		return o.Endpoint
	case t.EndpointURL != "":
		return targetspec.Endpoint(t.EndpointURL)
	default:
		return targetspec.Endpoint(o.Config.Endpoint)
	}
}

// batches groups the items by scope.
func (f *Fleet) batches(items []*item) []reconciler.Batch {
	index := map[reconciler.ScopeKey]int{}
	var out []reconciler.Batch
	for _, it := range items {
		n, known := index[it.key]
		if !known {
			n = len(out)
			index[it.key] = n
			out = append(out, reconciler.Batch{Key: it.key, AllTargets: allKnown(items)})
		}
		out[n].Targets = append(out[n].Targets, it.desired)
	}
	f.keepUnlisted(items, out)
	return out
}

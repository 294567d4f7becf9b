package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/slot"
	"github.com/weir-gitops/weir/render/tree"
)

// rendered is a target's last render, with its inputs.
type rendered struct {
	// result is nil before the first render.
	result     *render.Kept
	path       string
	vars       map[string]string
	secretVars []string
	valueFiles []string
	keys       string // id of the keyring
	source     string // identity of the repository
	verify     string // what its commit had to be signed with
	// revision is the last revision for which the result is known to be valid, touchedBy the
	// revision that changed it.
	revision, touchedBy string
	// subject and ref are of that revision, and behind is since when there is a newer one.
	subject, ref string
	behind       time.Time
	// fault describes what in the commit leaves nothing to render, empty if all is well.
	fault string
	// over says by how much the render is more than there may be, and then nothing is
	// known of what is wanted; nil if all is well.
	over *excess
	// allowed are the pools whose deletion the trailer of the revision
	// allowedBy allows.
	allowed   map[string]bool
	allowedBy string
	// sum identifies the intents of the result sumOf.
	sum   string
	sumOf *render.Kept
}

// of reports whether the render was made of the item's path, repository and values,
// of a commit that was signed as the configuration asks.
func (r *rendered) of(it *item) bool {
	return r.path == it.path && r.source == it.view.ID && r.verify == it.view.Verify && maps.Equal(r.vars, it.vars) && r.keys == it.keys.id && slices.Equal(r.secretVars, it.secretVars) && slices.Equal(r.valueFiles, it.valueFiles)
}

// options returns the options to render the item.
func (it *item) options() render.Options {
	o := render.Options{
		Vars: it.vars, SecretVars: it.secretVars, ValueFiles: it.valueFiles, GiveValue: whereValuesAre(it.valueFiles), Decrypter: it.keys.decrypter,
		Limits: it.budget.build(), For: it.caller(),
	}
	if it.keyless != nil {
		o.Vars, o.SecretVars, o.Decrypter = it.plain, nil, it.keyless
	}
	return o
}

// caller identifies the requester of the item's render.
func (it *item) caller() slot.Caller {
	c := slot.Caller{Source: it.target.Source}
	switch {
	case it.proposed:
		c.Class = slot.Proposed
	case it.earlier:
		c.Class = slot.Earlier
	}
	return c
}

// whereValuesAre names the files with the values of variables.
func whereValuesAre(valueFiles []string) string {
	if n := len(valueFiles); n > 0 {
		return "in " + valueFiles[n-1] + " or in targets[].vars of weir's configuration"
	}
	return "in targets[].vars of weir's configuration"
}

// origins answers where fields of the item's render were set. If the render may not be valid for
// the commit, it gives no answers.
func (it *item) origins() func(context.Context, []intent.Question) []diag.Position {
	kept, tree, path, options := it.render.result, it.view.Snapshot.Tree, it.path, it.options()
	if tree == nil || it.render.revision != it.view.Snapshot.Revision {
		return nil
	}
	return func(ctx context.Context, asked []intent.Question) []diag.Position {
		return kept.Origins(ctx, tree, path, options, asked)
	}
}

// draw renders the item, or finds that its last render still holds. If it cannot be
// read, the last render stays, with the reason in err. It returns an error only if ctx
// ends.
func (it *item) draw(ctx context.Context) error {
	if it.upToDate() {
		return ctx.Err()
	}
	if !it.kept {
		if err := it.make(ctx); err != nil || it.err != nil {
			return err
		}
	}
	return it.allow(ctx)
}

// upToDate finds out whether the item is done without rendering anything.
func (it *item) upToDate() bool {
	r, snap := it.render, it.view.Snapshot
	if it.err != nil || snap.Tree == nil {
		it.doubted = it.err != nil && snap.Tree != nil && !it.unknown && it.differs()
		return true
	}
	if it.diags.HasErrors() {
		it.noteFault()
		return true
	}
	// A render that may differ though nothing was committed is made again.
	same := r.result != nil && !r.result.Retry && r.of(it) && (r.over == nil || !it.budget.fits(r.over))
	if same && r.revision == snap.Revision {
		it.kept = true
		return !it.allows()
	}
	if gone, err := missing(snap.Tree, it.path); err != nil {
		it.err = unreadable(err)
		return true
	} else if gone {
		it.diags = append(it.diags, diag.Diagnostic{
			Severity: diag.Error, Code: "path-missing", Summary: fmt.Sprintf("path %s is not in the commit", it.path),
			Detail: "Until then weir deletes nothing. Correct targets.path, or remove the target from the configuration.",
		})
		it.noteFault()
		return true
	}
	if same {
		unchanged, err := r.result.Reads.Same(snap.Tree)
		if err != nil {
			it.err = unreadable(err)
			return true
		}
		if unchanged {
			it.at()
			it.kept = true
			return !it.allows()
		}
	}
	return false
}

// differs reports whether the snapshot may make another render of the item than the last one.
func (it *item) differs() bool {
	r := it.render
	if r.result == nil || r.path != it.path {
		return true
	}
	same, err := r.result.Reads.Same(it.view.Snapshot.Tree)
	return err != nil || !same
}

// make renders the item.
func (it *item) make(ctx context.Context) error {
	r, snap := it.render, it.view.Snapshot
	ctx, sp := span.Start(ctx, "render", "target", it.name, "revision", snap.Revision)
	result, err := it.recall(ctx)
	var full *render.FullError
	if result == nil && err == nil {
		result, err = render.Keep(ctx, snap.Tree, it.path, it.options(), it.budget.shared)
		if errors.As(err, &full) {
			err = nil
		}
		if err == nil && full == nil {
			it.write(ctx, result)
		}
	}
	span.End(sp, err)
	if err != nil {
		it.err = unreadable(err)
		return ctx.Err()
	}
	if full != nil && it.light {
		return ErrHeavy
	}
	it.budget.reserve(it.name, r, result, full)
	r.path, r.vars, r.source, r.fault = it.path, it.vars, it.view.ID, ""
	r.valueFiles = it.valueFiles
	r.secretVars, r.keys, r.verify = it.secretVars, it.keys.id, it.view.Verify
	it.move()
	return nil
}

// at notes that the render holds for the snapshot.
func (it *item) at() {
	snap := it.view.Snapshot
	it.render.revision, it.render.subject, it.render.ref = snap.Revision, snap.Subject, snap.Ref
}

// noteFault notes that the commit leaves nothing to render. The commit that brought the fault
// touched the target; a later commit that leaves the fault unchanged did not.
func (it *item) noteFault() {
	r := it.render
	fault := it.diags.Sorted()[0].Summary
	if r.fault == fault {
		it.at()
		return
	}
	it.budget.reserve(it.name, r, nil, nil)
	r.fault = fault
	it.move()
}

// move notes that the commit changed the target. A change of the configuration
// alone touches nothing.
func (it *item) move() {
	if revision := it.view.Snapshot.Revision; it.render.revision != revision {
		it.at()
		it.render.touchedBy = revision
	}
}

// missing reports whether nothing is at p in t. Behind a symlink, the build
// tells.
func missing(t tree.Tree, p string) (bool, error) {
	_, err := t.Lookup(p)
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if e, err := t.Lookup(dir); err == nil {
			return e.Mode != tree.Symlink, nil
		}
	}
	return true, nil
}

// fill puts a render into a Desired, and the role that its clusters name into
// the scope's key.
func fill(d *reconciler.Desired, r *render.Kept, key *reconciler.ScopeKey, allowedRoles []string) {
	diags := append(slices.Clone(d.Diagnostics), unblocked(r)...)
	role, fault := roleOf(r, key.RoleARN, allowedRoles)
	if fault != nil {
		diags = append(diags, *fault)
	}
	diags = append(diags, regionRemarks(r, key.Region)...)
	d.Diagnostics = diags.Sorted()
	d.Unplanned = slices.Clone(r.Set.Unplanned)
	d.Policy.Fault = faultOf(d.Diagnostics)
	if fault != nil || r.Diags.HasErrors() && len(r.Set.Pools) == 0 {
		return
	}
	key.RoleARN = role
	d.Policy.Secretless = r.Secretless
	d.Set = &r.Set
	d.Whole = !d.Diagnostics.HasErrors()
}

// faultOf returns the first error with its place, empty for none.
func faultOf(list diag.List) string {
	i := slices.IndexFunc(list, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
	if i < 0 {
		return ""
	}
	return list[i].Located()
}

// unblocked are a render's findings without those that block pools: the planner
// says these again, as errors.
func unblocked(r *render.Kept) diag.List {
	type finding struct{ code, object, field string }
	again := map[finding]bool{}
	for _, p := range r.Set.Pools {
		for _, b := range p.Blocked {
			again[finding{b.Code, b.Object, b.Field}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(r.Diags), func(d diag.Diagnostic) bool {
		return d.Severity == diag.Warning && again[finding{d.Code, d.Object, d.Field}]
	})
}

// roleOf is the role to assume: that of the configuration, or the one role that
// all clusters of the pools name and the configuration allows.
func roleOf(r *render.Kept, configured string, allowed []string) (string, *diag.Diagnostic) {
	var roles []string
	var named *intent.Cluster
	for i := range r.Set.Pools {
		cluster, ok := r.Set.Cluster(r.Set.Pools[i].ClusterKey)
		if ok && cluster.RoleARN != "" {
			named = &cluster
		}
		if !slices.Contains(roles, cluster.RoleARN) { // there are one or two
			roles = append(roles, cluster.RoleARN)
		}
	}
	slices.Sort(roles)
	switch {
	case named == nil:
		return configured, nil
	case len(roles) > 1:
		return "", &diag.Diagnostic{
			Severity: diag.Error, Code: "several-roles", Object: "Cluster " + named.Key.String(),
			Summary: "the clusters of one target name different roles: " + strings.Join(slices.DeleteFunc(roles, func(s string) bool { return s == "" }), ", "),
			Detail:  "Give clusters with different identities targets of their own.",
		}
	case roles[0] != configured && !slices.Contains(allowed, roles[0]):
		return "", &diag.Diagnostic{
			Severity: diag.Error, Code: "role-not-allowed", Object: "Cluster " + named.Key.String(),
			Summary: "the cluster's identity names the role " + roles[0] + ", which the configuration does not allow",
			Detail:  "Add it to targets.allowedRoleARNs, or take the identity out of the manifests.",
		}
	}
	return roles[0], nil
}

// regionRemarks warns about clusters whose manifests name another region than the target's.
func regionRemarks(r *render.Kept, region string) diag.List {
	var out diag.List
	for _, c := range r.Set.Clusters {
		if c.Region != "" && c.Region != region {
			out = append(out, diag.Diagnostic{
				Severity: diag.Warning, Code: "region-differs", Object: "Cluster " + c.Key.String(),
				Summary: fmt.Sprintf("the manifests of cluster %s say region %s; the target is applied to %s", c.Key, c.Region, region),
			})
		}
	}
	return out
}

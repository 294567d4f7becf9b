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
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/slot"
	"github.com/weir-gitops/weir/render/tree"
)

// build is the result of rendering a target, with its inputs. It does not change once a rendered has it, so a
// fleet and its reviews share builds.
type build struct {
	// result is nil before the first render, and after a fault.
	result     *render.Kept
	path       string
	vars       map[string]string
	secretVars []string
	valueFiles []string
	keys       string // id of the keyring
	source     string // identity of the repository
	verify     string // the signatures that its commit needed
	// fault describes what in the commit leaves nothing to render. It is empty if there is no fault.
	fault string
	// over says by how much the result exceeds a limit. Then the intents of the target are unknown. It is nil
	// if there is room.
	over *excess

	sumOnce sync.Once
	sum     string // see intents
}

// of reports whether the build was made from the item's path, repository and values, and from a commit with
// the signatures that the configuration requires.
func (b *build) of(it *item) bool {
	return b.path == it.path && b.source == it.view.ID && b.verify == it.view.Verify && maps.Equal(b.vars, it.vars) && b.keys == it.keys.id && slices.Equal(b.secretVars, it.secretVars) && slices.Equal(b.valueFiles, it.valueFiles)
}

// intents identifies the intents of the result. key is always the fleet's.
func (b *build) intents(key []byte) string {
	b.sumOnce.Do(func() { b.sum = sumOfSet(key, &b.result.Set) })
	return b.sum
}

// rendered is the last build of a target and its relation to the commits that a fleet has composed.
type rendered struct {
	*build
	// revision is the last revision for which the build is known to be valid. touchedBy is the revision that
	// changed the build.
	revision, touchedBy string
	// subject and ref belong to revision. behind is the time at which a newer revision arrived that is not
	// rendered yet.
	subject, ref string
	behind       time.Time
	// allowed are the pools whose deletion the trailer of the revision allowedBy allows.
	allowed   map[string]bool
	allowedBy string
}

// standsFor makes a rendered of a build that no commit is known to be valid for. A nil build stands for none.
func standsFor(b *build) *rendered {
	if b == nil {
		b = &build{}
	}
	return &rendered{build: b}
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

// origins returns a function that answers where fields of the item's render were set. It returns nil if the
// render may not be valid for the commit.
func (it *item) origins() func(context.Context, []intent.Question) []diag.Position {
	kept, tree, path, options := it.render.result, it.view.Snapshot.Tree, it.path, it.options()
	if tree == nil || it.render.revision != it.view.Snapshot.Revision {
		return nil
	}
	return func(ctx context.Context, asked []intent.Question) []diag.Position {
		return kept.Origins(ctx, tree, path, options, asked)
	}
}

// draw renders the item, or finds that its last build is still valid. If the commit cannot be read, the last
// build stays, with the reason in err. draw returns an error only if ctx ends.
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

// upToDate reports whether the item needs no render.
func (it *item) upToDate() bool {
	standing, err := compare(it)
	if err != nil {
		it.err = unreadable(err)
		return true
	}
	switch standing {
	case unread:
		it.doubted = it.err != nil && it.view.Snapshot.Tree != nil && !it.unknown && it.differs()
	case missing:
		it.diags = append(it.diags, diag.Diagnostic{
			Severity: diag.Error, Code: "path-missing", Summary: fmt.Sprintf("path %s is not in the commit", it.path),
			Detail: "Correct targets.path, or remove the target from the configuration. Until then weir deletes nothing in the accounts and regions of this target.",
		})
		it.noteFault()
	case faulty:
		it.noteFault()
	case current:
		it.kept = true
		return !it.allows()
	case unchanged:
		it.setCommit()
		it.kept = true
		return !it.allows()
	case outdated:
		return false
	}
	return true
}

// differs reports whether the snapshot may make another build of the item than the last one.
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
	snap := it.view.Snapshot
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
	it.budget.reserve(it.name, it.render, &build{
		result: result, path: it.path, vars: it.vars, secretVars: it.secretVars, valueFiles: it.valueFiles,
		keys: it.keys.id, source: it.view.ID, verify: it.view.Verify,
	}, full)
	it.setTouched()
	return nil
}

// setCommit notes that the render is valid for the snapshot.
func (it *item) setCommit() {
	snap := it.view.Snapshot
	it.render.revision, it.render.subject, it.render.ref = snap.Revision, snap.Subject, snap.Ref
}

// noteFault notes that the commit leaves nothing to render. The commit that brought the fault
// touched the target; a later commit that leaves the fault unchanged did not.
func (it *item) noteFault() {
	r := it.render
	fault := it.diags.Sorted()[0].Summary
	if r.fault == fault {
		it.setCommit()
		return
	}
	it.budget.reserve(it.name, r, &build{
		fault: fault, path: r.path, vars: r.vars, secretVars: r.secretVars, valueFiles: r.valueFiles, keys: r.keys, source: r.source, verify: r.verify,
	}, nil)
	it.setTouched()
}

// setTouched notes that the commit changed the target. A change of the configuration alone does not count.
func (it *item) setTouched() {
	if revision := it.view.Snapshot.Revision; it.render.revision != revision {
		it.setCommit()
		it.render.touchedBy = revision
	}
}

// isMissing reports whether nothing is at p in t. If p leads through a symlink, isMissing leaves that to the
// build and returns false.
func isMissing(t tree.Tree, p string) (bool, error) {
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

// fill puts a render into a Desired, and the role that its clusters name into the scope's key.
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

// unblocked returns a render's diagnostics except the ones that block pools. The planner reports these
// again, as errors.
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

// roleOf returns the role to assume: the configured one, or the single role that all clusters of the pools
// name and the configuration allows.
func roleOf(r *render.Kept, configured string, allowed []string) (string, *diag.Diagnostic) {
	var roles []string
	var named *intent.Cluster
	for i := range r.Set.Pools {
		cluster, ok := r.Set.Cluster(r.Set.Pools[i].ClusterKey)
		if ok && cluster.RoleARN != "" {
			named = &cluster
		}
		if !slices.Contains(roles, cluster.RoleARN) { // usually one or two roles
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
			Detail:  "Add it to targets.allowedRoleARNs, or remove the identity from the manifests.",
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

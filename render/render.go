// Package render turns a path of a tree into intents: it builds the path with kustomize,
// substitutes variables, decodes and checks the objects, and finds the line and file for each
// finding.
//
// Rendering is pure: the same tree, path and options give the same result, and nothing outside the
// tree is read. A mistake of the user is a diagnostic, never an error.
package render

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/slot"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/tree"
)

// Options of a render. The zero value has no variables and the default limits.
type Options struct {
	// Vars has the values for ${VAR}. A variable without a value and a default is an error in objects
	// that weir reads. In all other objects it stays unchanged.
	Vars map[string]string
	// SecretVars names the secret variables in Vars.
	SecretVars []string
	// ValueFiles are files of the tree with values for variables that are not in Vars.
	ValueFiles []string
	// GiveValue ends messages that start with "give it a value". It tells the user where to set a
	// variable.
	GiveValue string
	// Decrypter decrypts files that SOPS has encrypted. If it is nil, every encrypted file is an error.
	Decrypter *sops.Decrypter
	// Limits bound the build.
	Limits kust.Limits
	// For identifies the caller. Renders wait for each other, and sources take turns.
	For slot.Caller
	// BuildOnly returns only the objects. weir derives nothing from them, and the findings are only about the
	// build.
	BuildOnly bool
	// Partial accepts a base that no target renders alone, for example one that has only MachinePools or only
	// infrastructure pools.
	Partial bool
}

func (o Options) build(small bool, grow func() bool) kust.Options {
	return kust.Options{Vars: o.Vars, SecretVars: o.SecretVars, ValueFiles: o.ValueFiles, GiveValue: o.GiveValue, Strict: kinds.Reads, Decrypter: o.Decrypter, Limits: o.Limits, Small: small, Grow: grow}
}

// Result is the result of a render. It is immutable and safe for concurrent use.
type Result struct {
	// Set has the pools without an error, and the clusters.
	Set intent.Set
	// Diags are all findings, sorted, with positions.
	Diags diag.List
	// Reads records everything that the render read in the tree. If another tree has the same, it has the
	// same result.
	Reads reads.Set
	// Secrets has the secret variables and decrypted values, which must not be shown anywhere. Hidden also
	// has the parts of them that reached a plain field, and the values of all Secrets in the build and in its
	// files. These are shown only to users who request the manifests themselves.
	Secrets, Hidden *secret.Set
	// Secretless is true if placeholders replaced an encrypted file, so that weir must not apply anything.
	// Retry is true if the same render may have another result later.
	Secretless, Retry bool
	// Objects are all rendered objects. It is nil if the build failed.
	Objects []kinds.Object

	built *kust.Result
	path  string
	// open is Kept.open.
	open bool

	objects objectIndex
	// masked finds the values that findings and fields must not show: the values of Secrets in the files.
	// Secret variables and decrypted texts are in neither of them. masked does not include these, because a
	// mask would tell the author of a text that it equals a secret.
	masked *secret.Finder
}

// Render renders path, which is a kustomization directory, a directory of manifests or one manifest
// file. Its error is non-nil only if the tree cannot be read or ctx ends. The number of concurrent
// renders of a process is bounded; further ones wait.
func Render(ctx context.Context, t tree.Tree, path string, o Options) (r *Result, err error) {
	err = inTurn(ctx, o.For, func(ctx context.Context, small bool, grow func() bool) error {
		r, err = render(ctx, t, path, o, small, grow)
		return err
	})
	return r, err
}

// Keep renders path and returns the part that is worth keeping, like Result.Keep.
func Keep(ctx context.Context, t tree.Tree, path string, o Options, s *Shared) (k *Kept, err error) {
	err = inTurn(ctx, o.For, func(ctx context.Context, small bool, grow func() bool) error {
		r, err := render(ctx, t, path, o, small, grow)
		if err == nil {
			k, err = r.Keep(s)
		}
		return err
	})
	return k, err
}

// render builds and decodes path for Render and Keep, which limit the concurrent renders. grow requests the
// slot for a large build when the build turns out not to be small.
func render(ctx context.Context, t tree.Tree, path string, o Options, small bool, grow func() bool) (*Result, error) {
	built, err := kust.Build(ctx, t, path, o.build(small, grow))
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", path, err)
	}
	r := &Result{path: path, Diags: gathered(built.Diags).Hinted(), Reads: built.Reads, Objects: built.Objects, built: built, Secretless: built.Secretless, Retry: built.Retry}
	secrets := slices.Clone(built.Secrets)
	for _, name := range o.SecretVars {
		secrets = append(secrets, o.Vars[name])
	}
	r.Secrets = secret.New(secrets...)
	r.Hidden = secret.Union(r.Secrets, secret.New(rules.SecretValues(built.Objects)...), secret.New(rules.SecretValues(built.Given)...))
	r.masked = secret.Union(secret.New(rules.SecretValues(built.Public)...), secret.New(rules.SecretValues(built.Given)...)).Finder()
	defer func() {
		r.redact()
		built.Given = nil
	}()
	dec := &decoding{of: r, secrets: secrecy{built, o.For.Class}}
	switch {
	case built.Unset:
		r.Objects = nil
		dec.guarded(path, dec.checkUnset)
	case built.Diags.HasErrors():
	case o.BuildOnly:
		dec.guarded(path, func() {
			dec.find(dec.misused())
			r.Diags = r.Diags.Hinted().Sorted()
		})
	default:
		dec.guarded(path, func() { dec.decode(manifest.Intents, manifest.Options{Partial: o.Partial}) })
	}
	isSecret := func(o kinds.Object) bool { return o.Ref.Kind == "Secret" }
	r.open = !built.Secretive && len(secrets) == 0 && r.Hidden.Len() == 0 && !r.Secretless && !r.Retry && !slices.ContainsFunc(built.Objects, isSecret) && !slices.ContainsFunc(built.Given, isSecret)
	return r, nil
}

// guarded runs a stage. A panic becomes a finding and results in an empty set. So one broken target does not
// break other pools, and weir does not treat pools of a failed render as deleted.
func (dec *decoding) guarded(path string, stage func()) {
	defer func() {
		if p := recover(); p != nil {
			dec.of.Set = intent.Set{}
			dec.of.Diags = append(dec.secrets.built.Diags.Hinted(), diag.Diagnostic{Severity: diag.Error, Code: "build-failed", Position: diag.Position{File: path},
				Summary: "weir crashed while it rendered these manifests; this is a bug in weir", Detail: "Report it, and attach the manifests if you may share them."})
		}
	}()
	stage()
}

// decode sets the set and the findings to the results of intents.
func (dec *decoding) decode(intents func([]kinds.Object, manifest.Options) (intent.Set, []kinds.Fault), o manifest.Options) {
	o.Renamed = dec.secrets.built.Renamed
	faults := dec.intents(intents, o)
	dec.find(faults)
	dec.setBlockedPositions()
	dec.of.Diags = dec.of.Diags.Hinted().Sorted()
	dec.setUnplannedFaults()
}

// maxFindings bounds the findings about objects in a render. More are of no use to a reader, and every
// finding costs a lookup and memory.
const maxFindings = 500

// find adds faults to the findings. If there are too many, it keeps errors rather than warnings.
func (dec *decoding) find(faults []kinds.Fault) {
	if more := len(faults) - maxFindings; more > 0 {
		slices.SortStableFunc(faults, func(a, b kinds.Fault) int { return cmp.Compare(a.Severity, b.Severity) })
		hidden := min(faults[maxFindings].Severity, diag.Warning)
		faults = faults[:maxFindings]
		dec.of.Diags = append(dec.of.Diags, diag.Diagnostic{Severity: hidden, Code: "too-large", Summary: fmt.Sprintf("%d more findings than the %d that are shown", more, maxFindings), Detail: "Correct these first."})
	}
	for _, f := range faults {
		dec.of.Diags = append(dec.of.Diags, dec.position(f))
	}
}

// position converts a fault to a diagnostic with a place in Git: the origin of the key or value, otherwise
// the nearest known one, otherwise the place of the secret in it. A fault about the whole build has only
// the path of the build.
func (dec *decoding) position(f kinds.Fault) diag.Diagnostic {
	d := f.Diagnostic()
	if f.Ref == (intent.ObjectRef{}) { // about the whole build
		d.Object, d.File = "", dec.of.path
		return d
	}
	if f.Key {
		if at, ok := dec.secrets.built.KeyOrigin(f.Ref, f.Path); ok {
			d.Position = at
		}
	}
	if !d.Known() {
		d.Position, _ = dec.secrets.built.Near(f.Ref, f.Path)
	}
	if !d.Known() {
		d.Position = dec.secrets.secretIn(f.Ref, f.Path)
	}
	for _, rel := range f.Related {
		if at, ok := dec.secrets.built.Near(rel.Ref, rel.Path); ok {
			d.Related = append(d.Related, diag.Related{Position: at, Message: rel.Message})
		}
	}
	return d
}

// setBlockedPositions copies the positions of findings to the reasons for blocked pools.
func (dec *decoding) setBlockedPositions() {
	type key struct{ code, object, field string }
	at := map[key]diag.Position{}
	for _, d := range dec.of.Diags {
		at[key{d.Code, d.Object, d.Field}] = d.Position
	}
	for i := range dec.of.Set.Pools {
		for j := range dec.of.Set.Pools[i].Blocked {
			b := &dec.of.Set.Pools[i].Blocked[j]
			b.Position = at[key{b.Code, b.Object, b.Field}]
		}
	}
}

// setUnplannedFaults sets the fault of every broken pool to the first error about it, and removes pools whose
// names contain secrets.
func (dec *decoding) setUnplannedFaults() {
	first := map[string]diag.Diagnostic{}
	var firstOfAll diag.Diagnostic
	for _, d := range dec.of.Diags {
		if d.Severity != diag.Error {
			continue
		}
		if firstOfAll.Code == "" {
			firstOfAll = d
		}
		if _, known := first[d.Object]; !known {
			first[d.Object] = d
		}
	}
	dec.of.Set.Unplanned = slices.DeleteFunc(dec.of.Set.Unplanned, func(u intent.Unplanned) bool {
		return slices.ContainsFunc(u.Objects, func(ref intent.ObjectRef) bool { return dec.secrets.built.Masked(ref.String()) != ref.String() })
	})
	for i := range dec.of.Set.Unplanned {
		u := &dec.of.Set.Unplanned[i]
		for _, ref := range u.Objects {
			d, ok := first[ref.String()]
			// A kind or version that weir cannot read is the cause of a missing reference, so it replaces
			// that fault.
			if ok && !u.Foreign && (u.Fault.Code == "" || u.Fault.Code == "reference-not-found" && (d.Code == "misspelled-kind" || d.Code == "unknown-version")) {
				u.Fault = d
			}
		}
		if u.Fault.Code == "" && !u.Foreign {
			u.Fault = firstOfAll
		}
	}
}

// Unused returns the names that no variable in the manifests has. ok is false if this is unknown because
// nothing was built.
func (r *Result) Unused(names []string) (unused []string, ok bool) { return r.built.Unused(names) }

// Origin returns the place that set a field of a rendered object. ok is false if the place is
// uncertain.
func (r *Result) Origin(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	return r.built.Origin(ref, p)
}

// YAML returns the rendered objects with their variables substituted. It is available even if validation
// failed, and empty if the build failed.
func (r *Result) YAML() []byte {
	if r.Objects == nil {
		return nil
	}
	return r.built.YAML()
}

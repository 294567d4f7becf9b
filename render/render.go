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
	// Vars holds the values for ${VAR}. In objects that weir reads, a variable
	// without value and default is an error; elsewhere it stays as it is.
	Vars map[string]string
	// SecretVars names the variables of Vars that are marked as secret.
	SecretVars []string
	// ValueFiles are files of the tree with values for what Vars leaves open.
	ValueFiles []string
	// GiveValue says how to give a variable a value, after "give it a value".
	GiveValue string
	// Decrypter opens the files that SOPS has encrypted; nil opens none, and each
	// is then an error.
	Decrypter *sops.Decrypter
	// Limits bound the build.
	Limits kust.Limits
	// For says for whom the render is made. Renders wait for each other, and sources
	// take turns.
	For slot.Caller
	// BuildOnly requests the objects only: nothing is derived from them, and the findings are those
	// of the build.
	BuildOnly bool
	// Partial accepts a base that no target renders by itself: a base with only MachinePools, or
	// only infrastructure pools.
	Partial bool
}

func (o Options) build(small bool, grow func() bool) kust.Options {
	return kust.Options{Vars: o.Vars, SecretVars: o.SecretVars, ValueFiles: o.ValueFiles, GiveValue: o.GiveValue, Strict: kinds.Reads, Decrypter: o.Decrypter, Limits: o.Limits, Small: small, Grow: grow}
}

// Result is the result of a render. It is immutable and safe for concurrent use.
type Result struct {
	// Set holds the pools without an error, and the clusters.
	Set intent.Set
	// Diags are all findings, sorted, with their positions.
	Diags diag.List
	// Reads holds what the render looked up in the tree; if that is the same in another tree, so is
	// the result.
	Reads reads.Set
	// Secrets holds the secret variables and the decrypted values: they must not be shown anywhere.
	// Hidden holds these, the parts of them that reached a plain field, and the values of all
	// Secrets in the build and in its files: they are shown only to users who request the manifests
	// themselves.
	Secrets, Hidden *secret.Set
	// Secretless says that an encrypted file was read with placeholders, so that
	// nothing may be applied; Retry that the same render may turn out otherwise later.
	Secretless, Retry bool
	// Objects are the rendered objects, weir's kinds and others; nil if the
	// build failed.
	Objects []kinds.Object

	built *kust.Result
	path  string
	// open is Kept's.
	open bool

	objects lookup
	// masked finds what is masked in findings and fields: the values of Secrets that stand in
	// the files. Secret texts are in neither. It does not look for them, as a mask would tell
	// who writes a text that it is one.
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

// Keep renders path and keeps of it what is worth keeping, as Result.Keep does.
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

// guarded runs one stage. A panic is a finding and leaves no set: one target
// must not break other pools, and what is missing from a render in error
// is not taken for gone.
func (dec *decoding) guarded(path string, stage func()) {
	defer func() {
		if p := recover(); p != nil {
			dec.of.Set = intent.Set{}
			dec.of.Diags = append(dec.secrets.built.Diags.Hinted(), diag.Diagnostic{Severity: diag.Error, Code: "build-failed", Position: diag.Position{File: path},
				Summary: "weir itself failed at these manifests", Detail: "Report it, with the files if they may be shown."})
		}
	}()
	stage()
}

// decode fills the set and the findings with what intents makes of the objects.
func (dec *decoding) decode(intents func([]kinds.Object, manifest.Options) (intent.Set, []kinds.Fault), o manifest.Options) {
	o.Renamed = dec.secrets.built.Renamed
	faults := dec.intents(intents, o)
	dec.find(faults)
	dec.setBlockedPositions()
	dec.of.Diags = dec.of.Diags.Hinted().Sorted()
	dec.setUnplannedFaults()
}

// maxFindings bounds the findings about objects in a render: a reader has no use for more, and each
// costs a look-up and memory.
const maxFindings = 500

// find adds faults to the findings, errors first where they are too many.
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

// position turns a fault into a diagnostic that knows its place.
func (dec *decoding) position(f kinds.Fault) diag.Diagnostic {
	d := f.Diagnostic()
	if f.Ref == (intent.ObjectRef{}) { // about the build as a whole
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

// setBlockedPositions copies the positions of the findings that block pools to them.
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

// setUnplannedFaults gives each broken pool the first error about it, and takes out what
// is named by a secret.
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
			// What nobody can read goes before what misses it.
			if ok && !u.Foreign && (u.Fault.Code == "" || u.Fault.Code == "reference-not-found" && (d.Code == "misspelled-kind" || d.Code == "unknown-version")) {
				u.Fault = d
			}
		}
		if u.Fault.Code == "" && !u.Foreign {
			u.Fault = firstOfAll
		}
	}
}

// Unused returns those of the names that no variable of the manifests has. ok is false if that is
// unknown, because nothing was built.
func (r *Result) Unused(names []string) (unused []string, ok bool) { return r.built.Unused(names) }

// Origin returns the place that set a field of a rendered object. ok is false if the place is
// uncertain.
func (r *Result) Origin(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	return r.built.Origin(ref, p)
}

// YAML returns the rendered objects with their variables substituted. It is
// there also when validation failed, and empty when the build did.
func (r *Result) YAML() []byte {
	if r.Objects == nil {
		return nil
	}
	return r.built.YAML()
}

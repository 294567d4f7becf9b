// Package kust turns a path of a tree into Kubernetes objects: a full kustomize build, then the
// substitution of ${VAR}.
//
// A build has three steps:
//
//   - walk: read every file that kustomize would reach. Refuse everything that is remote, runs code,
//     leaves the tree or would exhaust the machine. Report all faults at once.
//   - run: run kustomize over exactly these files.
//   - substitute: replace variables.
//
// The result can find the file and line that set a field (Origins), and has the paths that the build
// looked up (package reads).
//
// A mistake of the user is always a diagnostic. An error means that the tree could not be read or that
// the context ended.
package kust

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/tree"
	"go.yaml.in/yaml/v3"
)

// Options are the options of a build. The zero value has no variables and the default limits.
type Options struct {
	// Vars has the values for ${VAR}. SecretVars lists the names of the secret variables.
	Vars       map[string]string
	SecretVars []string
	// ValueFiles are files of the tree with values for variables that Vars does not have. Later
	// files override earlier ones. None of them is secret.
	ValueFiles []string
	// GiveValue ends messages with "Give it a value …". It tells the user where to set a variable.
	GiveValue string
	// Strict reports whether every variable in an object needs a value or a default. In other objects a
	// variable without either stays unchanged, because a repository also has texts that weir does
	// not use. Nil means no object.
	Strict func(ref intent.ObjectRef) bool
	// Decrypter opens files that are encrypted with SOPS. If it is nil, each such file is an error.
	Decrypter *sops.Decrypter
	// Proof is the proof of an earlier build of the same files. With it only Known may be called. The marked
	// build then runs in place of the plain one.
	Proof Proof
	// Limits bound one build. Fields that are zero take their default.
	Limits Limits
	// Small ends a build with ErrLarge if it is not small enough to run in parallel with others. Before that
	// the build calls Grow. If Grow returns true, the build continues as a large one. A nil Grow means false.
	Small bool
	Grow  func() bool
}

// Limits bound a build. A build that exceeds a limit has a diagnostic.
type Limits struct {
	// FileBytes is the size of a file; default 8 MiB. DocumentBytes is the size of a YAML document, and of a
	// file that becomes data, has values or is encrypted; default 1 MiB, the limit of Kubernetes for an
	// object.
	FileBytes, DocumentBytes int64
	// TotalBytes is the sum of all reads and of the bytes that patches may add; default 24 MiB. A base that
	// is read twice counts twice.
	TotalBytes int64
	// Files is the number of reads, counted in the same way; default 10,000.
	Files int
	// AliasNodes bounds the YAML nodes that the aliases of a file expand to; default 10,000.
	AliasNodes int
	// Depth bounds nested YAML collections, and bases in bases; default 100.
	Depth int
	// Nodes bounds the YAML nodes in the files, and the YAML nodes in the resulting objects; default 400,000.
	Nodes int
	// Batch is the approximate number of objects in a run of kustomize; default 50. weir uses batches if
	// there are more than twice as many objects and the result is the same.
	Batch int
	// Duration bounds the build; default 10 min. Usually the worker's limit of CPU time ends an expensive
	// build first. Duration matters on a busy machine.
	Duration time.Duration
}

// timer returns a context that ends when the time of a build is over. extend restarts that time unless it is
// over.
func (l Limits) timer(ctx context.Context) (timed context.Context, extend func(Limits) bool, stop func()) {
	timed, cancel := context.WithCancelCause(ctx)
	t := time.AfterFunc(l.Duration, func() { cancel(errTooSlow) })
	extend = func(to Limits) bool {
		in := t.Stop()
		if in {
			t.Reset(to.Duration)
		}
		return in
	}
	return timed, extend, func() { t.Stop(); cancel(nil) }
}

// withDefaults replaces limits that are not positive with the default limits.
func (l Limits) withDefaults() Limits {
	def := func(p *int, d int) {
		if *p <= 0 {
			*p = d
		}
	}
	if l.FileBytes <= 0 {
		l.FileBytes = 8 << 20
	}
	if l.DocumentBytes <= 0 {
		l.DocumentBytes = 1 << 20
	}
	if l.TotalBytes <= 0 {
		l.TotalBytes = 24 << 20
	}
	if l.Duration <= 0 {
		l.Duration = 10 * time.Minute
	}
	def(&l.Files, 10_000)
	def(&l.AliasNodes, 10_000)
	def(&l.Depth, 100)
	def(&l.Batch, 50)
	def(&l.Nodes, DefaultNodes)
	return l
}

// DefaultNodes is the default of Limits.Nodes: 2,000 pools of 200 nodes each.
const DefaultNodes = 400_000

// ErrLarge means that a build is not small.
var ErrLarge = errors.New("the build is not small")

// The limits of a small build, for its files and for its objects.
const (
	smallNodes = 30_000
	smallBytes = 2 << 20
	smallTime  = 2 * time.Second
)

// Result is the result of a build. It is immutable and safe for concurrent use, except for RunPlain.
type Result struct {
	// Objects are in kustomize's output order, with variables substituted. They are nil if Diags has an
	// error. With Unset they are not nil, although there are errors. These are all about variables without a
	// value, and the objects only serve to find more faults.
	Objects []kinds.Object
	Unset   bool
	// Diags is sorted by position.
	Diags diag.List
	// Reads records everything that the build looked up, even if it failed.
	Reads reads.Set
	// Secrets are the decrypted values of the files, which must not be shown. Secretless is true if
	// placeholders replace some secrets. Retry is true if the same build may have another result later: with
	// more keys, or if nothing kills its process.
	Secrets           []string
	Secretless, Retry bool
	// Public has the objects with stand-ins in place of secret texts. It equals Objects if they contain no
	// secrets. Misuses lists the places where a secret is not allowed.
	Public  []kinds.Object
	Misuses []Misuse
	// Secretive is true if the objects contain a secret anywhere. Mixes is true if a value contains a secret
	// together with other text.
	Secretive, Mixes bool
	// Hashed maps names of objects that end in a hash of a secret to the names without the hash.
	Hashed map[string]string
	// Given are the objects of the files that may contain secrets, as they are in the files, and the values
	// from which generators make Secrets. They may be missing in the result.
	Given []kinds.Object

	// Origins finds the places that set the fields of the objects.
	Origins
}

// Build builds path. It is the directory of a kustomization, a directory of *.yaml and *.yml files
// without a kustomization, or one file of objects. Build reads the files of a directory in the order of
// their names, without subdirectories. It returns an error only if the tree cannot be read or ctx ends.
// Mistakes of the user are in the result's Diags.
func Build(ctx context.Context, t tree.Tree, path string, o Options) (*Result, error) {
	whole := o.Limits.withDefaults()
	r := &Result{Origins: Origins{path: path, find: newFinder(nil, &rebuilder{})}}
	lim := whole
	if o.Small {
		lim.Duration, lim.Nodes = min(lim.Duration, smallTime), min(lim.Nodes, smallNodes)
	}
	limited, extend, stop := lim.timer(ctx)
	defer stop()

	v := newView(limited, t, lim)
	v.decryption.by, v.small = o.Decrypter, o.Small
	r.texts = &v.decryption.texts
	w := newWalker(v)
	w.small = o.Small
	w.grow = func() bool {
		if w.large || o.Grow == nil || !o.Grow() || !extend(whole) {
			return false // permanently, because files were already skipped
		}
		lim, v.lim = whole, whole
		o.Small, v.small, w.small = false, false, false
		return true
	}
	r.attempt(limited, w, &o)
	if o.Small && (w.large || ctx.Err() == nil && isTooSlow(v.failure())) {
		return nil, ErrLarge
	}
	if err := v.failure(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("build %s: %w", path, context.Cause(ctx))
		}
		if !isTooSlow(err) {
			return nil, fmt.Errorf("build %s: %w", path, err)
		}
		at := diag.Position{File: path}
		if r.plan != nil {
			at.File = r.plan.origin
		}
		w.report(timeoutDiagnostic(at, lim.Duration))
	}
	r.decrypted(v, &w.findings)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("build %s: %w", path, context.Cause(ctx))
	}
	r.Diags = w.diags.Sorted()
	r.Unset = r.onlyUnset()
	if r.Diags.HasErrors() && !r.Unset {
		r.Objects, r.Public, r.Misuses = nil, nil, nil
		r.plan, r.locator, r.find = nil, locator{}, newFinder(nil, &rebuilder{})
	}
	r.Reads = v.lookups()
	return r, nil
}

// onlyUnset reports whether all errors are about variables without a value.
func (r *Result) onlyUnset() bool {
	for _, d := range r.Diags {
		if d.Severity == diag.Error && d.Code != "unset-variable" {
			return false
		}
	}
	return r.Objects != nil && r.Diags.HasErrors()
}

// attempt reads values, walks and builds. A panic becomes a finding, because one target must not stop all
// other targets.
func (r *Result) attempt(ctx context.Context, w *walker, o *Options) {
	defer func() {
		if p := recover(); p != nil {
			w.add("build-failed", diag.Position{File: r.path}, "weir crashed in this build", "Report the bug, with the files if they are not confidential.")
		}
	}()
	o.Vars = w.view.decryption.sealed(o.Vars, o.SecretVars)
	r.vars = maps.Clone(o.Vars) // in case the files with values cannot be read
	o.Vars = w.values(o.ValueFiles, o.Vars)
	r.vars = maps.Clone(o.Vars)
	p := w.walk(r.path)
	r.Given = w.given()
	if p != nil && !w.diags.HasErrors() && !w.large {
		r.plan = p
		r.finish(ctx, p, &w.reader, *o)
	}
}

// finish runs kustomize over the walked files and substitutes the variables. It sets w.large if a small
// build must be repeated as a large one.
func (r *Result) finish(ctx context.Context, p *buildSpec, w *reader, o Options) {
	var plain built
	marked, fault := runMarked(ctx, p, o.Proof)
	if marked == nil {
		plain, fault = p.runParts(ctx, nil)
	} else {
		plain.nodes = marked.raw
		r.proof, r.marked = o.Proof, marked.marked
	}
	nodes := plain.nodes
	if fault != nil {
		w.large = w.small && fault.Code == "too-large"
		w.report(*fault)
		return
	}
	if p.view.failure() != nil {
		return
	}
	if bytes := textBytes(nodes); bytes > p.limits.TotalBytes {
		w.report(tooLarge(diag.Position{File: p.origin}, fmt.Sprintf("the build results in %d bytes; at most %d are allowed", bytes, p.limits.TotalBytes)))
		return
	}
	if cut := p.secretCut(ctx, nodes); cut != nil {
		w.report(*cut)
		return
	}
	if keys := crowdedIn(nodes); keys > 0 {
		w.report(crowded(diag.Position{File: p.origin}, keys))
		return
	}
	r.find = newFinder(nodes, &rebuilder{plan: p, limit: o.Limits.withDefaults().Duration})
	if r.find.members = newMemberIndex(plain); marked != nil {
		r.find.setWhole(marked.trace)
	}
	r.substitute(o, &w.findings) //nolint:contextcheck // Origins outlive the build and have a time limit of their own.
}

// textBytes returns the total length of all scalars.
func textBytes(nodes []*yaml.Node) (sum int64) {
	for _, n := range nodes {
		sum += int64(len(n.Value)) + textBytes(n.Content)
	}
	return sum
}

// Package kust turns a path of a tree into Kubernetes objects: a full kustomize build, then the
// substitution of ${VAR}.
//
// The flow is: walk (read every file that kustomize would reach, refuse what is remote, runs code,
// leaves the tree or would exhaust the machine, and report all faults at once), run (kustomize over
// exactly the files that were walked), substitute. The result keeps what it needs to answer on
// demand the file and line that set a field (Origins), and the paths that it looked up (package reads).
//
// A mistake of the user is always a diagnostic; an error means that the tree could not be read or
// that the context ended.
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

// Options of a build. The zero value builds with no variables and the default
// limits, and demands no variable.
type Options struct {
	// Vars holds the values for ${VAR}; SecretVars names those of them that are
	// secret.
	Vars       map[string]string
	SecretVars []string
	// ValueFiles are files of the tree with values for variables that Vars does not have. Later
	// files override earlier ones. None of them is secret.
	ValueFiles []string
	// GiveValue says how the caller of the build gives a variable a value, after
	// "give it a value".
	GiveValue string
	// Strict says for which objects every variable needs a value or a default.
	// Elsewhere a variable without either stays as it stands, because a repository
	// also holds texts that are not meant for weir. Nil means for no object.
	Strict func(ref intent.ObjectRef) bool
	// Decrypter opens the files that SOPS has encrypted; nil opens none, and each
	// is then an error.
	Decrypter *sops.Decrypter
	// Proof is the proof of an earlier build of the same files. With it only Known may be called,
	// and the marked build runs in place of the plain one.
	Proof Proof
	// Limits bound one build. Fields that are zero take their default.
	Limits Limits
	// Small ends a build with ErrLarge, before it takes much of anything, unless it is small enough
	// to run in parallel with others. Before that the build calls Grow, which reports whether it
	// may continue as a large one; nil means no.
	Small bool
	Grow  func() bool
}

// Limits bound what one build may take. A build that exceeds one gets a diagnostic.
type Limits struct {
	// FileBytes is the size of one file; default 8 MiB. DocumentBytes is that of one
	// document of YAML, and of a file that becomes data, holds values or is encrypted;
	// default 1 MiB, as Kubernetes limits an object.
	FileBytes, DocumentBytes int64
	// TotalBytes is the sum over all reads, a base that is read twice counting
	// twice, and over what patches may make of it; default 24 MiB.
	TotalBytes int64
	// Files is the number of reads, counted likewise; default 10,000.
	Files int
	// AliasNodes bounds the YAML nodes that the aliases of one file may stand for; default 10,000.
	AliasNodes int
	// Depth of nested YAML collections, and of bases in bases; default 100.
	Depth int
	// Nodes bounds the YAML nodes in the files, and those in the resulting objects; default
	// 400,000.
	Nodes int
	// Batch is the approximate number of objects that kustomize gets at a time if there are more
	// than twice as many and the result is the same; default 50.
	Batch int
	// Duration of the build; default 10 min. The CPU time of its worker ends a build
	// that takes much; this limit is for a machine that has other things to do.
	Duration time.Duration
}

// timer returns a context that ends with the time of a build. extend restarts that time unless it
// is over.
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

// ErrLarge says that a build is not small.
var ErrLarge = errors.New("the build is not small")

// The most that a small build takes. The nodes and bytes are those of its files, and of
// its objects.
const (
	smallNodes = 30_000
	smallBytes = 2 << 20
	smallTime  = 2 * time.Second
)

// Result is the result of a build. It is immutable and safe for concurrent use.
type Result struct {
	// Objects in kustomize's output order, with variables substituted; nil if
	// Diags holds an error. Only with Unset they are there all the same, good for
	// looking for more faults and for nothing else: variables without a value are
	// the only errors.
	Objects []kinds.Object
	Unset   bool
	// Diags is sorted by position.
	Diags diag.List
	// Reads holds everything that the build looked up, even if it failed.
	Reads reads.Set
	// Secrets are the values that were encrypted in the files, as they are there:
	// they must not be shown. Secretless says that some stand as placeholders, and
	// Retry that the same build may turn out otherwise later: with more keys, or if
	// nothing kills its process.
	Secrets           []string
	Secretless, Retry bool
	// Public holds the objects with stand-ins in place of secret texts; it equals Objects if they
	// contain none. Misuses lists the places where a secret is not allowed.
	Public  []kinds.Object
	Misuses []Misuse
	// Secretive says that the objects contain a secret anywhere, Mixes that a value contains one
	// together with other text.
	Secretive, Mixes bool
	// Hashed are the names of objects that end in a hash over a secret, with the names
	// without it.
	Hashed map[string]string
	// Given are objects of the files that may hold secrets, as they are written there, and
	// what generators make Secrets of, whether the build gives them or not.
	Given []kinds.Object

	// Origins say where the fields of the objects come from.
	Origins
}

// Build builds path, which is a kustomization directory, a directory without a
// kustomization file whose *.yaml and *.yml files are read in the order of their
// names (no subdirectories), or one file of objects. It returns an error only if
// the tree cannot be read or ctx ends; everything that the user wrote wrongly is
// in the result's Diags.
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
			return false // final: later reads have gaps
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

// onlyUnset reports whether variables without a value are all that is wrong.
func (r *Result) onlyUnset() bool {
	for _, d := range r.Diags {
		if d.Severity == diag.Error && d.Code != "unset-variable" {
			return false
		}
	}
	return r.Objects != nil && r.Diags.HasErrors()
}

// attempt reads values, walks and builds. A panic is a finding: one target must not stop the
// others.
func (r *Result) attempt(ctx context.Context, w *walker, o *Options) {
	defer func() {
		if p := recover(); p != nil {
			w.add("build-failed", diag.Position{File: r.path}, "weir itself failed at this build", "Report it, with the files if they may be shown.")
		}
	}()
	o.Vars = w.view.decryption.sealed(o.Vars, o.SecretVars)
	r.vars = maps.Clone(o.Vars) // where values cannot be read
	o.Vars = w.values(o.ValueFiles, o.Vars)
	r.vars = maps.Clone(o.Vars)
	p := w.walk(r.path)
	r.Given = w.given()
	if p != nil && !w.diags.HasErrors() && !w.large {
		r.plan = p
		r.finish(ctx, p, &w.reader, *o)
	}
}

// finish runs kustomize over the walked files and substitutes the variables.
func (r *Result) finish(ctx context.Context, p *plan, w *reader, o Options) {
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
		w.report(tooLarge(diag.Position{File: p.origin}, fmt.Sprintf("the build gives %d bytes; at most %d are allowed", bytes, p.limits.TotalBytes)))
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
		r.find.keep(marked.trace)
	}
	r.substitute(o, &w.findings) //nolint:contextcheck // Origins outlive the build and have a time limit of their own.
}

// textBytes is the length of all scalars.
func textBytes(nodes []*yaml.Node) (sum int64) {
	for _, n := range nodes {
		sum += int64(len(n.Value)) + textBytes(n.Content)
	}
	return sum
}

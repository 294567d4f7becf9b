package kust

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/worker"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/api/konfig"
)

// errWhole means that the objects must be built together, not in batches.
var errWhole = errors.New("the build cannot be done in batches")

// trusted is the number of objects from which weir reports a fault in a batch directly. To check it with a
// build of all objects would take minutes.
const trusted = 500

// apart has the parts of a plan, which are computed once. parts is nil if all objects are built together.
type apart struct {
	once  sync.Once
	parts *parts
}

// built has the objects of a build, in order. In a build in batches this is also the order of the members,
// because each member becomes one object.
type built struct{ nodes, members []*yaml.Node }

// build runs kustomize over the plan. If there are many objects and the result is the same, it builds them in
// batches.
func (p *buildSpec) build(ctx context.Context, fed map[string][]byte) (built, error) {
	p.apart.once.Do(func() { p.apart.parts = p.cut(p.limits.Batch) })
	if parts := p.apart.parts; parts != nil {
		b, err := p.inBatches(ctx, parts, fed)
		var fault worker.Fault
		var ended *worker.Ended
		if err == nil || errors.As(err, &ended) && (ended.Cause == worker.Killed || ended.Cause == worker.CPU) || ctx.Err() != nil || errors.Is(err, worker.ErrNodes) || errors.As(err, &fault) && len(parts.members) > trusted {
			return b, err
		}
	}
	nodes, err := worker.Run(ctx, p.job(fed), p.view.pathOf)
	return built{nodes: nodes}, err
}

// inBatches runs kustomize for every batch, in parallel. Its error is errWhole, or the error of kustomize for
// a batch.
func (p *buildSpec) inBatches(ctx context.Context, parts *parts, fed map[string][]byte) (built, error) {
	r, err := p.batchRun(parts, fed)
	if err != nil {
		return built{}, err
	}
	each, err := r.run(ctx, p.view.pathOf, len(fed) == 0)
	if err != nil {
		return built{}, err
	}
	b := built{members: slices.Concat(each...)}
	b.nodes = slices.Clone(b.members)
	ids := make(map[intent.ObjectRef]bool, len(b.nodes))
	for _, n := range b.nodes {
		id := refOf(n)
		if ids[id] {
			return built{}, errWhole // kustomize has a better message
		}
		ids[id] = true
	}
	return b, inOrder(ctx, b.nodes)
}

// batchRun prepares a run over files. fed replaces the content of some of them.
func (p *buildSpec) batchRun(parts *parts, fed map[string][]byte) (*batchRun, error) {
	whole := p.job(fed)
	r := &batchRun{parts: parts, whole: whole, docs: map[string]*yaml.Node{}, chunks: map[string][][]byte{}, files: map[string]*file{}, begun: map[string]bool{}}
	plain := len(fed) == 0 && parts.plain()
	for name, f := range p.files {
		if plain && bytes.Equal(f.content, whole.Files[name]) { // replaced content was not parsed
			r.files[name] = f
		}
	}
	for file, s := range parts.splits {
		doc := s.doc
		if _, changed := fed[file]; changed {
			if doc = parseSplit(whole.Files[file]); doc == nil {
				return nil, errWhole
			}
		}
		r.docs[file] = doc
		for name, want := range map[string]int{"resources": len(s.resources), "components": len(s.components), "patches": len(s.patches)} {
			if _, list := field(doc, name); list == nil && want > 0 || list != nil && len(list.Content) != want {
				return nil, errWhole
			}
		}
	}
	return r, nil
}

// run runs kustomize for the batches, in parallel if workers are available, and returns the objects of each.
// The error is the error of the first failed batch in their order, even if another one failed earlier.
func (r *batchRun) run(ctx context.Context, ask worker.Asker, named bool) ([][]*yaml.Node, error) {
	batches := r.parts.batches
	built, errs := make([][]*yaml.Node, len(batches)), make([]error, len(batches))
	var room allowance
	room.nodes.Store(int64(r.whole.Nodes))
	room.bytes.Store(r.whole.Bytes)
	budget := int(r.whole.Bytes)
	for _, content := range r.whole.Files {
		budget += 2 * len(content)
	}
	var failed atomic.Bool
	var runs errgroup.Group
	runs.SetLimit(runtime.GOMAXPROCS(0))
	for i, b := range batches {
		if failed.Load() {
			break // earlier batches continue to their end
		}
		if built[i] != nil { // read has built it
			if errs[i] = room.spend(built[i]); errs[i] != nil {
				break
			}
			continue
		}
		j, err := r.job(b)
		if err != nil {
			errs[i] = err
			break
		}
		for _, content := range j.Files {
			budget -= len(content)
		}
		if budget < 0 { // every batch includes the same kustomizations, and the objects that it mentions
			errs[i] = errWhole
			break
		}
		build := func() error {
			if built[i], errs[i] = r.one(ctx, j, b, ask, named); errs[i] == nil {
				errs[i] = room.spend(built[i])
			}
			if errs[i] != nil {
				failed.Store(true)
			}
			return nil
		}
		if i == 0 { // alone, so that objects that are too expensive cost only one batch
			runs.Go(build)
			r.read(built)
			_ = runs.Wait()
			continue
		}
		runs.Go(build)
	}
	_ = runs.Wait()
	return built, cmp.Or(errs...)
}

// allowance is the remaining budget for the objects of all batches.
type allowance struct{ nodes, bytes atomic.Int64 }

func (a *allowance) spend(nodes []*yaml.Node) error {
	for _, n := range nodes {
		if a.nodes.Add(-int64(nodeCount(n))) < 0 {
			return worker.ErrNodes
		}
	}
	if a.bytes.Add(-textBytes(nodes)) < 0 {
		return errWhole // too large in any case; a worker finds that out with less memory of this process
	}
	return nil
}

// one runs kustomize for one batch, with j as its job.
func (r *batchRun) one(ctx context.Context, j *worker.Job, b batch, ask worker.Asker, named bool) ([]*yaml.Node, error) {
	nodes, err := worker.Run(ctx, j, ask)
	if err != nil {
		return nil, err
	}
	return r.own(b, nodes, named)
}

// own returns the objects of the batch itself, without the other objects of its build.
func (r *batchRun) own(b batch, nodes []*yaml.Node, named bool) (own []*yaml.Node, err error) {
	in := slices.Concat(b.others, numbers(b.from, b.to))
	slices.Sort(in)
	if len(nodes) != len(in) {
		return nil, errWhole
	}
	for i, n := range nodes {
		l := r.parts.members[in[i]]
		if text(n, "kind") != l.kind || named && !slices.Contains(l.names, text(n, "metadata", "name")) {
			return nil, errWhole
		}
		if in[i] >= b.from && in[i] < b.to {
			own = append(own, n)
		}
	}
	return own, nil
}

func numbers(from, to int) (out []int) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

func nodeCount(n *yaml.Node) int {
	sum := 1
	for _, c := range n.Content {
		sum += nodeCount(c)
	}
	return sum
}

// batchRun makes the jobs of batches from the job for all objects.
type batchRun struct {
	parts  *parts
	whole  *worker.Job
	docs   map[string]*yaml.Node // the kustomizations
	chunks map[string][][]byte   // the documents of files of objects
	// files has the files whose objects may be used as they were read. begun marks files after their first
	// batch.
	files map[string]*file
	begun map[string]bool
	spent atomic.Int64
}

// document returns the text of a member.
func (r *batchRun) document(l *member) (text []byte, ok bool) {
	chunks, ok := r.chunks[l.file]
	if !ok {
		chunks = documents(r.whole.Files[l.file])
		r.chunks[l.file] = chunks
	}
	if l.doc >= len(chunks) {
		return nil, false
	}
	return chunks[l.doc], true
}

// job returns the job of a batch: the same kustomizations without the entries that it does not need.
func (r *batchRun) job(b batch) (*worker.Job, error) {
	j := *r.whole
	j.Small, j.Unsorted, j.Spent = true, true, &r.spent
	j.Files, j.Paths = map[string][]byte{}, map[string]worker.Path{}
	for _, i := range slices.Sorted(slices.Values(slices.Concat(b.others, numbers(b.from, b.to)))) {
		l := r.parts.members[i]
		text, ok := r.document(l)
		if !ok {
			return nil, errWhole
		}
		content := slices.Clip(j.Files[l.file])
		if len(content) > 0 {
			content = append(content, "---\n"...)
		}
		j.Files[l.file] = append(content, text...)
	}
	if _, err := r.split(&j, r.parts.root, b); err != nil {
		return nil, err
	}
	return &j, nil
}

// split adds a kustomization to the job of a batch, reduced to the resources, components and patches that
// the batch needs. It reports whether the batch needs any of its resources or components.
func (r *batchRun) split(j *worker.Job, s *split, b batch) (bool, error) {
	resources, ofResources, err := r.needs(j, s.resources, b)
	if err != nil {
		return false, err
	}
	components, ofComponents, err := r.needs(j, s.components, b)
	if err != nil {
		return false, err
	}
	needed := ofResources || ofComponents
	if !needed && !s.always && s != r.parts.root {
		return false, nil
	}
	patches := func(i int) bool {
		t := s.patches[i]
		return t.any || slices.ContainsFunc(t.members, func(l int) bool { return b.from <= l && l < b.to })
	}
	doc, cut := without(r.docs[s.file], map[string]func(int) bool{"resources": resources, "components": components, "patches": patches})
	j.Files[s.file] = r.whole.Files[s.file]
	if cut {
		if j.Files[s.file], err = yaml.Marshal(doc); err != nil {
			return false, errWhole
		}
	}
	for i, t := range s.patches {
		if t.file != "" && patches(i) {
			j.Files[t.file] = r.whole.Files[t.file]
		}
	}
	for _, file := range s.configs {
		j.Files[file] = r.whole.Files[file]
	}
	r.paths(j, s)
	return needed, nil
}

// needs adds the kustomizations of a list to a job. keep selects the entries that stay, and needed
// reports whether the job needs any of them.
func (r *batchRun) needs(j *worker.Job, list []entry, b batch) (keep func(int) bool, needed bool, err error) {
	kept := make([]bool, len(list))
	for i, e := range list {
		if e.child == nil {
			_, kept[i] = j.Files[e.file]
		} else if kept[i], err = r.split(j, e.child, b); err != nil {
			return nil, false, err
		}
		needed = needed || kept[i]
		kept[i] = kept[i] || e.child != nil && e.child.always
	}
	return func(i int) bool { return kept[i] }, needed, nil
}

// without returns a kustomization with only some entries of its lists. cut is true if an entry is missing.
func without(doc *yaml.Node, lists map[string]func(int) bool) (out *yaml.Node, cut bool) {
	out = new(*doc)
	out.Content = slices.Clone(doc.Content)
	for name, keep := range lists {
		for i := 0; i+1 < len(out.Content); i += 2 {
			if list := out.Content[i+1]; out.Content[i].Value == name {
				out.Content[i+1] = only(list, keep)
				cut = cut || len(out.Content[i+1].Content) < len(list.Content)
			}
		}
	}
	return out, cut
}

// doesMore reports whether a kustomization does more than list resources.
func doesMore(doc *yaml.Node) bool {
	for i := 0; i+1 < len(doc.Content); i += 2 {
		switch doc.Content[i].Value {
		case "apiVersion", "kind", "metadata", "resources":
		default:
			return true
		}
	}
	return false
}

// paths adds the paths that kustomize looks up for a kustomization to the job.
func (r *batchRun) paths(j *worker.Job, s *split) {
	add := func(p string) {
		if to, ok := r.whole.Paths[p]; ok {
			j.Paths[p] = to
		}
	}
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		add(path.Join(s.dir, name))
	}
	add(s.dir)
	add(s.file)
	for _, e := range slices.Concat(s.resources, s.components) {
		if e.file != "" && j.Files[e.file] != nil {
			add(e.file)
		}
	}
	for _, file := range s.configs {
		add(file)
	}
}

// only returns a list with only some of its entries.
func only(list *yaml.Node, keep func(int) bool) *yaml.Node {
	out := *list
	out.Content = nil
	for i, e := range list.Content {
		if keep(i) {
			out.Content = append(out.Content, e)
		}
	}
	return &out
}

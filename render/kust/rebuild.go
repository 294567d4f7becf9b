package kust

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// rebuilder builds a plan again to answer questions about origins: with marks, with changes, or without some
// parts. All its builds together take at most limit.
type rebuilder struct {
	plan  *buildSpec // nil if nothing can be built
	limit time.Duration
	spent atomic.Int64 // nanoseconds
	cuts  []*yaml.Node // parts that every build leaves out
}

// without returns a rebuilder that leaves out more parts, with the remaining time.
func (r *rebuilder) without(cut []*yaml.Node) *rebuilder {
	out := &rebuilder{plan: r.plan, limit: r.limit, cuts: slices.Concat(r.cuts, cut)}
	out.spent.Store(r.spent.Load())
	return out
}

// left returns the remaining time for builds.
func (r *rebuilder) left() time.Duration { return r.limit - time.Duration(r.spent.Load()) }

// mark returns the sources of the plan as changed by a marker. ok is false if they cannot be marked.
func (r *rebuilder) mark(m *marker) (fed map[string][]byte, ok bool) {
	if r.plan == nil {
		return nil, false
	}
	m.plan = r.plan
	m.cut = append(slices.Clip(m.cut), r.cuts...)
	return m.markAll()
}

// run builds the plan as changed by a marker. It returns nil if that fails.
func (r *rebuilder) run(m *marker) []*yaml.Node {
	fed, ok := r.mark(m)
	left := r.left()
	if !ok || left <= 0 {
		return nil
	}
	start := time.Now()
	nodes := r.plan.again(fed, left)
	r.spent.Add(int64(time.Since(start)))
	return nodes
}

// runBatch builds one batch of the plan as changed by a marker, and returns the batch's own objects. It
// returns nil if that fails.
func (r *rebuilder) runBatch(m *marker, parts *parts, b batch) []*yaml.Node {
	start := time.Now()
	defer func() { r.spent.Add(int64(time.Since(start))) }()
	left := r.left()
	fed, ok := r.mark(m)
	if !ok || left <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), left, errTooSlow)
	defer cancel()
	fork := *r.plan
	fork.view = r.plan.view.fork(ctx)
	run, err := fork.batchRun(parts, fed)
	if err != nil {
		return nil
	}
	j, err := run.job(b)
	if err != nil {
		return nil
	}
	marked, err := run.one(ctx, j, b, fork.view.pathOf, false)
	if err != nil {
		return nil
	}
	return marked
}

// again builds the plan once more, with its own counters. It returns nil if the build fails.
func (p *buildSpec) again(fed map[string][]byte, limit time.Duration) []*yaml.Node {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errTooSlow)
	defer cancel()
	fork := *p
	fork.view = p.view.fork(ctx)
	nodes, fault := fork.run(ctx, fed)
	if fault != nil {
		return nil
	}
	return nodes
}

// A build with one change answers for all fields of all objects. If all objects of a fleet have a prefix, for
// example, the question is the same for each of them. So weir caches the fields that a change affects.

// changed identifies a change: a scalar of a kustomization with another text, or an entry that is left out,
// which has no text. key identifies a build with marks only at one key.
type changed struct {
	at        *yaml.Node
	text, key string
}

// effect is the result of a changed build. Fields are identified by fieldID.
type effect struct {
	follows map[string]bool  // fields that have another value, or are missing
	lost    map[int]bool     // objects that are missing
	leaves  map[string]*leaf // leaves of the marks
}

// fieldID identifies a field of the raw build.
func fieldID(object int, p intent.Path) string { return strconv.Itoa(object) + " " + p.String() }

// effects runs each changed build once and caches the results.
type effects struct {
	traces  *tracer
	mu      sync.Mutex
	results map[changed]*effect
}

// effectOf returns the effect of the change c, which m makes, on the build. It builds once for each change.
func (s *effects) effectOf(c changed, m *marker) *effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.results[c]; e != nil {
		return e
	}
	t := s.traces.with(m)
	e := &effect{follows: map[string]bool{}, lost: map[int]bool{}, leaves: map[string]*leaf{}}
	for i, n := range s.traces.raw {
		if t.objects[i].node == nil {
			e.lost[i] = true
			continue
		}
		v := effectWalk{effect: e, trace: t, object: i, key: c.key}
		v.visit(n, t.objects[i].node)
	}
	s.results[c] = e
	return e
}

// effectWalk compares an object with the same object of the changed build.
type effectWalk struct {
	*effect
	trace  *trace
	object int
	key    string // the key of the fields whose leaves are recorded
	path   intent.Path
}

// visit compares the scalars at and below a node. now is nil if the node is missing.
func (v *effectWalk) visit(was, now *yaml.Node) {
	was, now = deref(was), deref(now)
	below := func(elem string, c *yaml.Node) {
		var m *yaml.Node
		if now != nil {
			m = child(now, elem)
		}
		v.path = append(v.path, elem)
		v.visit(c, m)
		v.path = v.path[:len(v.path)-1]
	}
	switch was.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(was.Content); i += 2 {
			below(deref(was.Content[i]).Value, was.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, c := range was.Content {
			below(intent.Index(i), c)
		}
	default:
		if now == nil || now.Value != was.Value {
			v.follows[fieldID(v.object, v.path)] = true
		}
		if v.key == "" || lastKey(v.path) != v.key || now == nil || now.Kind != yaml.ScalarNode {
			return
		}
		if l := v.trace.credited(was, now, v.path); l != nil {
			v.leaves[fieldID(v.object, v.path)] = l
		}
	}
}

// moves reports whether a field differs in the changed build.
func (e *effect) moves(f located) bool {
	return !e.lost[f.object] && e.follows[fieldID(f.object, f.path)]
}

package kust

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// For a build in batches, the document of each object is known, and what may have changed the
// object on the way (parts.go). So most questions need no marked build, and all others only that of
// one batch.

// direct maps the members of a build in batches to its objects.
type direct struct {
	// member is the index of the member that an object of the raw build was.
	member map[*yaml.Node]int
	// object holds the index in the raw build of the object that a member has become.
	object []int

	mu     sync.Mutex
	traces map[int]*trace // of batches, by the first member; nil those that fail
}

// keepMembers notes what the objects of the raw build were.
func (r *Result) keepMembers(b built) {
	if len(b.members) == 0 {
		return
	}
	r.direct.member, r.direct.object = make(map[*yaml.Node]int, len(b.members)), make([]int, len(b.members))
	for i, n := range b.members {
		r.direct.member[n] = i
	}
	for i, n := range b.nodes {
		r.direct.object[r.direct.member[n]] = i
	}
}

// memberOf is the member that an object was, where that is known.
func (o *Origins) memberOf(object int) (i int, l *member, ok bool) {
	if i, ok = o.direct.member[o.raw[object]]; !ok || o.plan == nil || len(o.cuts) > 0 {
		return 0, nil, false
	}
	return i, o.plan.apart.parts.members[i], true
}

// documentOf is the document that an object was. A patch may have made too much of another.
func (o *Origins) documentOf(object int) (sourceDoc, bool) {
	if _, l, ok := o.memberOf(object); ok && !l.patched {
		f := o.plan.files[l.file]
		return sourceDoc{location: location{file: f.path, source: f.content}, node: f.docs[l.doc]}, true
	}
	t := o.traceAt(object)
	if doc := t.objects[object].doc; doc >= 0 {
		return t.docs[doc], true
	}
	return sourceDoc{}, false
}

func (o *Origins) hasDocument(object int) bool {
	_, ok := o.documentOf(object)
	return ok
}

// directLeaf is leafOf without a build, for a field below spec that is unchanged from its object's
// document, if nothing else can have set it: no patch is for the object, and labels, annotations,
// namespaces and prefixes do not reach such fields in the objects of Cluster API. An unchanged
// reference to another object is also from the document. sure is false if only a build can answer.
func (o *Origins) directLeaf(f located) (l *leaf, up int, ok, sure bool) {
	_, made, known := o.memberOf(f.object)
	switch {
	case !known || made.patched || len(f.path) == 0 || f.node == nil:
		return nil, 0, false, false
	case named(f.path):
		return nil, 0, false, true // no mark says what renamed it
	case f.path[0] != "spec":
		return nil, 0, false, false
	}
	ref := intent.ObjectRef{APIVersion: text(o.raw[f.object], "apiVersion")}
	if p := o.plan.apart.parts; p.wide || !strings.HasSuffix(ref.Group(), ".x-k8s.io") {
		return nil, 0, false, false
	}
	d, _ := o.documentOf(f.object)
	s := directSearch{doc: d, steps: make([]step, 0, len(f.path)+4)}
	n := d.node
	for _, elem := range f.path {
		if n = s.down(n, elem); n == nil {
			return nil, 0, false, false
		}
	}
	if f.node.Kind == yaml.ScalarNode && isNull(f.node) {
		return nil, 0, false, false // no mark accounts for it, but a probe may
	}
	l, up = s.find(f.node, n, 0)
	return l, up, l != nil, !s.unsure
}

// named reports whether a path is that of an object's name or namespace.
func named(p intent.Path) bool {
	return len(p) == 2 && p[0] == "metadata" && (p[1] == "name" || p[1] == "namespace")
}

// renamed is the prefix, the suffix or the namespace that gave an object another name than
// its document has, where there is one alone. No patch changes names in a plan in batches.
func (o *Origins) renamed(f located) (setter, bool) {
	_, made, known := o.memberOf(f.object)
	if !known || !named(f.path) {
		return setter{}, false
	}
	was, now := text(o.plan.files[made.file].docs[made.doc], f.path...), f.node.Value
	list := o.candidates(f)
	if was == now || len(list) != 1 {
		return setter{}, false
	}
	switch by := list[0]; by.how {
	case NamePrefix:
		return by.setter, now == by.changed.at.Value+was
	case NameSuffix:
		return by.setter, now == was+by.changed.at.Value
	case Namespace:
		return by.setter, now == by.changed.at.Value
	}
	return setter{}, false
}

// directSearch goes through a field of the raw build and of a document at once.
type directSearch struct {
	doc    sourceDoc
	steps  []step
	unsure bool
}

// down is the child of a document's node, which becomes the last step; nil where it cannot
// be known what kustomize has made of it.
func (s *directSearch) down(n *yaml.Node, elem string) *yaml.Node {
	var key, val *yaml.Node
	switch {
	case n.Anchor != "" || isDirective(elem):
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			switch k := n.Content[i]; {
			case k.Kind != yaml.ScalarNode || k.Value == "<<":
				return nil
			case k.Value == elem:
				key, val = k, n.Content[i+1]
			}
		}
	case n.Kind == yaml.SequenceNode:
		if i, ok := index(elem); ok && i < len(n.Content) {
			val = n.Content[i]
		}
	}
	if val == nil || val.Kind == yaml.AliasNode || val.Anchor != "" {
		return nil
	}
	s.steps = append(s.steps, step{elem: elem, key: key, val: val})
	return val
}

// find returns the first scalar at or below a node, and how many steps below.
func (s *directSearch) find(raw, n *yaml.Node, below int) (*leaf, int) {
	raw = deref(raw)
	switch {
	case raw.Kind != n.Kind, raw.Kind == yaml.ScalarNode && raw.Value != n.Value:
		s.unsure = true
		return nil, 0
	case raw.Kind == yaml.ScalarNode:
		if isNull(n) {
			return nil, 0
		}
		return &leaf{location: s.doc.location, node: n, steps: append([]step(nil), s.steps...), from: source{how: Base}}, below
	}
	for i, c := range raw.Content {
		elem := intent.Index(i)
		if raw.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			elem = raw.Content[i-1].Value
		}
		v := s.down(n, elem)
		if v == nil {
			s.unsure = true
			return nil, 0
		}
		if l, up := s.find(c, v, below+1); l != nil || s.unsure {
			return l, up
		}
		s.steps = s.steps[:len(s.steps)-1]
	}
	return nil, 0
}

// traceAt returns a trace with the full knowledge of trace about one object: that of its batch, if
// the build has batches and no earlier question needed more.
func (o *Origins) traceAt(object int) *trace {
	i, _, ok := o.memberOf(object)
	if !ok {
		return o.trace()
	}
	parts := o.plan.apart.parts
	at := 0
	for parts.batches[at].to <= i {
		at++
	}
	o.direct.mu.Lock()
	defer o.direct.mu.Unlock()
	t, done := o.direct.traces[at]
	if !done {
		if t = o.traceBatch(parts, parts.batches[at]); o.direct.traces == nil {
			o.direct.traces = map[int]*trace{}
		}
		o.direct.traces[at] = t
	}
	if t == nil {
		return o.trace()
	}
	return t
}

// traceBatch runs the marked build of a batch; nil if that fails, or would be no build of
// the batch alone.
func (o *Origins) traceBatch(parts *parts, b batch) *trace {
	start := time.Now()
	defer func() { o.spent.Add(int64(time.Since(start))) }()
	left := o.limits.Duration - time.Duration(o.spent.Load())
	m := &marker{plan: o.plan, needed: map[*yaml.Node]bool{}}
	for _, i := range append(numbers(b.from, b.to), b.others...) {
		l := parts.members[i]
		m.needed[o.plan.files[l.file].docs[l.doc]] = true
	}
	fed, ok := m.markAll()
	if !ok || left <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), left, errTooSlow)
	defer cancel()
	fork := *o.plan
	fork.view = o.plan.view.fork(ctx)
	r, err := fork.batchRun(parts, fed)
	if err != nil {
		return nil
	}
	j, err := r.job(b)
	if err != nil {
		return nil
	}
	marked, err := r.one(ctx, j, b, fork.view.pathOf, false)
	if err != nil {
		return nil
	}
	t := &trace{objects: make([]traced, len(o.raw)), leaves: m.leaves, docs: m.docs}
	for i := range t.objects {
		t.objects[i].doc = -1
	}
	for i, n := range marked {
		to := &t.objects[o.direct.object[b.from+i]]
		to.node = n
		if doc, err := strconv.Atoi(text(n, "metadata", "annotations", docKey)); err == nil && doc < len(t.docs) {
			to.doc = doc
		}
	}
	return t
}

package kust

import (
	"strconv"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// A build that is changed in one place answers for each field of each object at once: a
// fleet whose objects all have a prefix asks the same of every one of them. So what came
// of such a build is kept, as the fields that it bears on.

// changed is the difference of a build: a scalar of a kustomization has another text, or an entry
// is left out, which has none. key identifies marks at one key alone.
type changed struct {
	at        *yaml.Node
	text, key string
}

// effect is the result of a changed build. Fields are identified by fieldID.
type effect struct {
	follows map[string]bool  // fields that have another value there, or are not there
	lost    map[int]bool     // objects that are not found there
	leaves  map[string]*leaf // leaves that marks lead to
}

// fieldID identifies a field of the raw build.
func fieldID(object int, p intent.Path) string { return strconv.Itoa(object) + " " + p.String() }

// effectOf returns the result of the build that m changes, which is run once.
func (o *Origins) effectOf(c changed, m *marker) *effect {
	o.changing.Lock()
	defer o.changing.Unlock()
	if e := o.effects[c]; e != nil {
		return e
	}
	t := o.traceWith(m)
	e := &effect{follows: map[string]bool{}, lost: map[int]bool{}, leaves: map[string]*leaf{}}
	for i, n := range o.raw {
		if t.objects[i].node == nil {
			e.lost[i] = true
			continue
		}
		v := effectWalk{effect: e, trace: t, object: i, key: c.key}
		v.visit(n, t.objects[i].node)
	}
	if o.effects == nil {
		o.effects = map[changed]*effect{}
	}
	o.effects[c] = e
	return e
}

// effectWalk goes through an object and what has become of it.
type effectWalk struct {
	*effect
	trace  *trace
	object int
	key    string // that of the fields whose leaves are wanted
	path   intent.Path
}

// visit compares the scalars at and below a node; now is nil if the node is gone.
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

// withoutOnce is without, for the parts to leave out to see what a change does.
func (o *Origins) withoutOnce(c changed, cut []*yaml.Node) *Origins {
	o.changing.Lock()
	defer o.changing.Unlock()
	s, done := o.pruned[c]
	if !done {
		s = o.without(cut)
		if o.pruned == nil {
			o.pruned = map[changed]*Origins{}
		}
		o.pruned[c] = s
	}
	return s
}

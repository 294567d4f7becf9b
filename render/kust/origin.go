package kust

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/variables"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/standin"
	"go.yaml.in/yaml/v3"
)

// Origins finds the file and line that set a field of a build. Reviews and all diagnostics about objects use
// it. kustomize's own originAnnotations only name the file of an object, and its transformerAnnotations the
// changes. Neither has fields or lines.
//
// Terms: a leaf is a scalar of a source, with its path there. A source is a file of objects, a patch, or a
// field of a kustomization. The raw build is kustomize's output before variables are substituted. A question
// names a field of the substituted object. The locator finds that field in the raw build, where a key may
// still contain a variable. The finder answers for the raw build.
//
// The finder tries these steps until one has the answer:
//
//  1. The marked build (tracer, marker). The build runs a second time, with a mark at the end of
//     every scalar of every object and patch that could become part of an object. Marks survive
//     merges, JSON patches, replacements and copies, because for kustomize they are part of the
//     values. The marks in the output identify the leaves of the fields. An annotation
//     identifies the document of each object.
//  2. Fields that decide how a build proceeds (names, kinds, selectors, merge keys) have no mark,
//     because a mark would change the build. An object's own apiVersion, kind, name and namespace
//     come from its document if they are unchanged there.
//  3. A mapping or a sequence has the place of the first scalar below it that has a leaf: the key
//     at the same distance above that leaf in the source.
//  4. Probes (probe), for a scalar without a mark. weir changes one thing (an entry of images, a
//     prefix, a replacement) and builds again. If the field changes too, this thing has set it. The
//     field of a generated object leads to its generator's entry. If marks on all scalars change
//     how the build proceeds, the last probe marks only the scalars at the field's own key.
//
// These rules make sure that weir never shows a wrong line. No line is better.
//
//   - A mark counts only if the marked field without its marks equals the field of the raw build, and if the
//     leaf's path in its source leads to the path of the field.
//   - If a file contains text like a mark, or the marked build fails, no mark counts.
//   - A name that several entries of generators share has no origin.
//   - Origins cost nothing until the first question. The marked build runs once, and the results of probes
//     are cached. For long-term use, weir keeps only the Proof of a build (proof.go). With it the marked
//     build alone can answer later.
//   - A question runs at most maxProbes builds. All questions of a result together take at most the time of
//     one build (rebuilder).
//
// Chain goes back further. It removes the last change of the field, builds again, and asks the same question
// about that build, until it reaches the base. Every such build has its own finder.
//
// Origins is part of this package because it runs the plan of the build again, and because the diagnostics of
// the substitution need it during the build.
type Origins struct {
	locator
	vars  map[string]string
	texts *standin.Set
	path  string
	plan  *buildSpec
	find  *finder
	// proof is not nil if the raw build was made by removing the marks of a marked build. marked has the
	// marked objects.
	proof  Proof
	marked []*yaml.Node
}

// Origin returns the place that set the field at p of an object. For a scalar this is the value in the base,
// the patch, the kustomization's field or the generator's entry. For a mapping or a sequence it is the key
// there. ok is false if the field does not exist, or if the place is uncertain.
//
// The first call for a result builds it again, and a few fields cost more builds. Answers are cached. Origin
// is safe for concurrent use.
func (o *Origins) Origin(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := o.locate(ref, p)
	if !ok || f.missing > 0 {
		return diag.Position{}, false
	}
	return o.find.position(f, false)
}

// KeyOrigin returns the place of the key of a field, or of the item of a sequence. It is for diagnostics
// about the key itself, such as unknown fields.
func (o *Origins) KeyOrigin(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := o.locate(ref, p)
	if !ok || f.missing > 0 {
		return diag.Position{}, false
	}
	return o.find.position(f, true)
}

// Near returns the origin of the field at p. If the field is missing or its place is unknown, it returns the
// origin of the nearest known parent, and finally the object's first line.
func (o *Origins) Near(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := o.locate(ref, p)
	if !ok {
		return diag.Position{}, false
	}
	for n := len(p) - f.missing; n > 0; n-- {
		if f, ok = o.locate(ref, p[:n]); ok {
			if at, ok := o.find.position(f, n < len(p)); ok {
				return at, true
			}
		}
	}
	if d, ok := o.find.documentOf(f.object); ok {
		return d.location.node(d.node), true
	}
	return diag.Position{}, false
}

// Renamed returns the name in the build of the object that is named oldName in the files, if a prefix, a
// suffix or a hash changed it. A reference that still contains oldName is broken. If the object is used
// several times, Renamed returns its first name in the build.
func (o *Origins) Renamed(kind, oldName string) (newName string, ok bool) {
	// Usually no file has such an object. To find that out needs no build.
	o.index()
	if !slices.ContainsFunc(o.names[kind], func(name string) bool { return name != oldName }) {
		return "", false
	}
	t := o.find.all()
	for i, made := range t.objects {
		if made.doc < 0 || i >= len(o.objects) || o.objects[i].Ref.Kind != kind {
			continue
		}
		was, _ := variables.Substitute(text(t.docs[made.doc].node, "metadata", "name"), o.vars)
		if now := o.objects[i].Ref.Name; was == oldName && now != oldName {
			return now, true
		}
	}
	return "", false
}

// within returns the place of a byte of the scalar at p: its line if the scalar is a literal block, and
// otherwise the place of the scalar.
func (o *Origins) within(ref intent.ObjectRef, p intent.Path, offset int) diag.Position {
	f, ok := o.locate(ref, p)
	if !ok || f.node == nil {
		near, _ := o.Near(ref, p)
		return near
	}
	l, up, ok := o.find.leafOf(f)
	if !ok || up != 0 || l.location.scalar != nil || l.node.Style&yaml.LiteralStyle == 0 || offset > len(f.node.Value) {
		near, _ := o.Near(ref, p)
		return near
	}
	before := f.node.Value[:offset]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return location{file: l.location.file, scalar: l.node, source: l.location.source}.at(line, column)
}

// locator finds fields of the substituted objects in the raw build.
type locator struct {
	objects []kinds.Object // with variables substituted, and with stand-ins for secrets
	raw     []*yaml.Node   // before substitution, parallel to objects

	indexing sync.Once
	byRef    map[intent.ObjectRef]int
	names    map[string][]string // of the objects of each kind, at most two names
}

// located is a field of the raw build.
type located struct {
	object  int
	path    intent.Path // in the raw build, where keys may contain variables
	node    *yaml.Node  // nil if elements are missing
	missing int         // the number of elements at the end of the path that do not exist
}

// index returns the index of each object.
func (l *locator) index() map[intent.ObjectRef]int {
	l.indexing.Do(func() {
		l.byRef, l.names = make(map[intent.ObjectRef]int, len(l.objects)), map[string][]string{}
		for i := len(l.objects) - 1; i >= 0; i-- {
			ref := l.objects[i].Ref
			l.byRef[ref] = i
			if names := l.names[ref.Kind]; len(names) < 2 && !slices.Contains(names, ref.Name) {
				l.names[ref.Kind] = append(names, ref.Name)
			}
		}
	})
	return l.byRef
}

// locate converts a path of the substituted object to a path of the raw object.
func (l *locator) locate(ref intent.ObjectRef, p intent.Path) (located, bool) {
	i, ok := l.index()[ref]
	if !ok || i >= len(l.raw) { // a failed build has no raw objects
		return located{}, false
	}
	f := located{object: i, path: make(intent.Path, 0, len(p)), node: l.raw[i]}
	done := l.objects[i].Node
	for n, elem := range p {
		at := position(done, elem)
		if at < 0 {
			f.node, f.missing = nil, len(p)-n
			return f, true
		}
		if done.Kind == yaml.MappingNode {
			elem = f.node.Content[at-1].Value
		}
		f.path = append(f.path, elem)
		done, f.node = deref(done.Content[at]), deref(f.node.Content[at])
	}
	return f, true
}

// position returns the index in a node's content of the value for a path element.
func position(n *yaml.Node, elem string) int {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == elem {
				return i + 1
			}
		}
	case yaml.SequenceNode:
		if i, ok := index(elem); ok && i < len(n.Content) {
			return i
		}
	}
	return -1
}

package kust

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// marker rewrites the sources of a plan with their scalars marked.
type marker struct {
	// only selects the scalars to mark. Nil selects all.
	only func(n *yaml.Node, steps []step) bool
	// typed changes numbers to other numbers instead of marking them.
	typed bool
	// needed limits the objects to some documents if the build needs only these. Nil means all.
	needed map[*yaml.Node]bool
	// alter has new texts for scalars of kustomizations.
	alter map[*yaml.Node]string
	// cut lists nodes of kustomizations and patches to leave out: list entries and values of keys.
	cut []*yaml.Node

	plan   *buildSpec
	fed    map[string][]byte
	leaves []leaf
	docs   []sourceDoc
	// fixed has the keys whose values decide how the build proceeds. JSON patches test them, or replacements
	// use them to select list items.
	fixed map[string]bool
	// selects is true if a patch selects objects by labels or annotations.
	selects bool
}

// markAll marks all sources and returns their new contents. ok is false if the sources contain text like a
// mark.
func (m *marker) markAll() (fed map[string][]byte, ok bool) {
	m.fed, m.fixed = map[string][]byte{}, map[string]bool{}
	for _, f := range m.plan.files {
		if bytes.Contains(f.content, []byte(markStart)) || bytes.Contains(f.content, []byte(docKey)) {
			return nil, false
		}
	}
	for _, k := range m.plan.kusts {
		m.learn(k)
	}
	for _, k := range m.plan.kusts {
		for _, f := range k.objects {
			if err := m.objectFile(f); err != nil {
				return nil, false
			}
		}
	}
	for _, k := range m.plan.kusts {
		if err := m.kustomization(k); err != nil {
			return nil, false
		}
	}
	return m.fed, true
}

// learn collects the values of a kustomization that must not be marked, because they decide how the build
// proceeds: in fixed and selects.
func (m *marker) learn(k *kust) {
	for _, p := range k.patches {
		for _, name := range []string{"labelSelector", "annotationSelector"} {
			if text(p.target, name) != "" {
				m.selects = true
			}
		}
		for _, doc := range p.docs {
			for _, op := range operations(doc) {
				if text(op, "op") == "test" {
					tokens := pointer(text(op, "path"))
					m.fixed[tokens[len(tokens)-1]] = true
				}
			}
		}
	}
	var paths []string
	if _, v := foldedField(k.doc, "replacements"); v != nil {
		paths = append(paths, fieldPaths(v)...)
	}
	for _, f := range m.plan.files {
		for _, doc := range f.docs {
			if text(doc, "apiVersion") == "" || text(doc, "kind") == "ReplacementTransformer" {
				paths = append(paths, fieldPaths(doc)...)
			}
		}
	}
	for _, p := range paths {
		for _, part := range strings.Split(p, "[")[1:] {
			if key, _, ok := strings.Cut(part, "="); ok {
				m.fixed[key] = true
			}
		}
	}
}

// fieldPaths collects the scalars at fieldPath and fieldPaths below n.
func fieldPaths(n *yaml.Node) []string {
	var out []string
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			switch n.Content[i-1].Value {
			case "fieldPath":
				out = append(out, c.Value)
				continue
			case "fieldPaths":
				for _, p := range c.Content {
					out = append(out, p.Value)
				}
				continue
			}
		}
		out = append(out, fieldPaths(c)...)
	}
	return out
}

// operations returns the entries of a JSON patch, or nil.
func operations(doc *yaml.Node) []*yaml.Node {
	if doc == nil || doc.Kind != yaml.SequenceNode {
		return nil
	}
	var ops []*yaml.Node
	for _, c := range doc.Content {
		if c = deref(c); c.Kind == yaml.MappingNode && text(c, "op") != "" {
			ops = append(ops, c)
		}
	}
	return ops
}

// pointer splits a JSON pointer. It returns at least one token.
func pointer(p string) []string {
	tokens := strings.Split(strings.TrimPrefix(p, "/"), "/")
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return tokens
}

// objectFile marks the objects of a file, and stores the new content in fed. It handles each file once, and
// skips files that become data of an object. Documents that the build does not need become a placeholder.
// The items of a List are marked as objects of their own.
func (m *marker) objectFile(f *file) error {
	if _, done := m.fed[f.path]; done || f.data {
		return nil
	}
	var docs []*yaml.Node
	for _, doc := range f.docs {
		if m.needed != nil && !m.needed[doc] {
			docs = append(docs, scalar("left out"))
			continue
		}
		c := copyNode(doc)
		docs = append(docs, c)
		_, items := field(doc, "items")
		if items == nil || items.Kind != yaml.SequenceNode || !strings.HasSuffix(text(doc, "kind"), "List") {
			m.object(location{file: f.path, source: f.content}, doc, c)
			continue
		}
		_, copies := field(c, "items")
		for i := range items.Content {
			m.object(location{file: f.path, source: f.content}, deref(items.Content[i]), deref(copies.Content[i]))
		}
	}
	out, err := encodeDocuments(docs)
	m.fed[f.path] = out
	return err
}

// object marks one object of a file of resources, and adds an annotation with its number.
func (m *marker) object(p location, orig, c *yaml.Node) {
	m.merge(p, orig, c, source{how: Base})
	_, meta := field(c, "metadata")
	if meta == nil || meta.Kind != yaml.MappingNode {
		return
	}
	_, ann := field(meta, "annotations")
	if ann == nil || ann.Kind != yaml.MappingNode {
		removeField(meta, "annotations")
		ann = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		meta.Content = append(meta.Content, scalar("annotations"), ann)
	}
	ann.Content = append(ann.Content, scalar(docKey),
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: strconv.Itoa(len(m.docs))})
	m.docs = append(m.docs, sourceDoc{location: p, node: orig})
}

// merge marks an object or a strategic merge patch.
func (m *marker) merge(p location, orig, c *yaml.Node, from source) {
	if orig.Kind != yaml.MappingNode {
		return
	}
	group, _, grouped := strings.Cut(text(orig, "apiVersion"), "/")
	known := !grouped || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
	from.whole = !known
	w := &markWalk{m: m, location: p, known: known, from: from}
	w.node(orig, c, nil)
}

// patch marks a patch of either form. c is the copy of one of its documents.
func (m *marker) patch(p location, orig, c *yaml.Node, from source) {
	if orig.Kind == yaml.MappingNode {
		from.how = Patch
		m.merge(p, orig, c, from)
		return
	}
	ops, copies := operations(orig), operations(c)
	for i, op := range ops {
		if text(op, "op") == "test" {
			continue
		}
		_, value := field(op, "value")
		_, copied := field(copies[i], "value")
		if value == nil {
			continue
		}
		pathNode := op
		if _, v := field(op, "path"); v != nil {
			pathNode = v
		}
		var steps []step
		for _, t := range pointer(text(op, "path")) {
			steps = append(steps, step{elem: t, key: pathNode, val: pathNode, pointer: true})
		}
		steps[len(steps)-1].val = value
		from.how, from.op = JSONPatch, op
		w := &markWalk{m: m, location: p, from: from}
		w.node(value, copied, steps)
	}
}

// mark changes the scalar c, so that the build's output shows where its value comes from, and records l as
// its origin. With typed, a number gets another digit instead of a mark, and stays a number.
func (m *marker) mark(c *yaml.Node, l leaf) {
	if m.only != nil && !m.only(l.node, l.steps) {
		return
	}
	switch c.ShortTag() {
	case "!!int", "!!float":
		if m.typed {
			c.Value += "1"
			break
		}
		fallthrough
	default:
		c.Value += mark(len(m.leaves))
		c.Tag, c.Style = "!!str", yaml.DoubleQuotedStyle
	}
	m.leaves = append(m.leaves, l)
}

// markWalk marks the scalars of one object or patch.
type markWalk struct {
	m        *marker
	location location
	from     source
	known    bool // the kind is in kustomize's schema, so its lists may merge by keys
}

// node marks the scalars of orig in its copy c. Null values, keys and kustomize's directives stay as they
// are.
func (w *markWalk) node(orig, c *yaml.Node, steps []step) {
	if orig.Kind == yaml.AliasNode || c.Kind == yaml.AliasNode {
		return // the mark is at the anchor
	}
	switch orig.Kind {
	case yaml.ScalarNode:
		if !isNull(orig) && !w.mustStay(steps) {
			w.m.mark(c, leaf{location: w.location, node: orig, steps: append([]step(nil), steps...), from: w.from})
		}
	case yaml.SequenceNode:
		for i := range orig.Content {
			w.node(orig.Content[i], c.Content[i], append(steps, step{elem: intent.Index(i), val: orig.Content[i]}))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(orig.Content); i += 2 {
			key := orig.Content[i]
			if key.Kind != yaml.ScalarNode || isDirective(key.Value) {
				continue
			}
			w.node(orig.Content[i+1], c.Content[i+1], append(steps, step{elem: key.Value, key: key, val: orig.Content[i+1]}))
		}
	}
}

// isDirective reports whether a key controls a strategic merge, such as $patch.
func isDirective(key string) bool {
	return strings.HasPrefix(key, "$") && !strings.HasPrefix(key, "${") && !strings.HasPrefix(key, "$$")
}

// mustStay reports whether a scalar must stay unmarked, because it decides how the build proceeds.
func (w *markWalk) mustStay(steps []step) bool {
	if len(steps) == 0 {
		return true
	}
	last := steps[len(steps)-1].elem
	if w.m.fixed[last] {
		return true
	}
	if len(steps) == 1 {
		return last == "apiVersion" || last == "kind"
	}
	if steps[0].elem == "metadata" {
		switch steps[1].elem {
		case "name", "namespace", "generateName":
			return true
		case "labels":
			return w.selected()
		case "annotations":
			return w.selected() || strings.Contains(last, "config.kubernetes.io/") || strings.Contains(last, "config.k8s.io/")
		}
	}
	if w.known {
		if _, item := index(steps[len(steps)-2].elem); item {
			return mergeKey(last)
		}
	}
	return false
}

// selected reports whether patches may select objects by labels and annotations. A build may still mark a
// single label or annotation. If a patch then misses the object, the field differs and the mark does not
// count.
func (w *markWalk) selected() bool { return w.m.selects && w.m.only == nil }

// mergeKey reports whether kustomize uses a field to merge lists of Kubernetes' own kinds.
func mergeKey(name string) bool {
	switch name {
	case "mountPath", "devicePath", "ip", "type", "topologyKey", "name", "containerPort", "port", "key", "uid", "protocol":
		return true
	}
	return false
}

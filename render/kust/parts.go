package kust

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kustomize's time grows with the square of the number of objects, because it searches all objects for every
// name in every object. So weir builds many objects in batches. A batch has its own objects and the objects
// that they can mention. The result is exact, because weir uses batches only if the kustomizations contain
// nothing but this:
//
//   - Prefixes, namespaces, labels, annotations and images change each object independently.
//   - A reference follows an object only if it contains one of the names that the object has in any layer.
//     weir knows these names, because no patch here changes a name. From the new name, the reference may lead
//     to another object that had this name before.
//   - A patch without a target belongs to its object, which must be the only one. A patch with a target
//     changes each object independently.
//   - A configuration adds references in fields below spec. It also applies to the parent directories, so it
//     is part of every batch.
//   - Objects keep their order, and none is added or removed.
//
// If a kustomization contains anything else, weir builds all objects together.

// parts is a plan that is divided into batches.
type parts struct {
	members []*member
	splits  map[string]*split // by kustomization file
	root    *split
	batches []batch
	// wide is true if images or labels may change any field.
	wide bool
}

// member is an object in a file.
type member struct {
	file     string
	doc      int
	node     *yaml.Node
	kind     string
	names    []string // its names in all layers
	mentions []int    // the members whose names it, or a patch for it, contains
	// patched is true if a patch may change it.
	patched bool
}

// split is a kustomization with its lists divided into entries.
type split struct {
	file, dir             string
	doc                   *yaml.Node
	resources, components []entry
	patches               []tie
	// configs are files of configurations. carries is true if this kustomization or one below it has some.
	// always is true if the kustomization is part of every batch.
	configs         []string
	carries, always bool
}

// entry is a file of objects or a directory.
type entry struct {
	file  string
	child *split
}

// tie lists the members that a patch applies to. any means all of them.
type tie struct {
	any     bool
	members []int
	file    string
}

// batch is a range of members that are built together, with the other members that they mention.
type batch struct {
	from, to int
	others   []int
}

// apartFields lists the fields of a kustomization that can be built in batches.
var apartFields = []string{"apiVersion", "kind", "metadata", "resources", "components", "patches", "namespace", "namePrefix", "nameSuffix", "labels", "commonLabels", "commonAnnotations", "images", "configurations"}

// cutter makes parts of a plan.
type cutter struct {
	plan     *buildSpec
	contents map[string][]byte
	byDir    map[string]*kust
	seen     map[string]bool // files and directories; each may be used only once
	parts    *parts
	spans    [][2]int // the first and last member of a patch, which must be in the same batch
	patched  []patched
}

// patched has the documents of a patch.
type patched struct {
	docs []*yaml.Node
	tie  tie
}

// cut returns the parts of a plan with about most members in each batch. It returns nil if all objects must
// be built together.
func (p *buildSpec) cut(most int) *parts {
	c := &cutter{plan: p, contents: p.view.contents(p.files), byDir: map[string]*kust{}, seen: map[string]bool{}, parts: &parts{splits: map[string]*split{}}}
	docs := 0
	for _, k := range p.kusts {
		c.byDir[k.dir] = k
		for _, f := range k.objects {
			docs += len(f.docs)
		}
	}
	if docs <= 2*most {
		return nil
	}
	root := c.byDir[p.root]
	if root == nil {
		return nil
	}
	var ok bool
	if c.parts.root, _, ok = c.directory(root, nil); !ok || !c.mentions(most) {
		return nil
	}
	return c.parts
}

// directory returns the split of a kustomization, and own extended by the members that it adds.
func (c *cutter) directory(k *kust, own []int) (*split, []int, bool) {
	s := c.read(k)
	if s == nil || c.seen[k.dir] || !c.configurations(s) {
		return nil, nil, false
	}
	c.seen[k.dir] = true
	for _, list := range []struct {
		name string
		to   *[]entry
	}{{"resources", &s.resources}, {"components", &s.components}} {
		_, refs := field(s.doc, list.name)
		if refs == nil || isNull(refs) {
			continue
		}
		for _, ref := range refs.Content {
			var made entry
			var ok bool
			if made, own, ok = c.entry(s, ref, list.name == "components", own); !ok {
				return nil, nil, false
			}
			*list.to = append(*list.to, made)
		}
	}
	if len(s.resources) == 0 && !doesMore(s.doc) || !c.patches(s, own) { // kustomize refuses empty kustomizations
		return nil, nil, false
	}
	return s, own, c.rename(s, own)
}

// entry returns an entry in a kustomization's list, and own extended by the members that it adds.
func (c *cutter) entry(s *split, ref *yaml.Node, component bool, own []int) (made entry, _ []int, ok bool) {
	at, e, err := c.plan.view.resolve(path.Join(s.dir, ref.Value))
	before := len(c.parts.members)
	switch {
	case err != nil || ref.Kind != yaml.ScalarNode:
		return entry{}, nil, false
	case e.Mode.IsFile():
		made.file = at
		own, ok = c.objects(at, own)
	case c.byDir[at] == nil:
		return entry{}, nil, false
	case component:
		made.child, own, ok = c.directory(c.byDir[at], own)
	default:
		var below []int
		made.child, below, ok = c.directory(c.byDir[at], nil)
		own = append(own, below...)
	}
	if child := made.child; ok && child != nil {
		child.always = child.carries || component && doesMore(child.doc)
		s.carries = s.carries || child.carries
		ok = child.always || len(c.parts.members) > before // otherwise no batch contains it, and kustomize may refuse it
	}
	return made, own, ok
}

// read returns the split of a kustomization, in the form that kustomize gets. It returns nil if a field is
// not supported in batches.
func (c *cutter) read(k *kust) *split {
	doc := parseSplit(c.plan.seen(k.file, c.contents, nil))
	if doc == nil {
		return nil
	}
	for i := 0; i+1 < len(doc.Content); i += 2 {
		switch name := doc.Content[i].Value; {
		case !slices.Contains(apartFields, name):
			return nil
		case name == "images":
			c.parts.wide = true
		case name == "labels":
			c.parts.wide = c.parts.wide || slices.ContainsFunc(doc.Content[i+1].Content, func(e *yaml.Node) bool { _, v := foldedField(e, "fields"); return v != nil })
		}
	}
	s := &split{file: k.file, dir: k.dir, doc: doc}
	c.parts.splits[k.file] = s
	return s
}

// configurations reads the configurations of a kustomization. They may only contain references to other
// objects, in fields below spec.
func (c *cutter) configurations(s *split) bool {
	_, refs := field(s.doc, "configurations")
	if refs == nil || isNull(refs) {
		return true
	}
	for _, ref := range refs.Content {
		at, e, err := c.plan.view.resolve(path.Join(s.dir, ref.Value))
		if err != nil || !e.Mode.IsFile() || c.plan.files[at] == nil || len(c.plan.files[at].docs) != 1 {
			return false
		}
		doc := c.plan.files[at].docs[0]
		for i := 0; i+1 < len(doc.Content); i += 2 {
			if doc.Kind != yaml.MappingNode || doc.Content[i].Value != "nameReference" || aliased(doc) || !belowSpec(doc.Content[i+1]) {
				return false
			}
		}
		s.configs, s.carries = append(s.configs, at), true
	}
	return true
}

// belowSpec reports whether all paths of a configuration are below spec.
func belowSpec(n *yaml.Node) bool {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && strings.EqualFold(n.Content[i-1].Value, "path") && !strings.HasPrefix(child.Value, "spec/") || !belowSpec(child) {
			return false
		}
	}
	return true
}

// seen returns the content of a file in a run of the plan.
func (p *buildSpec) seen(file string, contents, fed map[string][]byte) []byte {
	if content, ok := fed[file]; ok {
		return content
	}
	if content, ok := p.fed[file]; ok {
		return content
	}
	return contents[file]
}

// parseSplit parses a kustomization. It must not contain aliases, because its lists are split.
func parseSplit(content []byte) *yaml.Node {
	var doc yaml.Node
	if yaml.Unmarshal(content, &doc) != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode || aliased(doc.Content[0]) {
		return nil
	}
	for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
		switch v := doc.Content[0].Content[i+1]; doc.Content[0].Content[i].Value {
		case "resources", "components", "patches", "configurations":
			if v.Kind != yaml.SequenceNode && !isNull(v) {
				return nil
			}
		}
	}
	return doc.Content[0]
}

func aliased(n *yaml.Node) bool {
	return n.Anchor != "" || n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, aliased)
}

// objects adds the members of a file.
func (c *cutter) objects(file string, own []int) ([]int, bool) {
	f := c.plan.files[file]
	if f == nil || c.seen[file] {
		return nil, false
	}
	c.seen[file] = true
	if chunks := documents(c.contents[file]); len(chunks) != len(f.docs) {
		return nil, false
	}
	for i, doc := range f.docs {
		l := &member{file: file, doc: i, node: doc, kind: text(doc, "kind"), names: []string{text(doc, "metadata", "name")}}
		if l.names[0] == "" || len(l.names[0]) > maxName || strings.HasSuffix(l.kind, "List") {
			return nil, false
		}
		own = append(own, len(c.parts.members))
		c.parts.members = append(c.parts.members, l)
	}
	return own, true
}

// rename adds the names that a kustomization may give to its objects own, with its prefix, suffix and
// namespace. It returns false if there are too many names, and the build must not be divided.
func (c *cutter) rename(s *split, own []int) bool {
	prefix, suffix, namespace := text(s.doc, "namePrefix"), text(s.doc, "nameSuffix"), text(s.doc, "namespace")
	if len(prefix) > maxName || len(suffix) > maxName || len(namespace) > maxName {
		return false
	}
	for _, i := range own {
		l := c.parts.members[i]
		if namespace != "" && l.kind == "Namespace" {
			l.names = append(l.names, namespace)
		}
		for _, name := range slices.Clone(l.names) {
			l.names = append(l.names, prefix+name, name+suffix, prefix+name+suffix)
		}
		slices.Sort(l.names)
		if l.names = slices.Compact(l.names); len(l.names) > maxNames {
			return false
		}
	}
	return true
}

// maxName is the maximum length of a Kubernetes name, in bytes.
const maxName = 253

// maxNames bounds the names of an object during a build. It is enough for three layers with a prefix and a
// suffix each.
const maxNames = 64

// mentions finds the members that contain names of other members, and makes the batches.
func (c *cutter) mentions(most int) bool {
	members := c.parts.members
	byName := map[string][]int{}
	for i, l := range members {
		for _, name := range l.names {
			byName[name] = append(byName[name], i)
		}
	}
	var common []int
	chain := chains(len(members), byName)
	mentioned := func(n *yaml.Node, to *[]int) {
		eachValue(n, func(v string) {
			if of := byName[v]; len(of) > 0 {
				*to = append(*to, chain[of[0]]...)
			}
		})
	}
	for _, l := range members {
		mentioned(l.node, &l.mentions)
	}
	for _, p := range c.patched {
		for _, doc := range p.docs {
			if p.tie.any {
				mentioned(doc, &common)
			}
			for _, i := range p.tie.members {
				mentioned(doc, &members[i].mentions)
			}
		}
	}
	tied := make([]bool, len(members)+1) // to the previous member
	for _, s := range c.spans {
		for i := s[0] + 1; i <= s[1]; i++ {
			tied[i] = true
		}
	}
	for from := 0; from < len(members); {
		to := min(from+most, len(members))
		for tied[to] {
			to++
		}
		b := batch{from: from, to: to, others: slices.Clone(common)}
		for _, l := range members[from:to] {
			b.others = append(b.others, l.mentions...)
		}
		slices.Sort(b.others)
		b.others = slices.DeleteFunc(slices.Compact(b.others), func(i int) bool { return from <= i && i < to })
		if to-from+len(b.others) > 4*most {
			return false // too few batches to be useful
		}
		c.parts.batches = append(c.parts.batches, b)
		from = to
	}
	for _, l := range members {
		l.node, l.mentions = nil, nil
	}
	return len(c.parts.batches) > 1
}

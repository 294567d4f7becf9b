package kust

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/provider"
	k8syaml "sigs.k8s.io/yaml"
)

// inspect finds, with their places and all at once, the faults of generators and
// patches that kustomize would report one at a time, without a line, and with
// the values in its message.
func (w *walker) inspect(k *kust) {
	w.manyIn(k)
	for _, name := range []string{"configMapGenerator", "secretGenerator"} {
		for _, entry := range entries(k.doc, name) {
			w.generatorSources(k, deref(entry), location{file: k.file}, name)
		}
	}
	for _, p := range k.patches {
		w.patchForm(k, p)
	}
	for _, doc := range append([]*yaml.Node{k.doc}, k.growth[1:]...) {
		w.longPaths(doc, k.locationOf(doc))
	}
	for _, p := range k.patches {
		for _, doc := range p.docs {
			if doc.Kind == yaml.SequenceNode {
				w.longPaths(doc, p.location(k))
			}
		}
	}
}

// locationOf returns the location of a document of a kustomization's configurations.
func (k *kust) locationOf(doc *yaml.Node) location {
	for _, f := range k.configs {
		for _, d := range f.docs {
			if d == doc {
				return location{file: f.path}
			}
		}
	}
	return location{file: k.file}
}

// generatorSources checks what kustomize checks of a generator's literals, envs
// and files. No message says a value.
func (w *walker) generatorSources(k *kust, entry *yaml.Node, p location, field string) {
	fault := func(at diag.Position, format string, args ...any) {
		w.add("kustomization-invalid", at, fmt.Sprintf(format, args...), "Write key=value.")
	}
	literals := entries(entry, "literals")
	if w.crowd.adds(len(literals)) {
		w.report(crowded(p.node(entry), len(literals)))
		return
	}
	first := map[string]*yaml.Node{}
	for i, n := range literals {
		n = deref(n)
		key, _, ok := strings.Cut(n.Value, "=")
		if !ok || key == "" {
			fault(p.node(n), "literal %d of an entry of %s is not of the form key=value", i+1, field)
			continue
		}
		if was := first[key]; was != nil {
			d := faultAt("duplicate-key", p.node(n), fmt.Sprintf("%s gives the key %q twice", field, key), "Keep one of the two.")
			d.Related = []diag.Related{{Position: p.node(was), Message: "first given here"}}
			w.report(d)
		}
		first[key] = n
	}
	for _, n := range entries(entry, "files") {
		n = deref(n)
		if key, file, ok := strings.Cut(n.Value, "="); ok && (key == "" || file == "" || strings.Contains(file, "=")) {
			w.add("kustomization-invalid", p.node(n), fmt.Sprintf("a source of %s is not of the form path or key=path", field),
				"Neither the key nor the path may hold \"=\" or be empty.")
		}
	}
	for _, f := range w.envFiles(k, entry) {
		w.envFile(f)
	}
}

// envFiles are the files of a generator's entry that hold key=value lines.
func (r *reader) envFiles(k *kust, entry *yaml.Node) []*file {
	var out []*file
	refs := entries(entry, "envs")
	if _, env := foldedField(entry, "env"); env != nil && env.Kind == yaml.ScalarNode {
		refs = append(refs[:len(refs):len(refs)], env)
	}
	for _, n := range refs {
		if f := r.known(k, deref(n).Value); f != nil {
			out = append(out, f)
		}
	}
	return out
}

// known is a file that the walk has read, by how the kustomization names it.
func (r *reader) known(k *kust, ref string) *file {
	joined := path.Join(k.dir, ref)
	if path.IsAbs(ref) || joined == ".." || strings.HasPrefix(joined, "../") {
		return nil
	}
	physical, _, err := r.view.resolve(joined)
	if err != nil {
		return nil
	}
	return r.files[physical]
}

// envFile checks the lines of a file of key=value lines. kustomize stops without
// a word at a line of more than 64 KiB.
func (w *walker) envFile(f *file) {
	if f.checkedEnv {
		return
	}
	f.checkedEnv = true
	line := 0
	for text := range bytes.Lines(f.content) {
		line++
		switch {
		case len(text) >= 64<<10:
			w.report(tooLarge(diag.Position{File: f.path, Line: line}, "the line has 64 KiB or more; kustomize would leave out the rest of the file"))
		case !utf8.Valid(text):
			w.add("kustomization-invalid", diag.Position{File: f.path, Line: line}, "the line is not valid UTF-8", "Name binary files under files.")
		}
	}
}

// patchForm refuses a patch whose form kustomize cannot recognize.
func (w *walker) patchForm(k *kust, p patch) {
	at := p.location(k)
	if len(p.docs) == 1 && p.docs[0].Kind == yaml.SequenceNode {
		w.jsonPatch(p.docs[0], p, at)
		return
	}
	for _, doc := range p.docs {
		if doc.Kind == yaml.MappingNode && text(doc, "kind") != "" && text(doc, "metadata", "name") != "" {
			continue
		}
		out, err := yaml.Marshal(doc)
		if err != nil {
			continue
		}
		if _, err := provider.NewDefaultDepProvider().GetResourceFactory().SliceFromBytes(out); err == nil {
			continue
		}
		var lacks []string
		for _, want := range [][]string{{"kind"}, {"metadata", "name"}} {
			if text(doc, want...) == "" {
				lacks = append(lacks, strings.Join(want, "."))
			}
		}
		summary := "the patch is missing " + strings.Join(lacks, " and ")
		if doc.Kind != yaml.MappingNode || len(lacks) == 0 {
			summary = "the patch is neither an object nor a list of operations"
		}
		w.add("bad-patch", at.node(doc), summary,
			"A strategic-merge patch has apiVersion, kind and metadata.name of its object; a JSON patch is a list of {op, path, value} and needs a target.")
	}
}

var jsonOps = map[string]bool{"add": true, "remove": true, "replace": true, "move": true, "copy": true, "test": true}

// jsonPatch checks the operations of a JSON patch, by RFC 6902.
func (w *walker) jsonPatch(doc *yaml.Node, p patch, at location) {
	if len(doc.Content) == 0 {
		return
	}
	const hint = "An operation is {op: add|remove|replace|move|copy|test, path: /a/b, value: …}; move and copy have from."
	before := len(w.diags)
	for _, op := range doc.Content {
		op = deref(op)
		name := text(op, "op")
		switch {
		case op.Kind != yaml.MappingNode:
			w.add("bad-patch", at.node(op), "the operation is not a mapping", hint)
		case !jsonOps[name]:
			w.add("bad-patch", at.node(op), "the operation has no op that JSON patches know", hint)
		case !hasField(op, "path"):
			w.add("bad-patch", at.node(op), "the operation has no path", hint)
		case (name == "move" || name == "copy") && !hasField(op, "from"):
			w.add("bad-patch", at.node(op), "the operation has no from", hint)
		}
		if len(w.diags) > before+maxFaultsPerFile {
			return
		}
	}
	if len(w.diags) > before {
		return
	}
	if p.target == nil {
		w.add("bad-patch", at.node(doc), "the JSON patch has no target", "Give the entry of patches a target, such as {kind: AWSMachinePool, name: web}.")
		return
	}
	text := bytes.TrimSpace(p.text())
	if !bytes.HasPrefix(text, []byte("[")) {
		var err error
		if text, err = k8syaml.YAMLToJSON(text); err != nil {
			w.add("bad-patch", at.node(doc), "the patch is no JSON patch", hint)
			return
		}
	}
	if _, err := jsonpatch.DecodePatch(text); err != nil {
		w.add("bad-patch", at.node(doc), "the patch begins with [ and is not JSON", "Quote all keys and texts with \", or write the operations as a list with -, which may be YAML.")
	}
}

func hasField(n *yaml.Node, name string) bool {
	key, _ := field(n, name)
	return key != nil
}

// longPaths refuses field paths that would nest an object deeper than a document may be: kustomize
// creates missing parts on the way.
func (w *walker) longPaths(n *yaml.Node, p location) {
	limit := w.view.lim.Depth
	check := func(v *yaml.Node) {
		v = deref(v)
		if v.Kind == yaml.ScalarNode && strings.Count(v.Value, "/")+strings.Count(v.Value, ".") > limit {
			w.report(tooLarge(p.node(v), fmt.Sprintf("the path has more than %d steps", limit)))
		}
	}
	for i, c := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 0 {
			if n.Kind != yaml.MappingNode {
				w.longPaths(c, p)
			}
			continue
		}
		switch strings.ToLower(deref(n.Content[i-1]).Value) {
		case "path", "fieldpath", "from":
			check(c)
		case "fieldpaths":
			for _, e := range c.Content {
				check(e)
			}
		}
		w.longPaths(c, p)
	}
}

// The YAML library compares every key of a mapping with every other one when it decodes
// the mapping into a Go value, and kustomize looks up keys one after the other. The time
// therefore grows with the square of the number of keys in one mapping. weir bounds the sum
// of these squares. Mappings of usual size do not count.
const (
	maxKeys = 5_000
	fewKeys = 1_000
	// maxCrowd is the largest sum of squares: two mappings of maxKeys.
	maxCrowd = 2 * maxKeys * maxKeys
)

// crowd counts mappings with many keys.
type crowd int

// adds counts a mapping with so many keys, and reports whether they are too many.
func (c *crowd) adds(keys int) bool {
	if keys <= fewKeys {
		return false
	}
	if keys <= maxKeys {
		*c += crowd(keys * keys)
	}
	return keys > maxKeys || *c > maxCrowd
}

func crowded(at diag.Position, keys int) diag.Diagnostic {
	return faultAt("too-large", at, fmt.Sprintf("a mapping has %d keys; at most %d are allowed, and in mappings with more than %d keys fewer together", keys, maxKeys, fewKeys),
		"Split the object, or put the data into one value.")
}

// crowdedIn returns the keys of the mapping that is too large among the objects of a build,
// or 0.
func crowdedIn(nodes []*yaml.Node) int {
	var c crowd
	var visit func(n *yaml.Node) int
	visit = func(n *yaml.Node) int {
		if n.Kind == yaml.MappingNode && c.adds(len(n.Content)/2) {
			return len(n.Content) / 2
		}
		for _, child := range n.Content {
			if keys := visit(child); keys > 0 {
				return keys
			}
		}
		return 0
	}
	for _, n := range nodes {
		if keys := visit(n); keys > 0 {
			return keys
		}
	}
	return 0
}

// For each generated object, and each patch, kustomize visits every object, and it appends to an
// annotation of a patched object. The time therefore grows with the square of the number of patches
// or generators in one kustomization. weir bounds the sum of these squares. A patch of one object
// counts with those of the same name only: weir gives kustomize each object with the patches that
// name it.
const (
	maxMany = 2_000
	fewMany = 300
	// mostMany is the largest sum of squares.
	mostMany = 2 * maxMany * maxMany
)

// many counts patches and generators.
type many int

// manyIn reports a kustomization that has too many patches or generators.
func (w *walker) manyIn(k *kust) {
	generators := len(entries(k.doc, "configMapGenerator")) + len(entries(k.doc, "secretGenerator"))
	all, named := len(k.loose), map[string]int{}
	most := 0
	for _, p := range k.patches {
		name := text(p.target, "name")
		if p.target == nil && len(p.docs) == 1 {
			name = text(p.docs[0], "metadata", "name")
		}
		if len(p.docs) == 1 && literal.MatchString(name) {
			named[name]++
			most = max(most, named[name])
			continue
		}
		all += len(p.docs)
	}
	for _, of := range []struct {
		n    int
		what string
	}{{generators, "generators"}, {all + most, "patches that may be for the same object"}} {
		if of.n <= fewMany {
			continue
		}
		if w.many += many(of.n * of.n); of.n > maxMany || w.many > mostMany {
			w.report(faultAt("too-large", k.at(k.doc), fmt.Sprintf("the kustomization has %d %s; at most %d are allowed, and in kustomizations with more than %d fewer together", of.n, of.what, maxMany, fewMany),
				"Split the target, or write what they set into the objects."))
			return
		}
	}
}

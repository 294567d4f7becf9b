package kust

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/types"
	k8syaml "sigs.k8s.io/yaml"
)

// checker finds all faults in one kustomization, with their places. kustomize would report one at a time,
// without a line, and with values in its message.
type checker struct {
	*reader
	k *kust
}

// fields checks the fields themselves, before their files are read.
func (c checker) fields() {
	c.refused()
	c.deprecated()
}

// refused reports fields that weir does not support.
func (c checker) refused() {
	for _, f := range []struct{ name, code, summary, detail string }{
		{"helmCharts", "helm", "Helm charts are not inflated", "Render the chart and commit its output."},
		{"helmGlobals", "helm", "Helm charts are not inflated", "Render the chart and commit its output."},
		{"helmChartInflationGenerator", "helm", "Helm charts are not inflated", "Render the chart and commit its output."},
		{"openapi", "unsupported-field", "openapi is not supported", "kustomize keeps such a schema for all later builds of the process. Patch lists of custom resources by JSON6902 instead."},
		{"vars", "unsupported-field", "vars is not supported", "Use replacements instead."},
	} {
		if key, v := foldedField(c.k.doc, f.name); key != nil && !isNull(v) {
			c.add(f.code, c.k.at(key), f.summary, f.detail)
		}
	}
}

// contents checks the generators and patches, after the files of the kustomization were read.
func (c checker) contents() {
	k := c.k
	c.numbers()
	for _, name := range []string{"configMapGenerator", "secretGenerator"} {
		for _, entry := range entries(k.doc, name) {
			c.generatorSources(deref(entry), location{file: k.file}, name)
		}
	}
	for _, p := range k.patches {
		c.patchForm(p)
	}
	for _, doc := range append([]*yaml.Node{k.doc}, k.settings[1:]...) {
		c.longPaths(doc, k.locationOf(doc))
	}
	for _, p := range k.patches {
		for _, doc := range p.docs {
			if doc.Kind == yaml.SequenceNode {
				c.longPaths(doc, p.location(k))
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

// generatorSources checks a generator's literals, envs and files, as kustomize does. No message
// contains a value.
func (c checker) generatorSources(entry *yaml.Node, p location, field string) {
	fault := func(at diag.Position, format string, args ...any) {
		c.add("kustomization-invalid", at, fmt.Sprintf(format, args...), "Write key=value.")
	}
	literals := entries(entry, "literals")
	if c.crowd.adds(len(literals)) {
		c.report(crowded(p.node(entry), len(literals)))
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
			c.report(d)
		}
		first[key] = n
	}
	for _, n := range entries(entry, "files") {
		n = deref(n)
		if key, file, ok := strings.Cut(n.Value, "="); ok && (key == "" || file == "" || strings.Contains(file, "=")) {
			c.add("kustomization-invalid", p.node(n), fmt.Sprintf("a source of %s is not of the form path or key=path", field),
				"Neither the key nor the path may hold \"=\" or be empty.")
		}
	}
	for _, f := range c.envFiles(c.k, entry) {
		c.envFile(f)
	}
}

// envFile checks a file of key=value lines. kustomize silently stops at a line of 64 KiB or more.
func (c checker) envFile(f *file) {
	if f.checkedEnv {
		return
	}
	f.checkedEnv = true
	line := 0
	for text := range bytes.Lines(f.content) {
		line++
		switch {
		case len(text) >= 64<<10:
			c.report(tooLarge(diag.Position{File: f.path, Line: line}, "the line has 64 KiB or more; kustomize would leave out the rest of the file"))
		case !utf8.Valid(text):
			c.add("kustomization-invalid", diag.Position{File: f.path, Line: line}, "the line is not valid UTF-8", "Name binary files under files.")
		}
	}
}

// patchForm refuses a patch whose form kustomize cannot recognize.
func (c checker) patchForm(p patch) {
	at := p.location(c.k)
	if len(p.docs) == 1 && p.docs[0].Kind == yaml.SequenceNode {
		c.jsonPatch(p.docs[0], p, at)
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
		c.add("bad-patch", at.node(doc), summary,
			"A strategic-merge patch has apiVersion, kind and metadata.name of its object; a JSON patch is a list of {op, path, value} and needs a target.")
	}
}

var jsonOps = map[string]bool{"add": true, "remove": true, "replace": true, "move": true, "copy": true, "test": true}

// jsonPatch checks the operations of a JSON patch (RFC 6902).
func (c checker) jsonPatch(doc *yaml.Node, p patch, at location) {
	if len(doc.Content) == 0 {
		return
	}
	const hint = "An operation is {op: add|remove|replace|move|copy|test, path: /a/b, value: …}; move and copy have from."
	before := len(c.diags)
	for _, op := range doc.Content {
		op = deref(op)
		name := text(op, "op")
		switch {
		case op.Kind != yaml.MappingNode:
			c.add("bad-patch", at.node(op), "the operation is not a mapping", hint)
		case !jsonOps[name]:
			c.add("bad-patch", at.node(op), "the operation has no op that JSON patches know", hint)
		case !hasField(op, "path"):
			c.add("bad-patch", at.node(op), "the operation has no path", hint)
		case (name == "move" || name == "copy") && !hasField(op, "from"):
			c.add("bad-patch", at.node(op), "the operation has no from", hint)
		}
		if len(c.diags) > before+maxFaultsPerFile {
			return
		}
	}
	if len(c.diags) > before {
		return
	}
	if p.target == nil {
		c.add("bad-patch", at.node(doc), "the JSON patch has no target", "Give the entry of patches a target, such as {kind: AWSMachinePool, name: web}.")
		return
	}
	text := bytes.TrimSpace(p.text())
	if !bytes.HasPrefix(text, []byte("[")) {
		var err error
		if text, err = k8syaml.YAMLToJSON(text); err != nil {
			c.add("bad-patch", at.node(doc), "the patch is not a JSON patch", hint)
			return
		}
	}
	if _, err := jsonpatch.DecodePatch(text); err != nil {
		c.add("bad-patch", at.node(doc), "the patch begins with [ but is not JSON", "Quote all keys and texts with \", or write the operations as a list with -, which may be YAML.")
	}
}

func hasField(n *yaml.Node, name string) bool {
	key, _ := field(n, name)
	return key != nil
}

// longPaths refuses field paths with more elements than a document may have levels, because kustomize creates
// missing parts of a path.
func (c checker) longPaths(n *yaml.Node, p location) {
	limit := c.view.lim.Depth
	check := func(v *yaml.Node) {
		v = deref(v)
		if v.Kind == yaml.ScalarNode && strings.Count(v.Value, "/")+strings.Count(v.Value, ".") > limit {
			c.report(tooLarge(p.node(v), fmt.Sprintf("the path has more than %d steps", limit)))
		}
	}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 0 {
			if n.Kind != yaml.MappingNode {
				c.longPaths(child, p)
			}
			continue
		}
		switch strings.ToLower(deref(n.Content[i-1]).Value) {
		case "path", "fieldpath", "from":
			check(child)
		case "fieldpaths":
			for _, e := range child.Content {
				check(e)
			}
		}
		c.longPaths(child, p)
	}
}

// numbers checks the numbers of patches and generators.
func (c checker) numbers() {
	k := c.k
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
		if c.many += many(of.n * of.n); of.n > maxMany || c.many > mostMany {
			c.report(faultAt("too-large", k.at(k.doc), fmt.Sprintf("the kustomization has %d %s; at most %d are allowed, and fewer if several kustomizations have more than %d", of.n, of.what, maxMany, fewMany),
				"Split the target, or write what they set into the objects."))
			return
		}
	}
}

// noFunction refuses annotations that make a configuration run a program.
func (c checker) noFunction(doc *yaml.Node, p location) bool {
	_, meta := field(doc, "metadata")
	_, ann := field(meta, "annotations")
	if ann == nil {
		return true
	}
	for i := 0; i+1 < len(ann.Content); i += 2 {
		key := deref(ann.Content[i])
		if strings.HasSuffix(key.Value, "/function") {
			c.add("exec-plugin", p.node(key), "the configuration names a function to run", "A build runs no program and no container.")
			return false
		}
	}
	return true
}

var (
	unknownField = lazyregexp.New(`unknown field "([^"]*)"`)
	wrongType    = lazyregexp.New(`cannot unmarshal (\w+) into Go struct field Kustomization\.(\w+)(\S*) of type`)
)

// undecodable reports why a kustomization does not decode: every unknown top-level field, or otherwise the
// decoder's error.
func (c checker) undecodable(err error) {
	k := c.k
	before := len(c.diags)
	known := map[string]bool{}
	t := reflect.TypeFor[types.Kustomization]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[strings.ToLower(name)] = true
	}
	for _, meta := range []string{"apiversion", "kind"} {
		known[meta] = true
	}
	const hint = "See the fields of a Kustomization at https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/"
	for i := 0; i+1 < len(k.doc.Content); i += 2 {
		key := deref(k.doc.Content[i])
		if key.Value != "<<" && !known[strings.ToLower(key.Value)] {
			c.add("kustomization-unknown-field", k.at(key), fmt.Sprintf("unknown field %q", key.Value), hint)
		}
	}
	if len(c.diags) > before {
		return
	}
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		at := diag.Position{File: k.file}
		if n := findKey(k.doc, m[1]); n != nil {
			at = k.at(n)
		}
		c.add("kustomization-unknown-field", at, fmt.Sprintf("unknown field %q", m[1]), hint)
		return
	}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		if key, v := foldedField(k.doc, m[2]); key != nil {
			c.add("kustomization-invalid", k.at(v), fmt.Sprintf("%s cannot hold a %s", m[2]+m[3], m[1]), hint)
			return
		}
	}
	root := err
	for next := errors.Unwrap(root); next != nil; next = errors.Unwrap(root) {
		root = next
	}
	c.add("kustomization-invalid", diag.Position{File: k.file}, "the kustomization cannot be decoded: "+root.Error(), hint)
}

// findKey returns the first key of a name anywhere below n.
func findKey(n *yaml.Node, name string) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if child.Value == name {
				return child
			}
			continue
		}
		if found := findKey(child, name); found != nil {
			return found
		}
	}
	return nil
}

package kust

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// fields walks everything that a kustomization refers to.
func (w *walker) fields(k *kust, chain []string) {
	w.refused(k)
	w.deprecated(k)
	s := &k.spec
	w.resources(k, "resources", s.Resources, chain)
	w.resources(k, "bases", s.Bases, chain) //nolint:staticcheck // Deprecated fields are still in use, and are walked.
	w.components(k, chain)
	w.patchEntries(k, "patches", s.Patches)
	w.patchEntries(k, "patchesJson6902", s.PatchesJson6902) //nolint:staticcheck // As above.
	w.legacyMerges(k)
	w.replacements(k)
	w.crds(k)
	for i, ref := range s.Configurations {
		w.yamlRef(k, ref, k.entry("configurations", i))
	}
	for i, g := range s.ConfigMapGenerator {
		w.generated(k, k.entry("configMapGenerator", i), g.KvPairSources)
	}
	for i, g := range s.SecretGenerator {
		w.generated(k, k.entry("secretGenerator", i), g.KvPairSources)
	}
	w.plugins(k, "generators", s.Generators)
	w.plugins(k, "transformers", s.Transformers)
	w.plugins(k, "validators", s.Validators)
}

// entry is the node of an entry of a list field; the key's node if the list
// holds an entry whose node is unknown, such as through a merge key.
func (k *kust) entry(name string, i int) *yaml.Node {
	key, list := foldedField(k.doc, name)
	if list == nil {
		return k.doc
	}
	if list.Kind != yaml.SequenceNode || i >= len(list.Content) {
		return key
	}
	return list.Content[i]
}

func (k *kust) at(n *yaml.Node) diag.Position {
	return diag.Position{File: k.file, Line: n.Line, Column: n.Column}
}

// under is the position of a field of an entry, or of the entry.
func (k *kust) under(entry *yaml.Node, name string) diag.Position {
	if _, v := foldedField(entry, name); v != nil {
		return k.at(v)
	}
	return k.at(entry)
}

// refused reports the fields that weir does not run.
func (w *walker) refused(k *kust) {
	for _, f := range []struct{ name, code, summary, detail string }{
		{"helmCharts", "helm", "Helm charts are not inflated", "Render the chart and commit its output."},
		{"helmGlobals", "helm", "Helm charts are not inflated", "Render the chart and commit its output."},
		{"helmChartInflationGenerator", "helm", "Helm charts are not inflated", "Render the chart and commit its output."},
		{"openapi", "unsupported-field", "openapi is not supported", "kustomize keeps such a schema for all later builds of the process. Patch lists of custom resources by JSON6902 instead."},
		{"vars", "unsupported-field", "vars is not supported", "Use replacements, which took its place."},
	} {
		if key, v := foldedField(k.doc, f.name); key != nil && !isNull(v) {
			w.add(f.code, k.at(key), f.summary, f.detail)
		}
	}
}

// local resolves a reference of a kustomization; ok is false if it was refused.
func (w *walker) local(k *kust, ref string, at diag.Position) (string, tree.Entry, bool) {
	switch {
	case isRemote(ref):
		w.add("remote-reference", at, fmt.Sprintf("%s is a remote reference", ref),
			"A build fetches nothing. Copy what it refers to into the repository and name its path.")
		return "", tree.Entry{}, false
	case strings.TrimSpace(ref) == "":
		w.add("bad-path", at, "the reference is empty", "Give a path.")
		return "", tree.Entry{}, false
	case path.IsAbs(ref):
		w.add("path-escape", at, fmt.Sprintf("%s is an absolute path", ref), "Give a path relative to the kustomization.")
		return "", tree.Entry{}, false
	}
	joined := path.Join(k.dir, ref)
	var physical string
	var entry tree.Entry
	err := errEscape
	if joined != ".." && !strings.HasPrefix(joined, "../") {
		physical, entry, err = w.view.resolve(joined)
	}
	if err != nil {
		w.pathFault(ref, at, err)
		return "", tree.Entry{}, false
	}
	return physical, entry, true
}

// localFile resolves a reference to a file below the kustomization.
func (w *walker) localFile(k *kust, ref string, at diag.Position) (string, bool) {
	physical, entry, ok := w.local(k, ref, at)
	if !ok {
		return "", false
	}
	if !entry.Mode.IsFile() {
		w.add("bad-path", at, fmt.Sprintf("%s is a directory", ref), "Name a file.")
		return "", false
	}
	if !within(k.dir, physical) {
		w.outsideRoot(ref, at)
		return "", false
	}
	return physical, true
}

// yamlRef reads a YAML file that an entry names; nil if it was refused.
func (w *walker) yamlRef(k *kust, ref string, entry *yaml.Node) *file {
	p, ok := w.localFile(k, ref, k.at(entry))
	if !ok {
		return nil
	}
	return w.yamlFile(p, k.at(entry))
}

func (w *walker) resources(k *kust, name string, refs []string, chain []string) {
	for i, ref := range refs {
		at := k.at(k.entry(name, i))
		physical, entry, ok := w.local(k, ref, at)
		if !ok {
			continue
		}
		if !entry.Mode.IsFile() {
			if child := w.kustomization(physical, at, chain); child != nil {
				k.children = append(k.children, child)
			}
			continue
		}
		if !within(k.dir, physical) {
			w.outsideRoot(ref, at)
			continue
		}
		if f := w.yamlFile(physical, at); f != nil {
			w.checkObjects(f)
			k.objects = append(k.objects, f)
		}
	}
}

func (w *walker) components(k *kust, chain []string) {
	for i, ref := range k.spec.Components {
		at := k.at(k.entry("components", i))
		physical, entry, ok := w.local(k, ref, at)
		switch {
		case !ok:
		case entry.Mode.IsFile():
			w.add("bad-path", at, fmt.Sprintf("%s is a file", ref), "A component is a directory.")
		default:
			if child := w.kustomization(physical, at, chain); child != nil {
				k.children = append(k.children, child)
			}
		}
	}
}

func (w *walker) patchEntries(k *kust, name string, entries []types.Patch) {
	for i, p := range entries {
		entry := deref(k.entry(name, i))
		_, target := foldedField(entry, "target")
		switch {
		case p.Path != "":
			at := k.under(entry, "path")
			if physical, ok := w.localFile(k, p.Path, at); ok {
				if f := w.yamlFile(physical, at); f != nil {
					k.patches = append(k.patches, patch{file: f, docs: f.docs, entry: entry, target: target})
				}
			}
		case p.Patch != "":
			_, scalar := foldedField(entry, "patch")
			w.inlinePatch(k, scalar, entry, target)
		}
	}
}

func (w *walker) inlinePatch(k *kust, scalar, entry, target *yaml.Node) {
	if scalar == nil || scalar.Kind != yaml.ScalarNode {
		w.add("kustomization-invalid", k.at(entry), "the patch is not a text", "")
		return
	}
	p := patch{inline: scalar, entry: entry, target: target}
	docs, ok := w.parse([]byte(scalar.Value), p.location(k))
	if ok {
		p.docs = docs
		k.patches = append(k.patches, p)
	}
}

// legacyMerges walks patchesStrategicMerge, whose entries are a path or a patch.
func (w *walker) legacyMerges(k *kust) {
	for i, ref := range k.spec.PatchesStrategicMerge { //nolint:staticcheck // Deprecated fields are still in use.
		entry := deref(k.entry("patchesStrategicMerge", i))
		if isInline(string(ref)) && entry.Kind == yaml.ScalarNode {
			w.inlinePatch(k, entry, entry, nil)
		} else if f := w.yamlRef(k, string(ref), entry); f != nil {
			k.patches = append(k.patches, patch{file: f, docs: f.docs, entry: entry})
		}
	}
}

// isInline reports whether a text is objects rather than a path. kustomize tries
// the same in the same order.
func isInline(s string) bool {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(s), &n); err != nil {
		return strings.Contains(s, "\n")
	}
	return len(n.Content) == 1 && n.Content[0].Kind != yaml.ScalarNode
}

func (w *walker) replacements(k *kust) {
	for i, r := range k.spec.Replacements {
		if r.Path != "" {
			entry := k.entry("replacements", i)
			if p, ok := w.localFile(k, r.Path, k.under(entry, "path")); ok {
				if f := w.yamlFile(p, k.under(entry, "path")); f != nil {
					k.growth = append(k.growth, f.docs...)
				}
			}
		}
	}
}

// generated walks the sources of a generator's entry.
func (w *walker) generated(k *kust, entry *yaml.Node, s types.KvPairSources) {
	read := func(name string, i int, ref string) {
		at := k.under(entry, name)
		if _, list := foldedField(entry, name); list != nil && list.Kind == yaml.SequenceNode && i < len(list.Content) {
			at = k.at(list.Content[i])
		}
		if p, ok := w.localFile(k, ref, at); ok {
			w.data(p, at)
		}
	}
	for i, ref := range s.FileSources {
		if key, p, ok := strings.Cut(ref, "="); ok && !isRemote(key) {
			ref = p
		}
		read("files", i, ref)
	}
	for i, ref := range s.EnvSources {
		read("envs", i, ref)
	}
	if s.EnvSource != "" {
		read("env", 0, s.EnvSource)
	}
}

// crds walks schema files. kustomize follows their references without looking
// for cycles, which would end the process.
func (w *walker) crds(k *kust) {
	for i, ref := range k.spec.Crds {
		entry := k.entry("crds", i)
		f := w.yamlRef(k, ref, entry)
		if f == nil {
			continue
		}
		if len(f.docs) != 1 || f.docs[0].Kind != yaml.MappingNode {
			w.add("kustomization-invalid", diag.Position{File: f.path}, "the file of crds is not one mapping of type names to schemas",
				"It must be in OpenAPI form, not a CustomResourceDefinition.")
			continue
		}
		budget := maxSchemaSteps
		for j := 0; j+1 < len(f.docs[0].Content) && budget > 0; j += 2 {
			budget = followSchema(f.docs[0], deref(f.docs[0].Content[j]).Value, budget)
		}
		if budget <= 0 {
			w.report(tooLarge(diag.Position{File: f.path}, "the schemas refer to each other in a cycle, or too often"))
		}
	}
}

const maxSchemaSteps = 10_000

// followSchema follows the steps of kustomize from one type, and returns the remaining budget.
func followSchema(types *yaml.Node, name string, budget int) int {
	_, def := field(types, name)
	_, schema := foldedField(def, "schema")
	_, props := foldedField(schema, "properties")
	if props == nil || props.Kind != yaml.MappingNode {
		return budget - 1
	}
	for i := 1; i < len(props.Content) && budget > 0; i += 2 {
		if _, ref := foldedField(props.Content[i], "$ref"); ref != nil {
			budget = followSchema(types, ref.Value, budget-1)
		}
	}
	return budget - 1
}

var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (\w+) into Go struct field Kustomization\.(\w+)(\S*) of type`)
)

// undecodable reports why a kustomization does not decode: every unknown field
// at its top, or what the decoder says.
func (w *walker) undecodable(k *kust, err error) {
	before := len(w.diags)
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
			w.add("kustomization-unknown-field", k.at(key), fmt.Sprintf("unknown field %q", key.Value), hint)
		}
	}
	if len(w.diags) > before {
		return
	}
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		at := diag.Position{File: k.file}
		if n := findKey(k.doc, m[1]); n != nil {
			at = k.at(n)
		}
		w.add("kustomization-unknown-field", at, fmt.Sprintf("unknown field %q", m[1]), hint)
		return
	}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		if key, v := foldedField(k.doc, m[2]); key != nil {
			w.add("kustomization-invalid", k.at(v), fmt.Sprintf("%s cannot hold a %s", m[2]+m[3], m[1]), hint)
			return
		}
	}
	root := err
	for next := errors.Unwrap(root); next != nil; next = errors.Unwrap(root) {
		root = next
	}
	w.add("kustomization-invalid", diag.Position{File: k.file}, "the kustomization cannot be decoded: "+root.Error(), hint)
}

// findKey returns the first key of a name anywhere below n.
func findKey(n *yaml.Node, name string) *yaml.Node {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if c.Value == name {
				return c
			}
			continue
		}
		if found := findKey(c, name); found != nil {
			return found
		}
	}
	return nil
}

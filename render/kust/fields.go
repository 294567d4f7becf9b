package kust

import (
	"fmt"
	"path"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// references reads the files and directories that a kustomization refers to.
type references struct {
	*reader
	k *kust
	// base walks the kustomization in a directory. at is the position of the entry that names it.
	base func(dir string, at diag.Position) *kust
}

// follow reads everything that the fields of the kustomization refer to.
func (r references) follow() {
	s := &r.k.spec
	r.resources("resources", s.Resources)
	r.resources("bases", s.Bases) //nolint:staticcheck // Deprecated fields are still in use, and are walked.
	r.components()
	r.patchEntries("patches", s.Patches)
	r.patchEntries("patchesJson6902", s.PatchesJson6902) //nolint:staticcheck // As above.
	r.legacyMerges()
	r.replacements()
	r.crds()
	for i, ref := range s.Configurations {
		r.yamlRef(ref, r.k.entry("configurations", i))
	}
	for i, g := range s.ConfigMapGenerator {
		r.generated(r.k.entry("configMapGenerator", i), g.KvPairSources)
	}
	for i, g := range s.SecretGenerator {
		r.generated(r.k.entry("secretGenerator", i), g.KvPairSources)
	}
	pluginReferences{r}.follow("generators", s.Generators)
	pluginReferences{r}.follow("transformers", s.Transformers)
	pluginReferences{r}.follow("validators", s.Validators)
}

// entry returns the node of an entry in a list field. If the node is unknown, for example because of a merge
// key, it returns the node of the field's key.
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

// at returns the position of a node of the kustomization.
func (k *kust) at(n *yaml.Node) diag.Position {
	return diag.Position{File: k.file, Line: n.Line, Column: n.Column}
}

// under returns the position of a field of an entry, or of the entry if it does not have the field.
func (k *kust) under(entry *yaml.Node, name string) diag.Position {
	if _, v := foldedField(entry, name); v != nil {
		return k.at(v)
	}
	return k.at(entry)
}

// local resolves a reference of a kustomization. ok is false if it was refused.
func (r references) local(ref string, at diag.Position) (string, tree.Entry, bool) {
	switch {
	case isRemote(ref):
		r.add("remote-reference", at, fmt.Sprintf("%s is a remote reference", ref),
			"A build fetches nothing. Copy what it refers to into the repository and name its path.")
		return "", tree.Entry{}, false
	case strings.TrimSpace(ref) == "":
		r.add("bad-path", at, "the reference is empty", "Give a path.")
		return "", tree.Entry{}, false
	case path.IsAbs(ref):
		r.add("path-escape", at, fmt.Sprintf("%s is an absolute path", ref), "Give a path relative to the kustomization.")
		return "", tree.Entry{}, false
	}
	joined := path.Join(r.k.dir, ref)
	var physical string
	var entry tree.Entry
	err := errEscape
	if joined != ".." && !strings.HasPrefix(joined, "../") {
		physical, entry, err = r.view.resolve(joined)
	}
	if err != nil {
		r.pathFault(ref, at, err)
		return "", tree.Entry{}, false
	}
	return physical, entry, true
}

// localFile resolves a reference to a file below the kustomization.
func (r references) localFile(ref string, at diag.Position) (string, bool) {
	physical, entry, ok := r.local(ref, at)
	if !ok {
		return "", false
	}
	if !entry.Mode.IsFile() {
		r.add("bad-path", at, fmt.Sprintf("%s is a directory", ref), "Name a file.")
		return "", false
	}
	if !within(r.k.dir, physical) {
		r.outsideRoot(ref, at)
		return "", false
	}
	return physical, true
}

// yamlRef reads a YAML file that an entry refers to. It returns nil if it refuses the file.
func (r references) yamlRef(ref string, entry *yaml.Node) *file {
	p, ok := r.localFile(ref, r.k.at(entry))
	if !ok {
		return nil
	}
	return r.yamlFile(p, r.k.at(entry))
}

// resources reads the files of objects and walks the bases in a list.
func (r references) resources(name string, refs []string) {
	for i, ref := range refs {
		at := r.k.at(r.k.entry(name, i))
		physical, entry, ok := r.local(ref, at)
		if !ok {
			continue
		}
		if !entry.Mode.IsFile() {
			if child := r.base(physical, at); child != nil {
				r.k.children = append(r.k.children, child)
			}
			continue
		}
		if !within(r.k.dir, physical) {
			r.outsideRoot(ref, at)
			continue
		}
		if f := r.yamlFile(physical, at); f != nil {
			r.checkObjects(f)
			r.k.objects = append(r.k.objects, f)
		}
	}
}

// components checks the references to components: it adds the kustomization of every component to the children,
// and a fault for a component that is a file.
func (r references) components() {
	for i, ref := range r.k.spec.Components {
		at := r.k.at(r.k.entry("components", i))
		physical, entry, ok := r.local(ref, at)
		switch {
		case !ok:
		case entry.Mode.IsFile():
			r.add("bad-path", at, fmt.Sprintf("%s is a file", ref), "A component is a directory.")
		default:
			if child := r.base(physical, at); child != nil {
				r.k.children = append(r.k.children, child)
			}
		}
	}
}

// patchEntries reads the patches of a list, which are in files or inline.
func (r references) patchEntries(name string, entries []types.Patch) {
	for i, p := range entries {
		entry := deref(r.k.entry(name, i))
		_, target := foldedField(entry, "target")
		switch {
		case p.Path != "":
			at := r.k.under(entry, "path")
			if physical, ok := r.localFile(p.Path, at); ok {
				if f := r.yamlFile(physical, at); f != nil {
					r.k.patches = append(r.k.patches, patch{file: f, docs: f.docs, entry: entry, target: target})
				}
			}
		case p.Patch != "":
			_, scalar := foldedField(entry, "patch")
			r.inlinePatch(scalar, entry, target)
		}
	}
}

// inlinePatch parses a patch in a scalar of the kustomization.
func (r references) inlinePatch(scalar, entry, target *yaml.Node) {
	if scalar == nil || scalar.Kind != yaml.ScalarNode {
		r.add("kustomization-invalid", r.k.at(entry), "the patch is not a text", "")
		return
	}
	p := patch{inline: scalar, entry: entry, target: target}
	docs, ok := r.parse([]byte(scalar.Value), p.location(r.k))
	if ok {
		p.docs = docs
		r.k.patches = append(r.k.patches, p)
	}
}

// legacyMerges reads patchesStrategicMerge. Each entry is a path or a patch.
func (r references) legacyMerges() {
	for i, ref := range r.k.spec.PatchesStrategicMerge { //nolint:staticcheck // Deprecated fields are still in use.
		entry := deref(r.k.entry("patchesStrategicMerge", i))
		if isInline(string(ref)) && entry.Kind == yaml.ScalarNode {
			r.inlinePatch(entry, entry, nil)
		} else if f := r.yamlRef(string(ref), entry); f != nil {
			r.k.patches = append(r.k.patches, patch{file: f, docs: f.docs, entry: entry})
		}
	}
}

// isInline reports whether a text is YAML of objects and not a path. It uses the rules of kustomize.
func isInline(s string) bool {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(s), &n); err != nil {
		return strings.Contains(s, "\n")
	}
	return len(n.Content) == 1 && n.Content[0].Kind != yaml.ScalarNode
}

// replacements reads the files that the field replacements names by path, so that their delimiters and paths can
// be checked.
func (r references) replacements() {
	for i, from := range r.k.spec.Replacements {
		if from.Path != "" {
			entry := r.k.entry("replacements", i)
			if p, ok := r.localFile(from.Path, r.k.under(entry, "path")); ok {
				if f := r.yamlFile(p, r.k.under(entry, "path")); f != nil {
					r.k.settings = append(r.k.settings, f.docs...)
				}
			}
		}
	}
}

// generated reads the sources of a generator's entry.
func (r references) generated(entry *yaml.Node, s types.KvPairSources) {
	read := func(name string, i int, ref string) {
		at := r.k.under(entry, name)
		if _, list := foldedField(entry, name); list != nil && list.Kind == yaml.SequenceNode && i < len(list.Content) {
			at = r.k.at(list.Content[i])
		}
		if p, ok := r.localFile(ref, at); ok {
			r.data(p, at)
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

// crds reads schema files. kustomize follows their references without checking for cycles, which
// would end the process.
func (r references) crds() {
	for i, ref := range r.k.spec.Crds {
		entry := r.k.entry("crds", i)
		f := r.yamlRef(ref, entry)
		if f == nil {
			continue
		}
		if len(f.docs) != 1 || f.docs[0].Kind != yaml.MappingNode {
			r.add("kustomization-invalid", diag.Position{File: f.path}, "the file of crds is not one mapping of type names to schemas",
				"It must be in OpenAPI form, not a CustomResourceDefinition.")
			continue
		}
		budget := maxSchemaSteps
		for j := 0; j+1 < len(f.docs[0].Content) && budget > 0; j += 2 {
			budget = followSchema(f.docs[0], deref(f.docs[0].Content[j]).Value, budget)
		}
		if budget <= 0 {
			r.report(tooLarge(diag.Position{File: f.path}, "the schemas refer to each other in a cycle, or too often"))
		}
	}
}

// maxSchemaSteps bounds the references that are followed in one schema file.
const maxSchemaSteps = 10_000

// followSchema follows references from one type, as kustomize does, and returns the remaining budget.
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

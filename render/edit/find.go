package edit

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// finder makes possible edits for a change. They need not be correct, because each of them must be proven.
type finder struct {
	files  tree.Tree
	render *render.Result
	change Change
	dir    string
	steps  []kust.ValueChange // the steps that produced the field's value
}

// inPlace changes the existing value where it is written. It returns nil if the place is unknown or has no
// single value.
func (f *finder) inPlace() []change {
	if len(f.steps) == 0 {
		return nil
	}
	last := f.steps[len(f.steps)-1]
	if last.Value == nil || last.Line == 0 || !single(f.change.Value) {
		return nil
	}
	content, err := f.files.ReadFile(last.File)
	if err != nil {
		return nil
	}
	out, ok := replace(content, last.Line, last.Column, *last.Value, f.change.Value)
	if !ok {
		return nil
	}
	return []change{{last.File, out}}
}

// inObject changes the document of the object. It adds a missing field, removes the field, or replaces a list
// or a mapping.
func (f *finder) inObject() []change {
	at, known := f.first(intent.Path{"metadata", "name"})
	if len(f.steps) > 0 && f.change.Value != nil || !known {
		return nil
	}
	content, err := f.files.ReadFile(at.File)
	if err != nil || strings.HasSuffix(at.File, ".json") {
		return nil
	}
	its := func(doc *yaml.Node) bool {
		name := nodeAt(doc, "metadata", "name")
		return name != nil && name.Line == at.Line && name.Column == at.Column
	}
	if out, ok := insert(content, its, f.change.Field, f.change.Value); ok {
		return []change{{at.File, out}}
	}
	return nil
}

// inPatches does the same in existing patches of the object in the directory's kustomization.
func (f *finder) inPatches() (out []change) {
	file, content, doc := f.kustomization()
	if doc == nil {
		return nil
	}
	names := f.values(intent.Path{"metadata", "name"})
	its := func(targeted *yaml.Node) func(doc *yaml.Node) bool {
		of := func(n *yaml.Node, kind, name *yaml.Node) bool {
			return kind != nil && kind.Value == f.change.Object.Kind && name != nil && slices.Contains(names, name.Value)
		}
		return func(doc *yaml.Node) bool {
			return doc.Kind == yaml.MappingNode && (of(doc, nodeAt(doc, "kind"), nodeAt(doc, "metadata", "name")) ||
				targeted != nil && of(targeted, nodeAt(targeted, "kind"), nodeAt(targeted, "name")))
		}
	}
	inFile := func(p string, targeted *yaml.Node) {
		at := path.Join(f.dir, p)
		if text, err := f.files.ReadFile(at); err == nil && !strings.HasSuffix(at, ".json") {
			if text, ok := insert(text, its(targeted), f.change.Field, f.change.Value); ok {
				out = append(out, change{at, text})
			}
		}
	}
	inScalar := func(n, targeted *yaml.Node) {
		if text, ok := insertInScalar(content, n, its(targeted), f.change.Field, f.change.Value); ok {
			out = append(out, change{file, text})
		}
	}
	if list := nodeAt(doc, "patches"); list != nil && list.Kind == yaml.SequenceNode {
		for _, entry := range list.Content {
			targeted := nodeAt(entry, "target")
			if n := nodeAt(entry, "path"); n != nil {
				inFile(n.Value, targeted)
			}
			if n := nodeAt(entry, "patch"); n != nil {
				inScalar(n, targeted)
			}
		}
	}
	if list := nodeAt(doc, "patchesStrategicMerge"); list != nil && list.Kind == yaml.SequenceNode {
		for _, n := range list.Content {
			inFile(n.Value, nil)
			inScalar(n, nil)
		}
	}
	return out
}

// asPatch adds a patch to the directory's kustomization, once for each name that the object may have there.
func (f *finder) asPatch() (out []change) {
	file, content, doc := f.kustomization()
	if doc == nil {
		return nil
	}
	ref, names := f.change.Object, f.values(intent.Path{"metadata", "name"})
	namespaces := append(f.values(intent.Path{"metadata", "namespace"}), "")
	for _, name := range names {
		if slices.ContainsFunc(f.change.Field, func(elem string) bool { _, is := index(elem); return is }) {
			if text, ok := addPatch(content, doc, operation(ref, name, f.change)); ok {
				out = append(out, change{file, text})
			}
			continue
		}
		for _, namespace := range namespaces {
			if text, ok := addPatch(content, doc, merge(ref, name, namespace, f.change)); ok {
				out = append(out, change{file, text})
			}
		}
	}
	return out
}

// kustomization returns the kustomization of the directory. doc is nil if no kustomization can be changed.
func (f *finder) kustomization() (file string, content []byte, doc *yaml.Node) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		file = path.Join(f.dir, name)
		if content, err := f.files.ReadFile(file); err == nil {
			if docs := documents(content); len(docs) == 1 && docs[0].Kind == yaml.MappingNode && docs[0].Style&yaml.FlowStyle == 0 {
				return file, content, docs[0]
			}
		}
	}
	return "", nil, nil
}

// first returns the original place of a scalar of the object, before patches and prefixes.
func (f *finder) first(p intent.Path) (kust.ValueChange, bool) {
	steps := f.render.Chain(render.Field{Source: render.Written, Object: f.change.Object, Manifest: p})
	if len(steps) == 0 || steps[0].How != kust.Base || steps[0].Line == 0 {
		return kust.ValueChange{}, false
	}
	return steps[0], true
}

// values returns the values of a scalar of the object in all steps, the last one first.
func (f *finder) values(p intent.Path) (out []string) {
	steps := f.render.Chain(render.Field{Source: render.Written, Object: f.change.Object, Manifest: p})
	for _, s := range slices.Backward(steps) {
		if s.Value != nil && *s.Value != "" && !slices.Contains(out, *s.Value) {
			out = append(out, *s.Value)
		}
	}
	return out
}

// merge returns the lines of a strategic merge patch that sets the field.
func merge(ref intent.ObjectRef, name, namespace string, w Change) []string {
	lines := []string{"- patch: |-", "    apiVersion: " + ref.APIVersion, "    kind: " + ref.Kind, "    metadata:"}
	if namespace != "" {
		lines = append(lines, "      namespace: "+scalar(namespace))
	}
	lines = append(lines, "      name: "+scalar(name))
	return append(lines, nested(w.Field, w.Value, 4)...)
}

// operation returns the lines of a JSON 6902 patch that sets the field.
func operation(ref intent.ObjectRef, name string, w Change) []string {
	op, pointer := "add", ""
	for _, elem := range w.Field {
		if i, is := index(elem); is {
			elem, op = fmt.Sprint(i), "replace"
		} else {
			op = "add"
		}
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(elem)
	}
	lines := []string{"- target:"}
	if group := ref.Group(); group != "" {
		lines = append(lines, "    group: "+group)
	}
	lines = append(lines, "    kind: "+ref.Kind, "    name: "+scalar(regexp.QuoteMeta(name)), "  patch: |-")
	if w.Value == nil {
		return append(lines, "    - op: remove", "      path: "+scalar(pointer))
	}
	return append(lines, "    - op: "+op, "      path: "+scalar(pointer), "      value: "+flow(w.Value))
}

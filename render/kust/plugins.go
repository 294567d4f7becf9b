package kust

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"go.yaml.in/yaml/v3"
)

// builtins are the kinds of generator and transformer that are part of kustomize
// and run no program.
func builtin(kind string) bool {
	switch kind {
	case "AnnotationsTransformer", "HashTransformer", "ImageTagTransformer", "LabelTransformer", "NamespaceTransformer",
		"PatchJson6902Transformer", "PatchStrategicMergeTransformer", "PatchTransformer", "PrefixSuffixTransformer",
		"PrefixTransformer", "SuffixTransformer", "ReplacementTransformer", "ReplicaCountTransformer", "ValueAddTransformer",
		"ConfigMapGenerator", "SecretGenerator", "IAMPolicyGenerator":
		return true
	}
	return false
}

// plugins walks generators, transformers or validators: files of configurations, or configurations
// in place. Directories are refused, because the configuration that a kustomization would render
// cannot be checked beforehand.
func (w *walker) plugins(k *kust, name string, refs []string) {
	for i, ref := range refs {
		entry := deref(k.entry(name, i))
		if isInline(ref) && entry.Kind == yaml.ScalarNode {
			p := location{file: k.file, scalar: entry, source: k.content}
			docs, ok := w.parse([]byte(ref), p)
			if ok {
				w.pluginConfigs(k, docs, p)
			}
			continue
		}
		at := k.at(entry)
		physical, e, ok := w.local(k, ref, at)
		switch {
		case !ok:
		case !e.Mode.IsFile():
			w.add("unsupported-field", at, fmt.Sprintf("%s: a directory of %s is not supported", ref, name), "Name the files one by one.")
		case !within(k.dir, physical):
			w.outsideRoot(ref, at)
		default:
			if f := w.yamlFile(physical, at); f != nil {
				k.configs = append(k.configs, f)
				w.pluginConfigs(k, f.docs, location{file: physical})
			}
		}
	}
}

func (w *walker) pluginConfigs(k *kust, docs []*yaml.Node, p location) {
	for _, doc := range docs {
		kind := text(doc, "kind")
		switch {
		case strings.Contains(strings.ToLower(kind), "helm"):
			w.add("helm", p.node(doc), "Helm charts are not inflated", "Render the chart and commit its output.")
		case doc.Kind != yaml.MappingNode || text(doc, "apiVersion") != "builtin" || !builtin(kind):
			w.add("exec-plugin", p.node(doc), fmt.Sprintf("%q of %q is not one of kustomize's own generators and transformers", kind, text(doc, "apiVersion")),
				"A build runs no program and no container. Use the kinds of apiVersion builtin.")
		default:
			w.foldedKeys(doc, p)
			k.growth = append(k.growth, doc)
			if w.noFunction(doc, p) {
				w.pluginRefs(k, doc, p)
				if kind == "ConfigMapGenerator" || kind == "SecretGenerator" {
					w.generatorSources(k, doc, p, kind)
				}
			}
		}
	}
}

// noFunction refuses the annotations that turn a configuration into a program.
func (w *walker) noFunction(doc *yaml.Node, p location) bool {
	_, meta := field(doc, "metadata")
	_, ann := field(meta, "annotations")
	if ann == nil {
		return true
	}
	for i := 0; i+1 < len(ann.Content); i += 2 {
		key := deref(ann.Content[i])
		if strings.HasSuffix(key.Value, "/function") {
			w.add("exec-plugin", p.node(key), "the configuration names a function to run", "A build runs no program and no container.")
			return false
		}
	}
	return true
}

// pluginRefs walks every reference that a builtin configuration can hold, by the
// names of the fields that hold one.
func (w *walker) pluginRefs(k *kust, doc *yaml.Node, p location) {
	refs := func(name string, read func(ref string, at diag.Position)) {
		_, v := foldedField(doc, name)
		switch {
		case v == nil:
		case v.Kind == yaml.ScalarNode && !isNull(v):
			read(v.Value, p.node(v))
		case v.Kind == yaml.SequenceNode:
			for _, c := range v.Content {
				c = deref(c)
				if c.Kind == yaml.ScalarNode {
					read(c.Value, p.node(c))
				} else if _, in := foldedField(c, "path"); in != nil {
					read(in.Value, p.node(in))
				}
			}
		}
	}
	_, target := foldedField(doc, "target")
	asYAML := func(ref string, at diag.Position) {
		if physical, ok := w.localFile(k, ref, at); ok {
			if f := w.yamlFile(physical, at); f != nil {
				k.growth = append(k.growth, f.docs...)
				k.loose = append(k.loose, patch{file: f, docs: f.docs, entry: doc, target: target})
			}
		}
	}
	asText := func(text string, at diag.Position) {
		docs, _ := w.parse([]byte(text), location{file: at.File, scalar: &yaml.Node{Kind: yaml.ScalarNode, Line: at.Line, Column: at.Column}})
		k.loose = append(k.loose, patch{docs: docs, entry: doc, target: target})
	}
	asData := func(ref string, at diag.Position) {
		if key, after, ok := strings.Cut(ref, "="); ok && !isRemote(key) {
			ref = after
		}
		if physical, ok := w.localFile(k, ref, at); ok {
			w.data(physical, at)
		}
	}
	refs("path", asYAML)
	refs("replacements", asYAML)
	refs("paths", func(ref string, at diag.Position) {
		if isInline(ref) {
			asText(ref, at)
		} else {
			asYAML(ref, at)
		}
	})
	for _, name := range []string{"patch", "patches", "jsonOp"} {
		refs(name, asText)
	}
	for _, name := range []string{"files", "envs", "env"} {
		refs(name, asData)
	}
}

// remoteForm matches everything that kustomize, or one of its older versions,
// would fetch: a scheme with //, http: and https: in any form, git:: and the
// like, user@host, and github.com without a scheme. It matches more than
// kustomize's own rules do, for a false alarm costs a rename and a miss costs a request
// that an author in a repository has chosen.
var remoteForm = regexp.MustCompile(`(?i)^\s*([a-z][a-z0-9+.-]*://|https?:|(git|hg|s3|gcs|oci|file)::?|gh:|[a-z0-9._-]+@[^/]*[:/]|github\.com[/:])`)

// isRemote reports whether kustomize might take a reference for one to another
// machine or to another repository.
func isRemote(ref string) bool { return remoteForm.MatchString(ref) }

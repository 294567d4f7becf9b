package kust

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"go.yaml.in/yaml/v3"
)

// builtin reports whether a kind is a built-in generator or transformer of kustomize, which runs no program.
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

// pluginReferences reads the configurations of generators, transformers and validators, and the files that
// they refer to.
type pluginReferences struct{ references }

// follow reads one list. An entry is a file of configurations, or an inline configuration. follow
// refuses directories: a kustomization could render a configuration that weir cannot check.
func (r pluginReferences) follow(name string, refs []string) {
	for i, ref := range refs {
		entry := deref(r.k.entry(name, i))
		if isInline(ref) && entry.Kind == yaml.ScalarNode {
			p := location{file: r.k.file, scalar: entry, source: r.k.content}
			docs, ok := r.parse([]byte(ref), p)
			if ok {
				r.configs(docs, p)
			}
			continue
		}
		at := r.k.at(entry)
		physical, e, ok := r.local(ref, at)
		switch {
		case !ok:
		case !e.Mode.IsFile():
			r.add("unsupported-field", at, fmt.Sprintf("%s: a directory of %s is not supported", ref, name), "Name the files one by one.")
		case !within(r.k.dir, physical):
			r.outsideRoot(ref, at)
		default:
			if f := r.yamlFile(physical, at); f != nil {
				r.k.configs = append(r.k.configs, f)
				r.configs(f.docs, location{file: physical})
			}
		}
	}
}

// configs checks configurations and reads the files that they refer to.
func (r pluginReferences) configs(docs []*yaml.Node, p location) {
	check := checker{r.reader, r.k}
	for _, doc := range docs {
		kind := text(doc, "kind")
		switch {
		case strings.Contains(strings.ToLower(kind), "helm"):
			r.add("helm", p.node(doc), "Helm charts are not inflated", "Render the chart and commit its output.")
		case doc.Kind != yaml.MappingNode || text(doc, "apiVersion") != "builtin" || !builtin(kind):
			r.add("exec-plugin", p.node(doc), fmt.Sprintf("%q of %q is not one of kustomize's own generators and transformers", kind, text(doc, "apiVersion")),
				"A build runs no program and no container. Use the kinds of apiVersion builtin.")
		default:
			check.foldedKeys(doc, p)
			r.k.settings = append(r.k.settings, doc)
			if check.noFunction(doc, p) {
				r.config(doc, p)
				if kind == "ConfigMapGenerator" || kind == "SecretGenerator" {
					check.generatorSources(doc, p, kind)
				}
			}
		}
	}
}

// config reads everything that a built-in configuration can refer to, by field name.
func (r pluginReferences) config(doc *yaml.Node, p location) {
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
		if physical, ok := r.localFile(ref, at); ok {
			if f := r.yamlFile(physical, at); f != nil {
				r.k.settings = append(r.k.settings, f.docs...)
				r.k.loose = append(r.k.loose, patch{file: f, docs: f.docs, entry: doc, target: target})
			}
		}
	}
	asText := func(text string, at diag.Position) {
		docs, _ := r.parse([]byte(text), location{file: at.File, scalar: &yaml.Node{Kind: yaml.ScalarNode, Line: at.Line, Column: at.Column}})
		r.k.loose = append(r.k.loose, patch{docs: docs, entry: doc, target: target})
	}
	asData := func(ref string, at diag.Position) {
		if key, after, ok := strings.Cut(ref, "="); ok && !isRemote(key) {
			ref = after
		}
		if physical, ok := r.localFile(ref, at); ok {
			r.data(physical, at)
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

// remoteForm matches everything that any version of kustomize would fetch: a scheme with //, http:
// and https: in any form, git:: and the like, user@host, and github.com without a scheme. It matches
// more than kustomize's own rules. A false match costs a rename. A missed match would let an author
// of a repository choose a request that weir sends.
var remoteForm = lazyregexp.New(`(?i)^\s*([a-z][a-z0-9+.-]*://|https?:|(git|hg|s3|gcs|oci|file)::?|gh:|[a-z0-9._-]+@[^/]*[:/]|github\.com[/:])`)

// isRemote reports whether kustomize could read a reference from another machine or repository.
func isRemote(ref string) bool { return remoteForm.MatchString(ref) }

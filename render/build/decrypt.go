package build

import (
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/tree"
	"go.yaml.in/yaml/v3"
)

// decryption is what became of the encrypted files that a view has read.
type decryption struct {
	by      *sops.Decrypter
	faults  diag.List
	secrets []string
	// secretless says that some content is made of placeholders, retry that a
	// later try may open what was not opened now.
	secretless, retry bool
}

// open returns the plain text of a file. Files are opened where they are read, so
// that patches, generators and resources all see plain text, and what is looked
// for in files is looked for in what counts.
func (v *view) open(p string, e tree.Entry, content []byte) []byte {
	if !e.Mode.IsFile() {
		return content
	}
	f, encrypted := v.decryption.by.Open(v.ctx, p, content)
	if !encrypted {
		return content
	}
	d := &v.decryption
	d.faults = append(d.faults, f.Faults...)
	d.secrets = append(d.secrets, f.Secrets...)
	d.secretless = d.secretless || f.Placeholders
	d.retry = d.retry || f.Retry
	return f.Content
}

// decrypted takes over what a view found out about encrypted files.
func (r *Result) decrypted(v *view, w *walker) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d := v.decryption
	for _, f := range d.faults {
		w.report(f)
	}
	if len(d.secrets) > 0 {
		w.refuseSplitting()
	}
	slices.Sort(d.secrets)
	r.Secrets, r.Secretless, r.Retry = slices.Compact(d.secrets), d.secretless, d.retry
	r.decrypter = d.by
}

// refuseSplitting refuses replacements that read a part of a field, in a build that
// holds decrypted values: a piece of one is not known to be secret any more, in
// whatever field it ends. Which field a piece comes from cannot be told, because one
// replacement may read what another has written.
func (w *walker) refuseSplitting() {
	for _, k := range w.order {
		for _, doc := range k.growth {
			file := k.file
			for name, f := range w.files {
				if slices.Contains(f.docs, doc) {
					file = name
				}
			}
			for _, at := range splittingIn(doc) {
				w.report(faultAt("secret-split", diag.Position{File: file, Line: at.Line, Column: at.Column},
					"a replacement reads a part of a field, and the build holds values that were encrypted",
					"Have it read a whole field: without options.delimiter of the source."))
			}
		}
	}
}

// splittingIn are the delimiters of all sources of replacements below n.
func splittingIn(n *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	if _, source := foldedField(n, "source"); source != nil {
		if _, targets := foldedField(n, "targets"); targets != nil {
			_, options := foldedField(source, "options")
			if _, delimiter := foldedField(options, "delimiter"); delimiter != nil {
				out = append(out, delimiter)
			}
		}
	}
	for _, c := range n.Content {
		out = append(out, splittingIn(c)...)
	}
	return out
}

// Shown is YAML with each value as show has it.
func (r *Result) Shown(show func(ref intent.ObjectRef, p intent.Path, value string) string) []byte {
	nodes := make([]*yaml.Node, len(r.Objects))
	for i, o := range r.Objects {
		nodes[i] = copyNode(o.Node)
		change(nodes[i], nil, func(p intent.Path, value string) string { return show(o.Ref, p, value) })
	}
	return printObjects(nodes)
}

func change(n *yaml.Node, p intent.Path, show func(p intent.Path, value string) string) {
	switch n.Kind {
	case yaml.ScalarNode:
		if shown := show(p, n.Value); shown != n.Value {
			n.Value, n.Tag, n.Style = shown, "!!str", yaml.DoubleQuotedStyle
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			change(c, p.Join(intent.Index(i)), show)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := p.Join(n.Content[i].Value)
			n.Content[i].Value = show(p, n.Content[i].Value)
			change(n.Content[i+1], at, show)
		}
	}
}

package kust

import (
	"fmt"
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
	// files are those that were opened, by physical path.
	files map[string]sops.File
}

// open returns the plain text of a file. Files are opened where they are read, so that
// patches, generators and resources all see plain text, and so does every check.
func (v *view) open(p string, e tree.Entry, content []byte) []byte {
	if !e.Mode.IsFile() {
		return content
	}
	if int64(len(content)) > v.lim.DocumentBytes && sops.MayBe(content) {
		v.decryption.faults = append(v.decryption.faults, tooLarge(diag.Position{File: p}, fmt.Sprintf("the file has more than %d bytes and may be encrypted", v.lim.DocumentBytes)))
		return nil
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
	if !f.Placeholders {
		if d.files == nil {
			d.files = map[string]sops.File{}
		}
		d.files[p] = f
	}
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
	if r.Again != nil {
		r.Again.Diags = append(r.Again.Diags, d.faults...)
	}
	slices.Sort(d.secrets)
	r.Secrets, r.Secretless, r.Retry = slices.Compact(d.secrets), d.secretless, d.retry || v.killed.Load()
	r.decrypter = d.by
}

// Shown is YAML with each key and value as show returns it: a scalar node at or, for a
// key, below a path.
func (r *Result) Shown(show func(ref intent.ObjectRef, p intent.Path, n *yaml.Node) string) []byte {
	nodes := make([]*yaml.Node, len(r.Objects))
	for i, o := range r.Objects {
		nodes[i] = copyNode(o.Node)
		change(o.Node, nodes[i], nil, func(p intent.Path, n *yaml.Node) string { return show(o.Ref, p, n) })
	}
	return printObjects(nodes)
}

func change(n, c *yaml.Node, p intent.Path, show func(p intent.Path, n *yaml.Node) string) {
	switch n.Kind {
	case yaml.ScalarNode:
		if shown := show(p, n); shown != n.Value {
			c.Value, c.Tag, c.Style = shown, "!!str", yaml.DoubleQuotedStyle
		}
	case yaml.SequenceNode:
		for i := range n.Content {
			change(n.Content[i], c.Content[i], p.Join(intent.Index(i)), show)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			c.Content[i].Value = show(p, n.Content[i])
			change(n.Content[i+1], c.Content[i+1], p.Join(n.Content[i].Value), show)
		}
	}
}

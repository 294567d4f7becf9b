package kust

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/output"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/standin"
	"github.com/weir-gitops/weir/render/tree"
	"go.yaml.in/yaml/v3"
)

// decryption has the results for the encrypted files that a view has read.
type decryption struct {
	by      *sops.Decrypter
	faults  diag.List
	secrets []string
	// secretless is true if placeholders replace some secrets. retry is true if a later attempt may be able
	// to open files.
	secretless, retry bool
	// files has the opened files, by physical path.
	files map[string]sops.File
	// texts has the secret texts of files and variables. places has the positions of the texts in files, by
	// ID.
	texts  standin.Set
	places map[string]diag.Position
}

// open returns the plain text of a file, with stand-ins in place of encrypted values. It opens files when
// they are read, so no part of a build sees a secret text: no patch, no generator, no check.
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
	if f.Placeholders {
		return f.Content
	}
	if d.files == nil {
		d.files = map[string]sops.File{}
	}
	d.files[p] = f
	return d.standIns(p, false)
}

// standIns returns the content of an opened file, with stand-ins. In a file whose text becomes a value, the
// stand-ins replace the YAML form of a value, including quotes.
func (d *decryption) standIns(p string, asText bool) []byte {
	f := d.files[p]
	content, err := f.StandIns(func(s sops.Sealed) string {
		t := standin.Text{ID: idOf(s), Value: s.Value, Tag: s.Tag}
		if asText {
			t.Literal = s.Literal
		}
		if d.places == nil {
			d.places = map[string]diag.Position{}
		}
		d.places[t.ID] = diag.Position{File: p, Line: s.Line}
		return d.texts.Add(t)
	})
	if err != nil { // unexpected, because the content without stand-ins could be written
		d.faults = append(d.faults, faultAt("sops-invalid", diag.Position{File: p}, "the decrypted file cannot be written", "Encrypt it again with sops."))
		return nil
	}
	return content
}

// idOf returns the ID of an encrypted value. The ID is not secret, and changes whenever the value is
// encrypted again.
func idOf(s sops.Sealed) string {
	sum := sha256.Sum256([]byte("sops\x00" + s.Ciphertext))
	return hex.EncodeToString(sum[:16])
}

// registerLiterals records that the whole text of a file becomes a value in an object, such as a key of a
// ConfigMap. If the file was decrypted, its secrets are registered again with their YAML literals. In that text,
// the literal later replaces a quoted stand-in together with its quotes.
func (v *view) registerLiterals(p string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, opened := v.decryption.files[p]; opened {
		v.decryption.standIns(p, true) // only registers the secrets; the content is already in use
	}
}

// sealed returns the variables with stand-ins for secret values: the values of marked variables, and values
// that contain them. All of them come from the configuration.
func (d *decryption) sealed(vars map[string]string, secretVars []string) map[string]string {
	if len(secretVars) == 0 {
		return vars
	}
	var values []string
	for _, name := range secretVars {
		values = append(values, vars[name])
	}
	holds := secret.New(values...).Finder()
	out := maps.Clone(vars)
	for name, value := range vars {
		if value != "" && (slices.Contains(secretVars, name) || holds.In(value)) {
			out[name] = d.texts.Add(standin.Text{ID: "variable " + name, Value: value})
		}
	}
	return out
}

// decrypted copies the results for encrypted files from a view, and masks secrets in the findings.
func (r *Result) decrypted(v *view, found *findings) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d := v.decryption
	for _, f := range d.faults {
		found.report(f)
	}
	slices.Sort(d.secrets)
	r.Secrets, r.Secretless, r.Retry = slices.Compact(d.secrets), d.secretless, d.retry || v.killed.Load()
	for i, f := range found.diags {
		found.diags[i] = masked(f, r.texts)
	}
}

// masked returns a finding without stand-ins, which would only confuse a reader.
func masked(d diag.Diagnostic, texts *standin.Set) diag.Diagnostic {
	if texts.Len() == 0 {
		return d
	}
	d.Summary, d.Detail, d.Object, d.Field = texts.Mask(d.Summary), texts.Mask(d.Detail), texts.Mask(d.Object), texts.Mask(d.Field)
	d.File = texts.Mask(d.File)
	d.Related = slices.Clone(d.Related)
	for i := range d.Related {
		d.Related[i].Message, d.Related[i].File = texts.Mask(d.Related[i].Message), texts.Mask(d.Related[i].File)
	}
	return d
}

// Shown returns YAML of the objects with stand-ins. It writes the result of show for every scalar. The path
// is the path of a value, or of the mapping that has the key.
func (r *Result) Shown(show func(ref intent.ObjectRef, p intent.Path, n *yaml.Node) string) []byte {
	if r.Objects == nil {
		return nil
	}
	nodes := make([]*yaml.Node, len(r.objects))
	for i, o := range r.objects {
		nodes[i] = copyNode(o.Node)
		change(o.Node, nodes[i], nil, func(p intent.Path, n *yaml.Node) string { return show(o.Ref, p, n) })
	}
	return output.YAML(nodes)
}

// change writes the results of show into c, which is a copy of n. A changed value becomes a quoted string.
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

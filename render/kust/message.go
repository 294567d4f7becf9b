package kust

import (
	"cmp"
	"encoding/base64"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/standin"
	"go.yaml.in/yaml/v3"
)

var mountedPath = lazyregexp.New(regexp.QuoteMeta(worker.Mount) + `(/)?`)

// explain returns a diagnostic for an error of kustomize, at the kustomization that caused it.
func (p *buildSpec) explain(err error) diag.Diagnostic {
	if errors.Is(err, errLimit) || strings.Contains(err.Error(), errLimit.Error()) {
		return tooLarge(diag.Position{File: p.origin}, errLimit.Error())
	}
	msg := err.Error()
	at := diag.Position{File: p.origin}
	for _, k := range p.kusts {
		// The last kustomization in a message of kustomize is the innermost one.
		dir := worker.Mounted(k.dir)
		if !k.virtual && k.dir != p.root && strings.Contains(msg, "'"+dir+"'") {
			at.File = k.file
			break
		}
	}
	if d := p.about(msg); d.Known() {
		at = d
	}
	if p.view.decryption.texts.Touches(msg) {
		if _, delimiter := p.delimiters(); delimiter.Known() {
			at = delimiter
		}
		return cutDiagnostic(at)
	}
	msg = mountedPath.ReplaceAllString(msg, "")
	msg = p.redacted(unwrapped(msg))
	const longest = 600
	if len(msg) > longest {
		msg = strings.ToValidUTF8(msg[:longest], "") + "…"
	}
	detail := sameInKubectl
	if p.view.decryption.texts.Len() > 0 {
		detail = "kustomize gets a placeholder instead of each secret, so it cannot read the secret. If the error is not about a secret, \"kubectl kustomize\" reports it too."
	}
	return faultAt("build-failed", at, "kustomize: "+msg, detail)
}

// sameInKubectl is the hint for an error that kustomize itself reports.
const sameInKubectl = "\"kubectl kustomize\" reports the same error."

// unwrapped removes the outer layers of a message of kustomize. kustomize tries each resource as a
// file and then as a directory, and reports both faults, but only one is real.
func unwrapped(msg string) string {
	// The configuration of a transformer precedes the error, in backquotes, and contains complete
	// patches.
	if before, rest, ok := strings.Cut(msg, " with config: `"); ok {
		if i := strings.LastIndex(rest, "`: "); i >= 0 {
			msg = before + ": " + rest[i+len("`: "):]
		}
	}
	const asFile, asDirectory, noDirectory = "accumulation err='", "': recursed ", "': must build at directory"
	for {
		_, rest, found := strings.Cut(msg, asFile)
		if !found {
			break
		}
		file, _, wasFile := strings.Cut(rest, noDirectory)
		_, directory, wasDirectory := strings.Cut(rest, asDirectory)
		switch {
		case wasFile && (!wasDirectory || len(file) < len(rest)-len(asDirectory)-len(directory)):
			msg = file
		case wasDirectory:
			if _, msg, found = strings.Cut(directory, "': "); !found {
				msg = directory
			}
		default:
			msg = rest
		}
	}
	if i := strings.IndexByte(msg, '\n'); i > 0 {
		msg = msg[:i]
	}
	return msg
}

// objectID matches an object's name in kustomize's messages: kind, version, group, name and
// namespace.
var objectID = lazyregexp.New(`([A-Z]\w*)\.\w+\.[^/\s"]+/([^\s"]+)\.[^.\s"]+`)

// about returns the place of the object or patch that a message names, if any. For a message about
// patches it is the last patch for the object, and otherwise the last object.
func (p *buildSpec) about(msg string) (at diag.Position) {
	m := objectID.FindStringSubmatch(msg)
	if m == nil {
		return at
	}
	names := func(doc *yaml.Node) bool { return text(doc, "kind") == m[1] && text(doc, "metadata", "name") == m[2] }
	for _, k := range p.kusts {
		for _, f := range k.objects {
			for _, doc := range f.docs {
				if names(doc) && !strings.Contains(msg, "patch") {
					at = location{file: f.path}.node(doc)
				}
			}
		}
		for _, patch := range k.patches {
			for _, doc := range patch.docs {
				if names(doc) && strings.Contains(msg, "patch") {
					at = patch.location(k).node(doc)
				}
			}
		}
	}
	return at
}

// hidden replaces text that may be secret in a message.
const hidden = "…"

// redacted removes text that may be secret from a message of kustomize: the values of generators and
// Secrets. Many messages of kustomize contain the text that caused the error.
func (p *buildSpec) redacted(msg string) string {
	const readable, wordLike, start = 4000, 4, 256
	if len(msg) > readable {
		msg = msg[:readable]
	}
	values := map[string]bool{}
	add := func(text string) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			for _, v := range []string{line, strings.Trim(line, "\"'"), strings.Trim(strconv.Quote(line), "\"")} {
				if v != "" && strings.Contains(msg, v[:min(len(v), start)]) {
					values[v] = true
				}
			}
		}
	}
	for _, k := range p.kusts {
		secretTexts(k, add)
	}
	for _, f := range p.files {
		if f.data {
			for line := range strings.Lines(string(f.content)) {
				_, value, _ := strings.Cut(line, "=")
				add(line)
				add(value)
			}
		}
	}
	longestFirst := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	for _, v := range longestFirst {
		switch {
		case len(v) > start:
			if i := strings.Index(msg, v[:start]); i >= 0 {
				msg = msg[:i] + hidden // the rest of the message does not matter
			}
		case len(v) >= wordLike:
			msg = strings.ReplaceAll(msg, v, hidden)
		default:
			msg = replaceWord(msg, v)
		}
	}
	return msg
}

func contentOf(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	return n.Content
}

// secretTexts calls add for every text of a kustomization that may be secret.
func secretTexts(k *kust, add func(string)) {
	for _, doc := range k.settings {
		for _, from := range append(entries(doc, "secretGenerator"), append(entries(doc, "configMapGenerator"), doc)...) {
			for _, n := range entries(from, "literals") {
				_, value, _ := strings.Cut(deref(n).Value, "=")
				add(deref(n).Value)
				add(value)
			}
		}
	}
	values := func(docs []*yaml.Node) {
		for _, doc := range docs {
			if doc.Kind == yaml.SequenceNode || text(doc, "kind") == "Secret" {
				secretValues(doc, add)
			}
		}
	}
	for _, f := range k.objects {
		values(f.docs)
	}
	for _, patch := range append(k.patches[:len(k.patches):len(k.patches)], k.loose...) {
		values(patch.docs)
	}
}

// secretValues calls add for the values of a Secret, also decoded, or of a JSON patch.
func secretValues(doc *yaml.Node, add func(string)) {
	for _, name := range []string{"data", "stringData"} {
		_, m := field(doc, name)
		for i, c := range contentOf(m) {
			if i%2 == 1 && deref(c).Kind == yaml.ScalarNode {
				value := deref(c).Value
				if standin.Holds(value) {
					continue // a decoded stand-in has random lines, which may be as short as a letter
				}
				add(value)
				if plain, err := base64.StdEncoding.DecodeString(value); err == nil {
					add(string(plain))
				}
			}
		}
	}
	if doc.Kind == yaml.SequenceNode {
		for _, op := range doc.Content {
			if _, v := field(op, "value"); v != nil && v.Kind == yaml.ScalarNode {
				add(v.Value)
			}
		}
	}
}

// replaceWord hides a short value in a message, except where it is part of a longer word.
func replaceWord(msg, v string) string {
	word := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	var b strings.Builder
	for {
		i := strings.Index(msg, v)
		if i < 0 {
			b.WriteString(msg)
			return b.String()
		}
		end := i + len(v)
		if i > 0 && word(msg[i-1]) || end < len(msg) && word(msg[end]) {
			b.WriteString(msg[:end])
		} else {
			b.WriteString(msg[:i] + hidden)
		}
		msg = msg[end:]
	}
}

package template

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// userDataMax is the limit of bytes of unpacked user data.
const userDataMax = 1 << 20

// part is a piece of user data that can change alone: a file, a unit, a command.
type part struct{ name, text string }

// partChanges lists the changed parts of user data with the numbers of changed lines. It never
// shows their content, because user data contains join tokens and other secrets.
func partChanges(pool *intent.Pool, from, to string) []step.Change {
	before, after := userDataParts(from), userDataParts(to)
	byName := func(list []part) map[string]part {
		out := make(map[string]part, len(list))
		for _, p := range list {
			out[p.name] = p
		}
		return out
	}
	was, is := byName(before), byName(after)
	var out []step.Change
	add := func(name string, from, to any) {
		out = append(out, step.Change{Field: model.UserDataField + "." + name, From: from, To: to, Object: pool.Bootstrap, Path: intent.Path{"spec"}})
	}
	for _, b := range before {
		a, stays := is[b.name]
		switch {
		case !stays:
			add(b.name, lineCount(b.text), nil)
		case a.text != b.text:
			more, fewer := lineChanges(b.text, a.text)
			add(b.name, lineCount(b.text), lineCount(a.text)+" (+"+strconv.Itoa(more)+" -"+strconv.Itoa(fewer)+")")
		}
	}
	for _, a := range after {
		if _, old := was[a.name]; !old {
			add(a.name, nil, lineCount(a.text))
		}
	}
	return out
}

func lineCount(text string) string {
	n := len(lines(text))
	if n == 1 {
		return "1 line"
	}
	return strconv.Itoa(n) + " lines"
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// lineChanges counts the lines that one text has more often than the other.
func lineChanges(from, to string) (more, fewer int) {
	balance := map[string]int{}
	for _, l := range lines(to) {
		balance[l]++
	}
	for _, l := range lines(from) {
		balance[l]--
	}
	for _, n := range balance {
		more, fewer = more+max(n, 0), fewer+max(-n, 0)
	}
	return more, fewer
}

// userDataParts splits user data by its format: cloud-config, a MIME document, Ignition,
// Bottlerocket's TOML or a script. Any other or broken text is one part. Names are unique.
func userDataParts(text string) []part {
	if unpacked, err := gzip.NewReader(strings.NewReader(text)); err == nil {
		var b bytes.Buffer
		// If the data is broken, its readable part is compared.
		_, _ = io.Copy(&b, io.LimitReader(unpacked, userDataMax))
		text = b.String()
	}
	parts, ok := mimeParts(text)
	if !ok {
		parts = plainParts(text)
	}
	seen := map[string]int{}
	for i := range parts {
		p := &parts[i]
		p.name = shortName(p.name)
		if seen[p.name]++; seen[p.name] > 1 {
			p.name += "#" + strconv.Itoa(seen[p.name])
		}
	}
	return parts
}

// shortName shortens a name from user data to fit in a line.
func shortName(name string) string {
	const most = 100
	if r := []rune(content.Printable(name)); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return content.Printable(name)
}

// mimeParts splits a MIME document, and its parts if they can be split.
func mimeParts(text string) ([]part, bool) {
	head, body, found := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n")
	if !found {
		return nil, false
	}
	boundary := ""
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(head, "\n ", " "), "\n\t", " ")) {
		key, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(strings.TrimSpace(key), "Content-Type") {
			continue
		}
		kind, params, err := mime.ParseMediaType(strings.TrimSpace(value))
		if err != nil || !strings.HasPrefix(kind, "multipart/") {
			return nil, false
		}
		boundary = params["boundary"]
	}
	if boundary == "" {
		return nil, false
	}
	var out []part
	reader := multipart.NewReader(strings.NewReader(body), boundary)
	for {
		p, err := reader.NextRawPart()
		if err != nil {
			return out, len(out) > 0
		}
		content, err := io.ReadAll(io.LimitReader(p, userDataMax))
		if err != nil && len(content) == 0 {
			return out, len(out) > 0
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		name := cmp.Or(p.FileName(), kind, "part")
		for _, inner := range plainParts(string(content)) {
			if inner.name == wholeText {
				inner.name = name
			} else {
				inner.name = name + ": " + inner.name
			}
			out = append(out, inner)
		}
	}
}

// wholeText is the name of user data that is not split.
const wholeText = "text"

// plainParts splits user data by its format, so that a difference shows only the changed part. A
// text of unknown format is one part.
func plainParts(text string) []part {
	trimmed := strings.TrimSpace(text)
	first, rest, _ := strings.Cut(trimmed, "\n")
	if strings.HasPrefix(first, "## template:") {
		first, _, _ = strings.Cut(rest, "\n")
	}
	var out []part
	switch {
	case strings.HasPrefix(first, "#cloud-config"):
		out = yamlParts(trimmed)
	case strings.HasPrefix(first, "{"):
		out = ignitionParts(trimmed)
	case strings.HasPrefix(first, "[") && strings.Contains(first, "]"):
		out = tomlParts(trimmed)
	}
	if len(out) == 0 {
		return []part{{wholeText, text}}
	}
	return out
}

// yamlParts splits cloud-config by its keys, and lists by entry: a file by its path, a user by
// name, any other entry by position. YAML aliases are not expanded, so they cannot blow up.
func yamlParts(text string) []part {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	var out []part
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, root.Content[i+1]
		if value.Kind != yaml.SequenceNode {
			out = append(out, part{key, yamlText(value)})
			continue
		}
		for j, entry := range value.Content {
			out = append(out, part{key + intent.Index(j), yamlText(entry)})
			for k := 0; entry.Kind == yaml.MappingNode && k+1 < len(entry.Content); k += 2 {
				if name := entry.Content[k].Value; name == "path" || name == "name" {
					out[len(out)-1].name = key + "[" + entry.Content[k+1].Value + "]"
					break
				}
			}
		}
	}
	return out
}

func yamlText(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	b, err := yaml.Marshal(n)
	if err != nil {
		return n.Value
	}
	return string(b)
}

// ignitionParts splits an Ignition document: files, directories and links by path, units and users
// by name.
func ignitionParts(text string) []part {
	var doc map[string]map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return nil
	}
	var out []part
	for _, section := range slices.Sorted(maps.Keys(doc)) {
		for _, key := range slices.Sorted(maps.Keys(doc[section])) {
			raw := doc[section][key]
			var entries []json.RawMessage
			if json.Unmarshal(raw, &entries) != nil {
				out = append(out, part{section + "." + key, string(raw)})
				continue
			}
			for i, e := range entries {
				var named struct{ Path, Name string }
				_ = json.Unmarshal(e, &named) // an entry without a name is named by its position
				name := cmp.Or(named.Path, named.Name)
				if name == "" {
					name = strconv.Itoa(i)
				}
				out = append(out, part{section + "." + key + "[" + name + "]", string(e)})
			}
		}
	}
	return out
}

// tomlParts splits TOML by its tables.
func tomlParts(text string) []part {
	var out []part
	for line := range strings.Lines(text) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
			out = append(out, part{name: strings.Trim(name, "[]")})
		}
		if len(out) > 0 {
			out[len(out)-1].text += line
		}
	}
	return out
}

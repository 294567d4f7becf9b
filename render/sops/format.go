package sops

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// load parses an encrypted file. As in sops, the file name's extension determines the format. For other
// extensions, the content does.
func load(name string, content []byte) (document, error) {
	trimmed := bytes.TrimSpace(content)
	switch ext := path.Ext(name); {
	case ext == ".ini" || bytes.HasPrefix(trimmed, []byte("[")) && bytes.Contains(content, []byte("\n[sops]")):
		if !bytes.Contains(content, []byte("[sops]")) {
			return nil, errPlain
		}
		return nil, errors.New("INI files are not read by this version")
	case ext == ".env" || !bytes.HasPrefix(trimmed, []byte("{")) && bytes.Contains(content, []byte("\nsops_mac=")):
		return loadDotenv(content)
	case bytes.HasPrefix(trimmed, []byte("{")) && ext != ".json" && ext != ".yaml" && ext != ".yml":
		return loadBinary(content)
	}
	d, err := loadYAML(content)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// binaryDocument is a file of any kind. It is one encrypted string in a JSON file.
type binaryDocument struct {
	*yamlDocument
	content string
}

func loadBinary(content []byte) (document, error) {
	d, err := loadYAML(content)
	if err != nil {
		return nil, err
	}
	if len(d.docs) != 1 || len(d.docs[0].Content) != 2 || d.docs[0].Content[0].Value != "data" {
		return d, nil // JSON under another name
	}
	return &binaryDocument{yamlDocument: d}, nil
}

func (b *binaryDocument) walk(visit func(path []string, v *value) error) error {
	n := b.docs[0].Content[1]
	v := &value{typed: n.Value, line: n.Line}
	if err := visit([]string{"data"}, v); err != nil {
		return err
	}
	b.content = fmt.Sprint(v.typed)
	return nil
}

func (b *binaryDocument) plain(func(string) (string, bool)) ([]byte, error) {
	return []byte(b.content), nil
}

// dotenvDocument is a file with lines KEY=VALUE.
type dotenvDocument struct {
	lines []dotenvLine
	meta  *metadata
}

type dotenvLine struct {
	key     string // empty for a comment
	value   any
	comment string
	line    int
	gone    bool
	sealed  string // the encrypted value; empty if it was not encrypted
}

// prefix is the prefix of metadata keys. The path of a member is flattened into the key.
const prefix = "sops_"

// loadDotenv parses an encrypted dotenv file. The error is errPlain if the file has no metadata of SOPS.
func loadDotenv(content []byte) (document, error) {
	d := &dotenvDocument{}
	raw := map[string]any{}
	metaLine, macLine, n := 0, 0, 0
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			d.lines = append(d.lines, dotenvLine{line: n})
			continue
		}
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			d.lines = append(d.lines, dotenvLine{comment: "#" + comment, line: n})
			continue
		}
		key, text, ok := strings.Cut(line, "=")
		if !ok || !utf8.ValidString(key) {
			return nil, &lineError{n, "a line is not KEY=VALUE"}
		}
		text = strings.ReplaceAll(text, `\n`, "\n")
		if name, ok := strings.CutPrefix(key, prefix); ok {
			metaLine = cmp.Or(metaLine, n)
			if name == "mac" {
				macLine = n
			}
			if err := unflatten(raw, name, text); err != nil {
				return nil, &lineError{n, err.Error()}
			}
			d.lines = append(d.lines, dotenvLine{line: n, gone: true})
			continue
		}
		d.lines = append(d.lines, dotenvLine{key: key, value: text, line: n})
	}
	if str(raw["mac"]) == "" {
		return nil, errPlain
	}
	m, err := readMetadata(listed(raw).(map[string]any))
	if err != nil {
		return nil, &lineError{metaLine, err.Error()}
	}
	m.line, m.macLine = metaLine, macLine
	d.meta = m
	return d, nil
}

// unflatten sets a string at the path of a flattened name such as age__list_0__map_enc. Lists are mappings by
// index at first.
func unflatten(into map[string]any, name, text string) error {
	bad := errors.New("a name of the metadata cannot be read")
	name = strings.ReplaceAll(name, "__list_", "\x00#")
	path := strings.Split(strings.ReplaceAll(name, "__map_", "\x00"), "\x00")
	if len(path) > 10 {
		return bad
	}
	at := into
	for i, elem := range path {
		if i == len(path)-1 {
			at[elem] = text
			break
		}
		next, ok := at[elem].(map[string]any)
		if at[elem] != nil && !ok {
			return bad
		}
		if next == nil {
			next = map[string]any{}
			at[elem] = next
		}
		at = next
	}
	return nil
}

// listed converts mappings with indexes as keys to lists.
func listed(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	type item struct {
		index int
		value any
	}
	var items []item
	for k, e := range m {
		m[k] = listed(e)
		if digits, found := strings.CutPrefix(k, "#"); found {
			if n, err := strconv.Atoi(digits); err == nil {
				items = append(items, item{n, m[k]})
			}
		}
	}
	if len(items) == 0 || len(items) != len(m) {
		return m
	}
	sortBy(items, func(i item) int { return i.index })
	list := make([]any, len(items))
	for i := range items {
		list[i] = items[i].value
	}
	return list
}

func sortBy[T any](list []T, by func(T) int) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(by(a), by(b)) })
}

func (d *dotenvDocument) metadata() *metadata { return d.meta }

// walk visits the values in the order of the lines. For a value that visit changes, it keeps the
// ciphertext.
func (d *dotenvDocument) walk(visit func(path []string, v *value) error) error {
	for i := range d.lines {
		l := &d.lines[i]
		if l.key == "" {
			continue
		}
		v := &value{typed: l.value, line: l.line}
		if err := visit([]string{l.key}, v); err != nil {
			return err
		}
		if was, ok := l.value.(string); ok && v.typed != l.value && l.sealed == "" {
			l.sealed = was
		}
		l.value = v.typed
	}
	return nil
}

// plain returns the file with the current values. comment decrypts an encrypted comment; if it fails, the
// line becomes empty.
func (d *dotenvDocument) plain(comment func(string) (string, bool)) ([]byte, error) {
	var out bytes.Buffer
	for _, l := range d.lines {
		switch {
		case l.key != "":
			text, err := textOf(l.value)
			if err != nil {
				return nil, &lineError{l.line, err.Error()}
			}
			out.WriteString(l.key + "=" + strings.ReplaceAll(text, "\n", `\n`))
		case strings.HasPrefix(l.comment, "#"+marker):
			if text, ok := comment(l.comment[1:]); ok {
				out.WriteString("#" + text)
			}
		default:
			out.WriteString(l.comment)
		}
		out.WriteByte('\n')
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}

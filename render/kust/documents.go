package kust

import (
	"bytes"
	"regexp"
)

// separator matches what separates documents, as in kustomize: not the second of two consecutive
// lines.
var separator = regexp.MustCompile(`\n---.*\n`)

// otherBreaks are line breaks of YAML that are none to kustomize as it cuts documents out.
var otherBreaks = regexp.MustCompile(`\r[^\n]|\r$|[\x{85}\x{2028}\x{2029}]`)

// documents returns the non-empty documents of a file, as kustomize splits them; nil if lines alone
// do not show that.
func documents(content []byte) [][]byte {
	if otherBreaks.Match(content) {
		return nil
	}
	var out [][]byte
	add := func(text []byte) (known bool) {
		holds := false
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(line, []byte("...")) || bytes.HasPrefix(line, []byte("%")) {
				return false
			}
			line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("---")))
			holds = holds || len(line) > 0 && line[0] != '#'
		}
		if holds {
			out = append(out, text)
		}
		return true
	}
	from := 0
	for _, at := range separator.FindAllIndex(content, -1) {
		if rest := bytes.TrimSpace(content[at[0]+4 : at[1]]); len(rest) > 0 && rest[0] != '#' || !add(content[from:at[0]+1]) {
			return nil // kustomize refuses anything but a comment there
		}
		from = at[1]
	}
	if !add(content[from:]) {
		return nil
	}
	return out
}

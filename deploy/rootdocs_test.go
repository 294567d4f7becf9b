package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRootDocumentsStayShort bounds the documents that people read whole.
func TestRootDocumentsStayShort(t *testing.T) {
	pages := documents(t)
	for name, most := range map[string]int{"ARCHITECTURE.md": 2500, "DECISIONS.md": 5000, "SECURITY.md": 1500} {
		if n := len(strings.Fields(pages[name])); n > most {
			t.Errorf("%s has %d words, and may have %d: cut it, or move a part to deploy/docs", name, n, most)
		}
	}
	for title, most := range map[string]int{"Packages": 40, "Where do I change …?": 25} {
		if n := len(rows(section(pages["ARCHITECTURE.md"], title))); n == 0 || n > most {
			t.Errorf("ARCHITECTURE.md: the table of %q has %d rows, and may have %d", title, n, most)
		}
	}
}

var decision = regexp.MustCompile(`(?m)^### (\d+)\. .+$`)

// TestDecisionsAreShort wants at most ten lines of 80 characters for a decision, and one decision
// for a number.
func TestDecisionsAreShort(t *testing.T) {
	const lines, width = 10, 80
	text := documents(t)["DECISIONS.md"]
	seen := map[string]bool{}
	all := decision.FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		t.Fatal("DECISIONS.md has no decisions")
	}
	for _, at := range all {
		number := text[at[2]:at[3]]
		if seen[number] {
			t.Errorf("DECISIONS.md: two decisions have the number %s", number)
		}
		seen[number] = true
		body, _, _ := strings.Cut(text[at[1]:], "\n#")
		n := 0
		for line := range strings.Lines(strings.TrimSpace(body)) {
			n += (len(line) + width - 1) / width
		}
		if n > lines {
			t.Errorf("DECISIONS.md: decision %s has %d lines, and may have %d", number, n, lines)
		}
	}
}

var repositoryPath = regexp.MustCompile("`((?:cmd|deploy|reconciler|render|source|status|example-repo)(?:/[\\w.-]+)*)`")

// TestRootDocumentsNamePaths wants every path in the root documents to exist.
func TestRootDocumentsNamePaths(t *testing.T) {
	pages := documents(t)
	for _, name := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "DECISIONS.md", "SECURITY.md"} {
		for _, m := range repositoryPath.FindAllStringSubmatch(pages[name], -1) {
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %s does not exist", name, m[1])
			}
		}
	}
}

// section returns the part of a page below a heading of the second level.
func section(text, title string) string {
	_, rest, _ := strings.Cut(text, "\n## "+title+"\n")
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// rows returns the rows of the tables in a text, without their headings.
func rows(text string) (out []string) {
	var before string
	inTable := false
	for line := range strings.Lines(text) {
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasPrefix(line, "| ---"):
			inTable = strings.HasPrefix(before, "|")
		case inTable:
			out = append(out, line)
		}
		before = line
	}
	return out
}

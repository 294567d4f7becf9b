package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	assumed    = regexp.MustCompile(`(?m)^\s*// Assumed of AWS: ([a-z0-9-]+)\.$`)
	loose      = regexp.MustCompile(`(?i)assumed of AWS`)
	assumption = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (.+) \\| (.+) \\| (.+) \\|$")
)

// TestAssumptions holds what the code takes for granted of AWS and the page that
// tells of it together: a row for each, and none for what no code relies on.
func TestAssumptions(t *testing.T) {
	page, err := os.ReadFile("docs/reference/assumptions.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, row := range assumption.FindAllStringSubmatch(string(page), -1) {
		if told[row[1]] {
			t.Errorf("%s has two rows", row[1])
		}
		told[row[1]] = true
	}
	if rows := strings.Count(string(page), "\n| `"); rows != len(told) {
		t.Errorf("%d of %d rows say name, assumption, source and what follows", len(told), rows)
	}
	relied := map[string]bool{}
	err = filepath.WalkDir("..", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		code, err := os.ReadFile(name)
		marks := assumed.FindAllSubmatch(code, -1)
		if n := len(loose.FindAll(code, -1)); n != len(marks) {
			t.Errorf("%s: %d of %d marks have the form // Assumed of AWS: name.", name, len(marks), n)
		}
		for _, m := range marks {
			relied[string(m[1])] = true
			if !told[string(m[1])] {
				t.Errorf("%s: docs/reference/assumptions.md does not tell of %s", name, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range told {
		if !relied[name] {
			t.Errorf("docs/reference/assumptions.md tells of %s, on which no code relies", name)
		}
	}
	if len(relied) < 20 {
		t.Errorf("only %d marks were found", len(relied))
	}
}

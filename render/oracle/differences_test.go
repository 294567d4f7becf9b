package oracle

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

//go:embed differences.yaml
var differencesFile []byte

// finding is one difference between weir and the others.
type finding struct {
	// Check is the test that found it, Subject the kind and version.
	Check, Subject string
	// Path is the field, with [] for a position and {} for a key of a mapping.
	Path string
	// What says how the two differ.
	What string
}

func (f finding) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", f.Check, f.Subject, f.Path, f.What)
}

// difference is an accepted finding. In each text, a star stands for anything.
type difference struct {
	Check   string   `yaml:"check"`
	Subject string   `yaml:"subject"`
	Paths   []string `yaml:"paths"`
	What    string   `yaml:"what"`
	Reason  string   `yaml:"reason"`
}

// matches returns which of the difference's paths a finding is about, -1 for none.
func (d difference) matches(f finding) int {
	if d.Check != f.Check || !glob(d.Subject, f.Subject) || !glob(d.What, f.What) {
		return -1
	}
	return slices.IndexFunc(d.Paths, func(p string) bool { return glob(p, f.Path) })
}

func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`).MatchString(text)
}

// findings collects differences without repetition.
type findings map[finding]string

// add records a difference; example helps to see it.
func (fs findings) add(f finding, example string) {
	if _, ok := fs[f]; !ok {
		fs[f] = example
	}
}

// judge fails for what is not listed and for what is listed in vain.
func (fs findings) judge(t *testing.T, check string) {
	t.Helper()
	var all []difference
	d := yaml.NewDecoder(bytes.NewReader(differencesFile))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		t.Fatalf("differences.yaml: %v", err)
	}
	used := map[string]bool{}
	sorted := slices.SortedFunc(maps.Keys(fs), func(a, b finding) int { return strings.Compare(a.String(), b.String()) })
	for _, f := range sorted {
		listed := false
		for i, d := range all {
			if j := d.matches(f); j >= 0 {
				used[fmt.Sprint(i, " ", j)] = true
				listed = true
				break
			}
		}
		if !listed {
			t.Errorf("not in differences.yaml: %s\n\t%s", f, fs[f])
		}
	}
	for i, d := range all {
		if d.Reason == "" || len(d.Paths) == 0 {
			t.Errorf("differences.yaml: entry %d needs paths and a reason", i+1)
		}
		for j, p := range d.Paths {
			if d.Check == check && !used[fmt.Sprint(i, " ", j)] {
				t.Errorf("differences.yaml: entry %d, %s: %s: %q no longer shows", i+1, d.Subject, p, d.What)
			}
		}
	}
}

package sops

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shifted is another text of the same length.
func shifted(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '1' && r < '9', r >= 'a' && r < 'z', r >= 'A' && r < 'Z':
			return r + 1
		case r == '9', r == '0':
			return '1'
		case r == 'z', r == 'Z':
			return r - 1
		}
		return r
	}, text)
}

// TestDecoys holds the decoy of each vector to its plain text: what was encrypted is
// another one, of the same type, and all the rest is the same.
func TestDecoys(t *testing.T) {
	files, err := filepath.Glob("testdata/*.plain")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	d := New(Options{Identities: identities(t)})
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".plain")
		if name == "values.ini" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f, _ := d.Open(t.Context(), "dir/"+name, []byte(read(t, name)))
			text, err := f.Decoy(shifted)
			if err != nil || len(text) == 0 {
				t.Fatalf("%v, %q", err, text)
			}
			for _, s := range f.Secrets {
				if strings.Contains(s, "vector") && strings.Contains(string(text), s) {
					t.Errorf("%q is in the decoy", s)
				}
			}
			if strings.Contains(string(text), "ENC[") {
				t.Errorf("left something of sops:\n%s", text)
			}
			switch filepath.Ext(name) {
			case ".yaml", ".json":
				changed := 0
				was, is := documents(t, f.Content), documents(t, text)
				if len(was) != len(is) {
					t.Fatalf("%d documents of %d", len(is), len(was))
				}
				for i := range was {
					changed += differing(t, "", was[i], is[i])
				}
				if changed == 0 {
					t.Error("nothing is another one")
				}
			default:
				if strings.Count(string(text), "\n") != strings.Count(string(f.Content), "\n") {
					t.Errorf("%q of %q", text, f.Content)
				}
			}
			if again, err := f.Decoy(shifted); err != nil || cmp.Diff(text, again) != "" {
				t.Errorf("a second one differs: %v", err)
			}
		})
	}
	plain, ok := d.Open(t.Context(), "a.yaml", []byte("a: b\n"))
	if text, err := plain.Decoy(shifted); ok || text != nil || err != nil {
		t.Errorf("a plain file has the decoy %q, %v", text, err)
	}
}

// differing counts the leaves that differ, and holds all others to be the same.
func differing(t *testing.T, at string, was, is any) int {
	t.Helper()
	n := 0
	switch was := was.(type) {
	case map[string]any:
		got, ok := is.(map[string]any)
		if !ok || len(got) != len(was) {
			t.Fatalf("%s: %v became %v", at, was, is)
		}
		for k := range was {
			n += differing(t, at+"."+k, was[k], got[k])
		}
	case []any:
		got, ok := is.([]any)
		if !ok || len(got) != len(was) {
			t.Fatalf("%s: %v became %v", at, was, is)
		}
		for i := range was {
			n += differing(t, at, was[i], got[i])
		}
	default:
		if was == is {
			return 0
		}
		if text, ok := was.(string); ok && (strings.HasPrefix(text, "visible") || strings.Contains(at, "metadata") || strings.HasSuffix(at, ".kind")) {
			t.Errorf("%s became %v", at, is)
		}
		n++
	}
	return n
}

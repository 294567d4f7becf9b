package sops

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/standin"
)

// standIn is one for each value.
func standIn(s Sealed) string { return "stand-in-" + strconv.Itoa(len(s.Ciphertext)) }

// TestStandIns holds each vector with stand-ins to its plain text: what was encrypted is
// a stand-in, and all the rest is the same.
func TestStandIns(t *testing.T) {
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
			text, err := f.StandIns(standIn)
			if err != nil || len(text) == 0 {
				t.Fatalf("%v, %q", err, text)
			}
			for _, s := range f.Secrets {
				if strings.Contains(s, "vector") && strings.Contains(string(text), s) {
					t.Errorf("%q is in the text with stand-ins", s)
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
				if strings.HasPrefix(name, "binary") && strings.Trim(string(text), "0123456789") != "stand-in-" || strings.HasSuffix(name, ".env") && strings.Count(string(text), "\n") != strings.Count(string(f.Content), "\n") {
					t.Errorf("%q of %q", text, f.Content)
				}
			}
			var texts standin.Set
			sealed, err := f.StandIns(func(s Sealed) string {
				return texts.Add(standin.Text{ID: s.Ciphertext, Value: s.Value, Literal: s.Literal})
			})
			if back, _ := texts.Put(string(sealed)); err != nil || back != string(f.Content) {
				t.Errorf("with the texts put in (-want +got): %s", cmp.Diff(string(f.Content), back))
			}
			if again, err := f.StandIns(standIn); err != nil || cmp.Diff(text, again) != "" {
				t.Errorf("a second one differs: %v", err)
			}
		})
	}
	plain, ok := d.Open(t.Context(), "a.yaml", []byte("a: b\n"))
	if text, err := plain.StandIns(standIn); ok || text != nil || err != nil {
		t.Errorf("a plain file has stand-ins: %q, %v", text, err)
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

package sops

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
)

// The vectors in testdata were made by the SOPS library: see testdata/make.

func identities(t *testing.T) []age.Identity {
	t.Helper()
	ids, err := ParseIdentities(read(t, "throwaway-age-keys.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents decodes all documents of a YAML text.
func documents(t *testing.T, text []byte) []any {
	t.Helper()
	var out []any
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		out = append(out, v)
	}
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/*.plain")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	d := New(Options{Identities: identities(t)})
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".plain")
		t.Run(name, func(t *testing.T) {
			in, want := read(t, name), read(t, name+".plain")
			f, ok := d.Open(t.Context(), "dir/"+name, []byte(in))
			if !ok || !Encrypted(name, []byte(in)) {
				t.Fatal("not seen as encrypted")
			}
			if name == "values.ini" {
				if len(f.Faults) != 1 || f.Faults[0].Code != "sops-invalid" || len(f.Content) > 0 {
					t.Fatalf("%v, %q", f.Faults, f.Content)
				}
				return
			}
			if len(f.Faults) > 0 || f.Placeholders || f.Retry {
				t.Fatalf("%+v", f)
			}
			switch filepath.Ext(name) {
			case ".yaml", ".json":
				if diff := cmp.Diff(documents(t, []byte(want)), documents(t, f.Content)); diff != "" {
					t.Errorf("content (-want +got):\n%s\n%s", diff, f.Content)
				}
			default:
				if string(f.Content) != want {
					t.Errorf("got %q, want %q", f.Content, want)
				}
			}
			if bytes.Contains(f.Content, []byte("ENC[")) || bytes.Contains(f.Content, []byte("lastmodified")) {
				t.Errorf("left something of sops:\n%s", f.Content)
			}
			for _, s := range f.Secrets {
				if strings.HasPrefix(s, "visible") || s == "Secret" || s == "bootstrap" {
					t.Errorf("%q is taken for a secret", s)
				}
			}
			if !slices.ContainsFunc(f.Secrets, func(s string) bool { return strings.Contains(s, "vector") }) {
				t.Errorf("secrets are %q", f.Secrets)
			}
		})
	}
}

// TestLinesStay holds a value to the line of the encrypted file.
func TestLinesStay(t *testing.T) {
	d := New(Options{Identities: identities(t)})
	for _, name := range []string{"whole.yaml", "regex.yaml"} {
		in := read(t, name)
		f, _ := d.Open(t.Context(), name, []byte(in))
		lineOf := func(text, word string) int {
			for i, l := range strings.Split(text, "\n") {
				if strings.HasPrefix(strings.TrimSpace(l), word) {
					return i
				}
			}
			return -1
		}
		for _, word := range []string{"stringData:", "password:", "list:", "- nested:"} {
			if a, b := lineOf(in, word), lineOf(string(f.Content), word); a < 0 || a != b {
				t.Errorf("%s: %q was on line %d and is on line %d", name, word, a, b)
			}
		}
		if !strings.Contains(string(f.Content), "# A comment") {
			t.Errorf("%s lost its comment:\n%s", name, f.Content)
		}
	}
}

func TestSecretsOfObjects(t *testing.T) {
	f, _ := New(Options{Identities: identities(t)}).Open(t.Context(), "whole.yaml", []byte(read(t, "whole.yaml")))
	for _, want := range []string{"vector-password", "dmVjdG9yLXBhc3N3b3Jk", "vector-second"} {
		if !slices.Contains(f.Secrets, want) {
			t.Errorf("%q is no secret among %q", want, f.Secrets)
		}
	}
}

func TestNoKey(t *testing.T) {
	ids := identities(t)
	for _, tc := range []struct {
		name, file string
		o          Options
		code       string
		in         []string
		content    string
	}{
		{"none", "regex.yaml", Options{}, "sops-no-key", []string{"age1", "keys that are not given"}, "password: \"" + placeholder},
		{"another", "regex.yaml", Options{Identities: ids[1:]}, "sops-no-key", []string{"age1"}, placeholder},
		{"placeholders", "regex.yaml", Options{Placeholders: true}, "sops-encrypted", []string{"age1"}, placeholder},
		{"too few groups", "groups.yaml", Options{Identities: ids[:1]}, "sops-no-key", []string{"needs keys of 2 of its 3", "of 1 are given"}, placeholder},
		{"dotenv", "values.env", Options{}, "sops-no-key", []string{"age1"}, "PASSWORD=" + placeholder},
		{"binary", "binary.key", Options{}, "sops-no-key", []string{"age1"}, placeholder},
		{"json", "object.json", Options{}, "sops-no-key", []string{"age1"}, placeholder},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, ok := New(tc.o).Open(t.Context(), tc.file, []byte(read(t, tc.file)))
			if !ok || !f.Placeholders || len(f.Faults) != 1 || len(f.Secrets) > 0 {
				t.Fatalf("%+v", f)
			}
			d := f.Faults[0]
			if d.Code != tc.code || d.File != tc.file || d.Line == 0 {
				t.Errorf("%s at %s", d.Code, d.Position)
			}
			if want := diag.Error; (d.Severity == want) == tc.o.Placeholders {
				t.Errorf("severity %s", d.Severity)
			}
			for _, want := range tc.in {
				if !strings.Contains(d.Summary, want) {
					t.Errorf("%q does not say %q", d.Summary, want)
				}
			}
			if !strings.Contains(string(f.Content), tc.content) || strings.Contains(string(f.Content), marker) {
				t.Errorf("content is\n%s", f.Content)
			}
		})
	}
	if f, ok := (*Decrypter)(nil).Open(t.Context(), "regex.yaml", []byte(read(t, "regex.yaml"))); !ok || f.Faults[0].Code != "sops-no-key" {
		t.Error("nil opens something")
	}
}

func TestTwoOfThreeGroups(t *testing.T) {
	ids := identities(t)
	for _, pair := range [][]age.Identity{{ids[0], ids[1]}, {ids[0], ids[2]}, {ids[2], ids[1]}} {
		f, _ := New(Options{Identities: pair}).Open(t.Context(), "groups.yaml", []byte(read(t, "groups.yaml")))
		if !strings.Contains(string(f.Content), "vector-hidden") {
			t.Errorf("%+v", f.Faults)
		}
	}
}

func testdata(name string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", name)) }

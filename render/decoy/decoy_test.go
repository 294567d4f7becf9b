package decoy

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestShapes(t *testing.T) {
	var m Maker
	for text, same := range map[string]func(string) bool{
		"":      func(s string) bool { return s == "" },
		" \n\t": func(s string) bool { return s == " \n\t" },
		"true":  func(s string) bool { return s == "false" },
		"False": func(s string) bool { return s == "True" },
		"7":     func(s string) bool { return s != "7" && isDigit(s[0]) },
		"-0.50e3": func(s string) bool {
			return number.MatchString(s) && s[0] == '-' && s[2] == '.' && s[5] == 'e'
		},
		"Password7!": func(s string) bool { return isUpper(s[0]) && isLower(s[1]) && isDigit(s[8]) && len(s) == 10 },
		"äö€😀":       func(s string) bool { return utf8.ValidString(s) && utf8.RuneCountInString(s) == 4 && len(s) == 11 },
		"\xff\xfe\x00a": func(s string) bool {
			return !utf8.ValidString(s) && len(s) == 4 && isLower(s[3])
		},
		"a_b=one\n# note\nKEY_2=\"tw o\"\n\nBARE\n": func(s string) bool {
			lines := strings.Split(s, "\n")
			return len(lines) == 6 && strings.Index(lines[0], "=") == 3 && lines[1][0] == '#' && strings.HasPrefix(lines[2][5:], `="`) && lines[3] == "" && bareName.MatchString(lines[4])
		},
		base64.StdEncoding.EncodeToString([]byte(`{"a":"hunter2"}`)): func(s string) bool {
			plain, err := base64.StdEncoding.DecodeString(s)
			return err == nil && json.Valid(plain)
		},
	} {
		got := m.Text(text)
		if !same(got) {
			t.Errorf("%q became %q", text, got)
		}
		if again := m.Text(text); again != got {
			t.Errorf("%q became %q and then %q", text, got, again)
		}
	}
}

func TestStructure(t *testing.T) {
	m := Maker{Named: map[string]bool{"auths": true, "registry.example.com": true, "users": true}}
	for _, text := range []string{
		`{"auths": {"registry.example.com":{"auth":"dXNlcjpwYXNz", "n": 12, "ok": true, "no": null, "list": [ "a", {"b":"c"} ]}}}`,
		"users:\n- name: web # of the web\n  password: |\n    line one\n    line two\n  keys: [a, 12, false, ~]\n  same: &x hunter2\n  other: *x\n",
		"--- {users: [a, b]}\n---\n{users: {c: d}}",
	} {
		got := m.Text(text)
		var was, is yaml.Node
		if err := yaml.Unmarshal([]byte(text), &was); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(got), &is); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if text[0] == '{' && !json.Valid([]byte(got)) {
			t.Errorf("no JSON: %s", got)
		}
		leaves := 0
		var compare func(a, b *yaml.Node)
		compare = func(a, b *yaml.Node) {
			if a.Kind != b.Kind || len(a.Content) != len(b.Content) || a.ShortTag() != b.ShortTag() {
				t.Fatalf("%s\nbecame\n%s", text, got)
			}
			for i := range a.Content {
				if a.Kind == yaml.MappingNode && i%2 == 0 {
					if (a.Content[i].Value == b.Content[i].Value) != m.Named[a.Content[i].Value] {
						t.Errorf("the name %q became %q", a.Content[i].Value, b.Content[i].Value)
					}
					continue
				}
				compare(a.Content[i], b.Content[i])
			}
			if a.Kind == yaml.ScalarNode && a.ShortTag() != "!!null" {
				if leaves++; a.Value == b.Value {
					t.Errorf("the leaf %q stays", a.Value)
				}
			}
		}
		compare(&was, &is)
		if leaves == 0 || strings.Contains(got, "of the web") {
			t.Errorf("%d leaves in %s", leaves, got)
		}
	}
}

// Of members whose names would come to the same, each keeps a name of its own.
func TestNamesStayApart(t *testing.T) {
	var m Maker
	members := map[string]int{}
	for _, c := range lower {
		members[string(c)] = 1
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]int
	if err := json.Unmarshal([]byte(m.Text(string(text))), &got); err != nil || len(got) != len(members) {
		t.Errorf("%d of %d members: %v", len(got), len(members), err)
	}
}

// No piece of a text is a piece at the same place of its decoy, whatever it is taken
// apart at, nor is one of its base64.
func TestEveryCharacterDiffers(t *testing.T) {
	var m Maker
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom(nil, unicode.Letter, unicode.Digit, unicode.Punct, unicode.Symbol), 1, 60, -1).Draw(t, "text")
		got := m.opaque(text)
		if len(got) != len(text) {
			t.Fatalf("%q became %q", text, got)
		}
		was, is := []rune(text), []rune(got)
		for i := range was {
			if was[i] == is[i] {
				t.Errorf("%q became %q", text, got)
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z]{1,40}`).Draw(t, "text")
		for before := range 3 {
			pad := strings.Repeat("x", before)
			a, b := base64.RawStdEncoding.EncodeToString([]byte(pad+text)), base64.RawStdEncoding.EncodeToString([]byte(pad+m.opaque(text)))
			for i := []int{0, 2, 3}[before]; i < len(a); i++ {
				if a[i] == b[i] {
					t.Errorf("%q: %s and %s", text, a, b)
				}
			}
		}
	})
}

// Delimiters stay, so that a text can be taken apart as before, and every piece is
// another one.
func TestDelimiters(t *testing.T) {
	one := Maker{Delimiters: []string{":"}}
	for text, want := range map[string]int{"user:pass": 2, "a::b": 3, ":": 1, "::": 1, "-:-": 2} {
		if got := one.Text(text); len(strings.Split(got, ":")) != want || got == text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := (&Maker{Delimiters: []string{", ", " - "}}).Text("one, two - three"); len(strings.FieldsFunc(got, unicode.IsSpace)) != 4 || got[3] != ',' || got[9] != '-' {
		t.Errorf("became %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := Maker{Delimiters: rapid.SliceOfN(rapid.StringMatching(`[:, ae-]{1,2}`), 1, 3).Draw(t, "delimiters")}
		text := rapid.StringMatching(`[:, a-f-]{1,30}`).Draw(t, "text")
		got := m.opaque(text)
		// Every piece, and every piece of a piece.
		var compare func(a, b string, depth int)
		compare = func(a, b string, depth int) {
			if strings.TrimSpace(a) != "" && a == b {
				t.Fatalf("%q became %q: the piece %q stays", text, got, a)
			}
			for _, d := range m.Delimiters {
				as, bs := strings.Split(a, d), strings.Split(b, d)
				if depth == 0 || len(as) != len(bs) {
					continue // what does not split alike fails or differs as a whole
				}
				for i := range as {
					if len(as) > 1 {
						compare(as[i], bs[i], depth-1)
					}
				}
			}
		}
		compare(text, got, 2)
	})
}

func TestAnyTextHasADecoy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Maker{Delimiters: []string{"=", "\n"}}
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-c]: ?[x-z]*\n?|- [0-9]|\{"a": ?[1"]|[#&*!'"\\]){0,8}`)).Draw(t, "text")
		got := m.Text(text)
		if !utf8.ValidString(got) {
			t.Errorf("%q became %q", text, got)
		}
		if strings.ContainsFunc(text, unicode.IsLetter) && !strings.ContainsAny(strings.ToLower(text), "\x00nul~") && got == text {
			t.Errorf("%q stays", text)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "a: [b]", `{"a":"b"}`, "aGVsbG8gd29ybGQ=", "A=b\n", "\xff", "&a [*a]", "? a\n: b"} {
		f.Add(seed, ":")
	}
	f.Fuzz(func(t *testing.T, text, delimiter string) {
		m := Maker{Delimiters: slices.DeleteFunc([]string{delimiter}, func(s string) bool { return s == "" })}
		if got := m.Text(text); !reflect.DeepEqual(m.Text(text), got) {
			t.Errorf("%q has two decoys", text)
		}
	})
}

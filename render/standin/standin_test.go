package standin

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var shape = regexp.MustCompile(`^[a-z][a-z2-7]{47}$`)

// TestShape holds stand-ins to one shape, which no secret decides.
func TestShape(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"", "a", "b", strings.Repeat("x", 10_000)} {
		s := StandIn(id)
		if !shape.MatchString(s) || s != StandIn(id) || seen[s] || !Holds("x"+s) {
			t.Errorf("%q has the stand-in %q", id, s)
		}
		seen[s] = true
	}
	if Holds("hunter2") {
		t.Error("a text without a stand-in holds one")
	}
}

// TestPut puts texts in whole, beside others, and in base64.
func TestPut(t *testing.T) {
	var s Set
	a := s.Add(Text{ID: "a", Value: "hunter2\n"})
	b := s.Add(Text{ID: "b", Value: "7", Tag: "!!int", Literal: "7"})
	encode := base64.StdEncoding.EncodeToString
	for text, want := range map[string]struct {
		text  string
		found Found
	}{
		"plain":                       {"plain", None},
		a:                             {"hunter2\n", Whole},
		"x" + a + b + "y":             {"xhunter2\n7y", Part},
		"b: \"" + b + "\"":            {"b: 7", Part},
		encode([]byte(a)):             {encode([]byte("hunter2\n")), Whole},
		encode([]byte("p" + a + "q")): {encode([]byte("phunter2\nq")), Part},
		a[:20]:                        {a[:20], Cut},
		a[20:]:                        {a[20:], Cut},
		a + b[30:]:                    {a + b[30:], Cut},
		b[:30] + a:                    {b[:30] + a, Cut},
		encode([]byte(a))[5:40]:       {encode([]byte(a))[5:40], Cut},
		encode([]byte("x" + a))[9:33]: {encode([]byte("x" + a))[9:33], Cut},
	} {
		got, found := s.Put(text)
		if got != want.text || found != want.found {
			t.Errorf("%q became %q (%d), want %q (%d)", text, got, found, want.text, want.found)
		}
		if s.Touches(text) != (want.found != None) {
			t.Errorf("%q touches: %v", text, s.Touches(text))
		}
	}
	if got := s.Mask("the file " + a + ".yaml and " + b[:30]); got != "the file (redacted).yaml and (redacted)" {
		t.Errorf("masked: %q", got)
	}
	if x, y := s.Marked("x"+a), s.Marked("x"+b); x == y || strings.Contains(x, "hunter2") || strings.Contains(x, a) {
		t.Errorf("marks %q and %q", x, y)
	}
	if (*Set)(nil).Touches(a) || (*Set)(nil).Mask(a) != a {
		t.Error("the empty set knows a stand-in")
	}
}

// TestNoPieceStays cuts texts with stand-ins anywhere: what Put gives holds no piece of one.
func TestNoPieceStays(t *testing.T) {
	var s Set
	pieces := []string{s.Add(Text{ID: "a", Value: "one"}), s.Add(Text{ID: "b", Value: "two"}), "-", "other text"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 5).Draw(t, "pieces"), "")
		if rapid.Bool().Draw(t, "base64") {
			text = Base64(text)
		}
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		text = text[from:rapid.IntRange(from, len(text)).Draw(t, "to")]
		got, found := s.Put(text)
		switch {
		case found == Cut && got != text:
			t.Errorf("%q became %q", text, got)
		case found != Cut && (s.Touches(got) || !utf8.ValidString(got)):
			t.Errorf("%q became %q", text, got)
		}
	})
}

// TestBase64 writes lines as kustomize does.
func TestBase64(t *testing.T) {
	long := Base64(strings.Repeat("a", 60))
	if lines := strings.Split(long, "\n"); len(lines) != 3 || len(lines[0]) != 70 || lines[2] != "" {
		t.Errorf("%q", long)
	}
	if Base64("abc") != "YWJj" {
		t.Error(Base64("abc"))
	}
}

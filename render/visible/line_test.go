package visible

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"short", 140, "short"},
		{strings.Repeat("ä", 141), 140, strings.Repeat("ä", 139) + "…"},
		{strings.Repeat("😀", 70), 140, strings.Repeat("😀", 70)},
		{strings.Repeat("😀", 71), 140, strings.Repeat("😀", 69) + "…"},
		{"one two three", 9, "one two…"},
	} {
		if got := Clip(c.in, c.limit); got != c.want || !utf8.ValidString(got) || Units(got) > c.limit {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
	if got := Line("a\n\tb\x00\u202e c\xff"); got != "a b<U+0000><U+202E> c\uFFFD" {
		t.Errorf("Line gives %q", got)
	}
}

func FuzzClip(f *testing.F) {
	f.Add("web😀 is rolling\n", 5)
	f.Add("\xff\xfe", 1)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = limit&0xff + 1
		got := Clip(Line(s), limit)
		if !utf8.ValidString(got) || Units(got) > limit {
			t.Errorf("Clip(%q, %d) = %q, %d units", s, limit, got, Units(got))
		}
	})
}

package visible

import (
	"strings"
	"unicode/utf16"
)

// Line makes a foreign text fit for a single line: valid UTF-8, visible characters, and single blanks.
func Line(s string) string {
	return Text(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "))
}

// Clip shortens s to at most limit UTF-16 units, at the end of a character, and adds an ellipsis. No forge
// counts more than UTF-16 units for a character.
func Clip(s string, limit int) string {
	if Units(s) <= limit {
		return s
	}
	left := limit - 1 // the ellipsis
	end := 0
	for i, r := range s {
		n := max(1, utf16.RuneLen(r))
		if n > left {
			break
		}
		left -= n
		end = i + len(string(r))
	}
	return strings.TrimRight(s[:end], " ") + "…"
}

// Units returns the length of a text in UTF-16 units.
func Units(s string) (n int) {
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

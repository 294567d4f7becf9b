// Package visible holds the one rule for characters that a reader does not see, and
// that make a text read like another one: marks that turn the direction of writing,
// characters without width, control characters. Each place where texts of others are
// shown writes them in a way of its own.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Hidden reports whether a character is invisible to a reader. It returns false for blanks, and
// true for line ends and tabs.
func Hidden(r rune) bool {
	switch {
	case ' ' <= r && r <= '~':
		return false // most are
	case unicode.IsSpace(r) && !unicode.IsControl(r):
		return false
	case r == '\uFE0E' || r == '\uFE0F':
		return false // whether a sign is drawn in colours
	}
	return !unicode.IsPrint(r) || r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Text shows hidden characters by their number, as in <U+202E>. Lines stay lines.
func Text(s string) string {
	return replace(s, func(r rune) string { return fmt.Sprintf("<U+%04X>", r) })
}

// HTML is Text for a page.
func HTML(page string) string {
	return replace(page, func(r rune) string { return fmt.Sprintf("&lt;U+%04X&gt;", r) })
}

// JSON writes hidden characters as JSON can: the value is the same.
func JSON(text string) string {
	return replace(text, func(r rune) string {
		if r > 0xFFFF {
			high, low := utf16.EncodeRune(r)
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// YAML does so for YAML in which every text with such characters is in double quotes.
func YAML(text string) string {
	return replace(text, func(r rune) string {
		if r > 0xFFFF {
			return fmt.Sprintf(`\U%08X`, r)
		}
		return fmt.Sprintf(`\u%04X`, r)
	})
}

func replace(s string, as func(rune) string) string {
	hidden := func(r rune) bool { return r != '\n' && r != '\r' && r != '\t' && Hidden(r) }
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(as(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

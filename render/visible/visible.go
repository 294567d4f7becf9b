// Package visible has the rule for invisible characters, which make a text look like another one: marks that
// change the writing direction, characters without width, and control characters. It has a form for each kind
// of output that shows foreign texts.
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
		return false // most characters
	case unicode.IsSpace(r) && !unicode.IsControl(r):
		return false
	case r == '\uFE0E' || r == '\uFE0F':
		return false // they only select the colour of a symbol
	}
	return !unicode.IsPrint(r) || r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Text replaces hidden characters with their numbers, as in <U+202E>. It keeps lines.
func Text(s string) string {
	return replace(s, func(r rune) string { return fmt.Sprintf("<U+%04X>", r) })
}

// HTML is like Text, for a page.
func HTML(page string) string {
	return replace(page, func(r rune) string { return fmt.Sprintf("&lt;U+%04X&gt;", r) })
}

// JSON escapes hidden characters, so that the value stays the same.
func JSON(text string) string {
	return replace(text, func(r rune) string {
		if r > 0xFFFF {
			high, low := utf16.EncodeRune(r)
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// YAML escapes hidden characters, for YAML in which all texts with such characters are in double quotes.
func YAML(text string) string {
	return replace(text, func(r rune) string {
		if r > 0xFFFF {
			return fmt.Sprintf(`\U%08X`, r)
		}
		return fmt.Sprintf(`\u%04X`, r)
	})
}

// replace replaces each hidden character with the result of as. Line breaks and tabs stay.
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

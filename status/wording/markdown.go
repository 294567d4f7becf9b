package wording

import (
	"html"
	"strings"
	"unicode"
)

// blank is a zero-width space. It breaks up text that forges would turn into links and mentions. Forges do
// so after they have parsed Markdown, so a backslash does not prevent it.
const blank = "\u200b"

// Escape makes text from outside harmless in Markdown, also in a table cell. The text stays on its line, is
// shown unchanged, and cannot mention, link to or close anything. Do not use it at the start of a line,
// where some forges read commands.
func Escape(s string) string {
	return escape(s, func(b *strings.Builder, r rune) {
		if strings.ContainsRune("\\`*_{}[]<>#|!~@&$", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	})
}

// HTML is like Escape, for text inside an HTML element.
func HTML(s string) string {
	return escape(s, func(b *strings.Builder, r rune) { b.WriteString(html.EscapeString(string(r))) })
}

// escape writes each character with put, and breaks up references: @user, #1, !1, GH-1 and TEAM-1 of other
// trackers, ~label, %milestone, &epic, $snippet, ^alert, [issue:1], URLs and e-mail addresses.
func escape(s string, put func(*strings.Builder, rune)) string {
	var b strings.Builder
	text := []rune(Clean(s))
	at := func(i int) rune {
		if i < 0 || i >= len(text) {
			return 0
		}
		return text[i]
	}
	word := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-\"'{[.`", r)
	}
	for i, r := range text {
		put(&b, r)
		next := at(i + 1)
		switch {
		case strings.ContainsRune("@#!~%&$^", r) && word(next),
			r == ':' && (next == '/' && at(i+2) == '/' || bracketed(text[:i])),
			next == '.' && strings.EqualFold(string(text[max(0, i-2):i+1]), "www"),
			next == '-' && unicode.IsDigit(at(i+2)) && ticket(text[:i+1]):
			b.WriteString(blank)
		}
	}
	return b.String()
}

// ticket reports whether a text ends in a prefix of issue names in trackers: GH in any case, or a word of
// capital letters and digits.
func ticket(text []rune) bool {
	from := len(text)
	for from > 0 && (unicode.IsLetter(text[from-1]) || unicode.IsDigit(text[from-1])) {
		from--
	}
	word := string(text[from:])
	return strings.EqualFold(word, "gh") || from < len(text) && unicode.IsUpper(text[from]) && word == strings.ToUpper(word)
}

// bracketed reports whether a text ends in [ and a word, as in [issue.
func bracketed(text []rune) bool {
	from := len(text)
	for from > 0 && (unicode.IsLetter(text[from-1]) || text[from-1] == '_') {
		from--
	}
	return from > 0 && text[from-1] == '['
}

// Code quotes text as a code span, with a fence longer than any in it. Do not use it in a table cell,
// because a | in the text would end the cell.
func Code(s string) string {
	s = Clean(s)
	if strings.TrimSpace(s) == "" {
		return "–"
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if fence == "`" {
		return fence + s + fence
	}
	return fence + " " + s + " " + fence
}

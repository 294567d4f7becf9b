package forge

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Verb is the action that a comment requests.
type Verb string

// The verbs.
const (
	Plan    Verb = "plan"
	Approve Verb = "approve"
	// Unapprove withdraws an approval.
	Unapprove Verb = "unapprove"
	Help      Verb = "help"
	// Unknown is a command that does not exist, or is not written correctly.
	Unknown Verb = "unknown"
)

// Command is an instruction to weir in a comment.
type Command struct {
	Name Verb
	// Digest is the digest of the plan to approve or unapprove, or its start: 8 to 64 lower-case hex
	// digits. "" approves the plan that was shown last, or withdraws all approvals.
	Digest string
	// Text is the text of an Unknown command: at most 60 characters, without characters that have a meaning
	// in Markdown. Meant is the command that results if punctuation is removed, such as from "/weir
	// approve"; "" if none exists.
	Text, Meant string
}

const (
	leastDigest, mostDigest = 8, 64
	// maxWords is the maximum number of words of a line that may be a command. Prose is longer.
	maxWords    = 3
	commandText = 60
)

// ParseCommand returns the command in a comment. The command must be alone on the first line with text:
// "weir plan", "weir approve" or "weir unapprove", each with or without a DIGEST, or "weir help", in upper
// or lower case. ParseCommand skips quotations, code and HTML comments, so that an answer below a quotation
// works, and quoted commands are not executed. A line of two or three words is an Unknown command if it
// starts with "weir" but names no command, or if it is a command with punctuation around its words. Any
// other line is not a command, and the result is false.
func ParseCommand(body string) (Command, bool) {
	words := strings.Fields(firstSaid(body))
	if len(words) < 2 || len(words) > maxWords {
		return Command{}, false
	}
	named := lower(words[0]) == "weir"
	if named {
		if c, ok := commandOf(words[1:]); ok {
			return c, true
		}
	}
	unknown := Command{Name: Unknown, Text: harmless(strings.Join(words[1:], " "))}
	bare := make([]string, len(words))
	for i, word := range words {
		bare[i] = strings.Trim(word, "/@!`*_\"'.,:;")
	}
	if lower(bare[0]) == "weir" {
		if c, ok := commandOf(bare[1:]); ok {
			unknown.Meant = strings.TrimSpace("weir " + string(c.Name) + " " + c.Digest)
		}
	}
	if !named && unknown.Meant == "" {
		return Command{}, false
	}
	return unknown, true
}

// commandOf parses the words after "weir".
func commandOf(words []string) (Command, bool) {
	verb, arguments := lower(words[0]), words[1:]
	switch {
	case verb == string(Plan) && len(arguments) == 0:
		return Command{Name: Plan}, true
	case verb == string(Help) && len(arguments) == 0:
		return Command{Name: Help}, true
	case verb != string(Approve) && verb != string(Unapprove):
	case len(arguments) == 0:
		return Command{Name: Verb(verb)}, true
	case isDigest(lower(arguments[0])):
		return Command{Name: Verb(verb), Digest: lower(arguments[0])}, true
	}
	return Command{}, false
}

// lower converts only ASCII letters, so that no other letter can become part of a command.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func isDigest(s string) bool {
	return len(s) >= leastDigest && len(s) <= mostDigest && strings.Trim(s, "0123456789abcdef") == ""
}

// harmless keeps only characters that can be repeated in Markdown without formatting, mentions or links.
func harmless(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, s)
	return strings.TrimSpace(s[:min(len(s), commandText)])
}

// firstSaid returns the first line with text that is not quoted, code, or in an HTML comment. A line with
// an HTML comment and other text is returned unchanged; it is not a command.
// The rules are CommonMark's: https://spec.commonmark.org/0.31.2/
func firstSaid(body string) string {
	var fence string // the fence of the open code block
	comment, quote := false, false
	for line := range strings.Lines(strings.ReplaceAll(body, "\r\n", "\n")) {
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimSpace(line)
		switch {
		case comment:
			_, after, closed := strings.Cut(line, "-->")
			comment = !closed
			if rest := strings.TrimSpace(after); closed && rest != "" {
				return line
			}
		case fence != "":
			if marker := fenceOf(line); strings.HasPrefix(marker, fence) && marker == text {
				fence = ""
			}
		case text == "":
			quote = false
		case strings.HasPrefix(text, ">"):
			quote = true
		case fenceOf(line) != "":
			fence, quote = fenceOf(line), false
		case quote:
			// A quoted paragraph can continue without >.
		case strings.HasPrefix(text, "<!--"):
			rest, open := withoutComments(text)
			if rest != "" {
				return line
			}
			comment = open
		case indent(line) >= 4:
			// Code.
		default:
			return line
		}
	}
	return ""
}

// withoutComments removes HTML comments from a line, and reports whether one of them stays open.
func withoutComments(line string) (rest string, open bool) {
	for {
		before, after, found := strings.Cut(line, "<!--")
		rest += before
		if !found {
			return strings.TrimSpace(rest), false
		}
		_, line, found = strings.Cut(after, "-->")
		if !found {
			return strings.TrimSpace(rest), true
		}
	}
}

// indent returns the number of leading columns of a line.
func indent(line string) int {
	n := 0
	for _, r := range line {
		switch r {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}

// fenceOf returns the code fence at the start of a line, "" if none exists.
func fenceOf(line string) string {
	text := strings.TrimLeft(line, " ")
	if indent(line) >= 4 || text == "" || text[0] != '`' && text[0] != '~' {
		return ""
	}
	n := len(text) - len(strings.TrimLeft(text, text[:1]))
	if n < 3 || text[0] == '`' && strings.Contains(text[n:], "`") {
		return ""
	}
	return text[:n]
}

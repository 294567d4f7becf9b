package forge

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Verb is the action that a comment requests.
type Verb string

// Verbs.
const (
	Plan    Verb = "plan"
	Approve Verb = "approve"
	// Unapprove withdraws an approval.
	Unapprove Verb = "unapprove"
	Help      Verb = "help"
	// Unknown is a command that there is not, or that is not written as it should be.
	Unknown Verb = "unknown"
)

// Command is an instruction to weir in a comment.
type Command struct {
	Name Verb
	// Digest is the digest of the plan to approve or unapprove, or its beginning: 8 to 64 hex
	// digits in lower case. "" approves what was shown last, and withdraws all approvals.
	Digest string
	// Text is the text of an Unknown command: at most 60 characters of it, without any that mean
	// something in Markdown. Meant is the command that results without the signs around it, such as
	// that of "/weir approve"; "" for none.
	Text, Meant string
}

const (
	leastDigest, mostDigest = 8, 64
	// maxWords bounds a line that is taken for a command: prose is longer.
	maxWords    = 3
	commandText = 60
)

// ParseCommand reads the command in a comment. It must be alone on the first line that
// has text: "weir plan", "weir approve", "weir unapprove", each of these with a
// DIGEST or without, or "weir help", in any case. It passes over quotations, code and HTML comments, so that an answer below a
// quotation works and the words of others do not. A line of two or three words that
// begins with "weir" and names no command is Unknown, and so is a command with signs around
// its words; anything else is no command, and false.
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

// commandOf reads the words after "weir".
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

// lower changes ASCII only: no other letter may become one of a command.
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

// harmless keeps what can be said again in any Markdown without marking, naming or
// linking anything.
func harmless(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, s)
	return strings.TrimSpace(s[:min(len(s), commandText)])
}

// firstSaid is the first line with text that is neither quoted nor code nor in an
// HTML comment. A line that holds a comment and something else is returned as it
// is, and is no command.
// The rules are CommonMark's: https://spec.commonmark.org/0.31.2/
func firstSaid(body string) string {
	var fence string // that is open
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
			// A quoted paragraph continues without the sign.
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

// withoutComments removes HTML comments from a line, and says whether one of them
// stays open.
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

// indent counts a line's leading columns.
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

// fenceOf is the run of marks with which a line opens code, "" if it does not.
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

package snapshot

import "strings"

// Trailer is a line such as "Signed-off-by: A U Thor" at the end of a commit message.
type Trailer struct {
	// Key is the key as written. Keys are not case-sensitive.
	Key string
	// Value is the unfolded value, on one line.
	Value string
}

// Trailers returns the trailers of a commit message, like Git 2.39 in `git log
// --format=%(trailers:only,unfold)` and `git interpret-trailers --parse --no-divider`. These are for commit
// messages; only in mails does a line of dashes end the message. go-git has no such function. Settings in
// Git's configuration (separators, the comment character, keys) are ignored, so that a message has the same
// trailers on every machine.
func Trailers(message string) []Trailer {
	message, _, _ = strings.Cut(message, "\x00") // a C string ends here
	for message != "" && blankLine(message) {
		_, message, _ = strings.Cut(message, "\n")
	}
	message = message[:messageEnd(message)]
	var out []Trailer
	var folded *Trailer // the trailer that continuation lines belong to; nil for other lines
	for line := range strings.Lines(message[trailersStart(message):]) {
		if gitSpace(line[0]) {
			if folded != nil {
				folded.Value += line
			}
			continue
		}
		folded = nil
		if at := separatorAt(line); at >= 1 {
			out = append(out, Trailer{Key: strings.Trim(line[:at], gitSpaces), Value: line[at+1:]})
			folded = &out[len(out)-1]
		}
	}
	for i := range out {
		out[i].Value = unfold(strings.Trim(out[i].Value, gitSpaces))
	}
	return out
}

// Prefixes of lines that Git's own commands write. If a paragraph contains one, it may also contain other
// lines.
var gitsOwn = []string{"Signed-off-by: ", "(cherry picked from commit "}

const (
	comment = '#'
	// cutLine ends a message that was edited with additional text below it.
	cutLine = "# ------------------------ >8 ------------------------\n"
	// conflicts starts the list that older versions of Git added to a merge's message.
	conflicts = "Conflicts:\n"
	gitSpaces = " \t\n\r"
)

// gitSpace is Git's isspace function.
func gitSpace(c byte) bool { return strings.IndexByte(gitSpaces, c) >= 0 }

// blankLine reports whether the first line contains only white space.
func blankLine(s string) bool {
	line, _, _ := strings.Cut(s, "\n")
	return strings.Trim(line, gitSpaces) == ""
}

// messageEnd returns the end of the message, without comments, empty lines and a list of conflicts at its
// end, and without the text below the cut line.
func messageEnd(s string) int {
	cut := len(s)
	if strings.HasPrefix(s, cutLine) {
		cut = 0
	} else if at := strings.Index(s, "\n"+cutLine); at >= 0 {
		cut = at + 1
	}
	end, listed := 0, false // listed is the start of lines that are not part of the message, or 0, as in Git
	at := 0
	for line := range strings.Lines(s[:cut]) {
		switch {
		case line[0] == comment || line[0] == '\n':
			if end == 0 {
				end = at
			}
		case strings.HasPrefix(s[at:], conflicts):
			listed = true
			if end == 0 {
				end = at
			}
		case listed && line[0] == '\t': // a path in the list
		case end > 0:
			end, listed = 0, false
		}
		at += len(line)
	}
	if end > 0 {
		return end
	}
	return cut
}

// trailersStart returns the offset of the trailers in s, or len(s) if s has no trailers. The trailers are the last
// paragraph, unless it is also the title. Each of its lines must be a trailer. But if at least one line is one
// that Git itself writes (gitsOwn), the paragraph may contain up to three other lines for each trailer.
func trailersStart(s string) int {
	title := 0
	for line := range strings.Lines(s) {
		if line[0] != comment && blankLine(line) {
			break
		}
		title += len(line)
	}
	var trailers, others, continued int
	own, empty := false, true
	for end := len(s); end > title; {
		begin := strings.LastIndexByte(s[:end-1], '\n') + 1
		line := s[begin:end]
		switch {
		case line[0] == comment:
			others, continued = others+continued, 0
		case blankLine(line):
			if empty {
				break
			}
			others += continued
			if own && trailers*3 >= others || trailers > 0 && others == 0 {
				return end
			}
			return len(s)
		case strings.HasPrefix(line, gitsOwn[0]) || strings.HasPrefix(line, gitsOwn[1]):
			trailers, continued, own, empty = trailers+1, 0, true, false
		case gitSpace(line[0]):
			continued, empty = continued+1, false
		case separatorAt(line) >= 1:
			trailers, continued, empty = trailers+1, 0, false
		default:
			others, continued, empty = others+1+continued, 0, false
		}
		end = begin
	}
	return len(s)
}

// separatorAt returns the position of the colon after a key and white space, or -1 if the line does not start
// like that.
func separatorAt(line string) int {
	space := false
	for i := range len(line) {
		switch c := line[i]; {
		case c == ':':
			return i
		case !space && (c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-'):
		case i > 0 && (c == ' ' || c == '\t'):
			space = true
		default:
			return -1
		}
	}
	return -1
}

// unfold joins the lines of a value.
func unfold(value string) string {
	first, rest, folded := strings.Cut(value, "\n")
	for folded {
		var line string
		line, rest, folded = strings.Cut(strings.TrimLeft(rest, gitSpaces), "\n")
		first += " " + line
	}
	return strings.Trim(first, gitSpaces)
}

package strict

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// UndecodableHint is the advice for a fault of Undecodable.
const UndecodableHint = "Write the file in UTF-8, without control characters."

// Undecodable returns the position of the first byte that YAML in UTF-8 cannot contain, because the parser
// does not report it. line is 0 if there is no such byte, or if a byte order mark shows that the text is
// UTF-16.
func Undecodable(text []byte) (line, column int, summary string) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return 0, 0, ""
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			before := text[:i]
			return bytes.Count(before, []byte("\n")) + 1, i - bytes.LastIndexByte(before, '\n'), fmt.Sprintf("the byte 0x%02x is not allowed here", text[i])
		}
		i += size
	}
	return 0, 0, ""
}

var (
	syntaxLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)
	// parserError matches messages with a line number that is one too small. The library adds one only to the
	// lines of its scanner.
	parserError   = lazyregexp.New(`^did not find expected (key|node content|'-' indicator|',' or '[\]}]'|<)|^found (duplicate|incompatible|undefined)`)
	unknownAnchor = lazyregexp.New(`^unknown anchor '(.*)' referenced`)
)

// SyntaxError extracts the line from a message of the parser. A message without a line is about the first
// line.
func SyntaxError(err error, text []byte) (line int, summary string) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	m := syntaxLine.FindStringSubmatch(first)
	if a := unknownAnchor.FindStringSubmatch(m[2]); a != nil {
		if before, _, ok := bytes.Cut(text, []byte("*"+a[1])); ok {
			return bytes.Count(before, []byte("\n")) + 1, "an alias names no anchor" // the name may be a secret that starts with *
		}
	}
	line, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		return 1, m[2]
	}
	if parserError.MatchString(m[2]) {
		line++
	}
	return min(line, bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n"))+1), m[2]
}

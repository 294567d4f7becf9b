package xmlscan

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/reconciler/awscloud/stringpool"
)

// Text returns the text of the current element, which must contain no other element, and leaves the element.
// Short equal texts share their memory.
func (s *Scanner) Text() string {
	if s.err != nil {
		return ""
	}
	if s.empty {
		s.leave()
		return ""
	}
	raw, ok := s.toTag()
	switch {
	case !ok:
		s.fail("the document ends inside %s", s.Name())
		return ""
	case !s.at("</"):
		s.fail("%s holds more than text", s.Name())
		return ""
	}
	text := s.unescape(raw)
	s.endTag()
	if s.err != nil {
		return ""
	}
	return text
}

// unescape resolves entities and normalizes line ends.
func (s *Scanner) unescape(raw []byte) string {
	text := stringpool.Bytes(raw)
	if bytes.IndexByte(raw, '&') >= 0 || bytes.IndexByte(raw, '\r') >= 0 {
		text = s.resolve(text)
	}
	for _, r := range text {
		if r == utf8.RuneError || r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			s.fail("the character %U", r)
			return ""
		}
	}
	if strings.Contains(text, "]]>") {
		s.fail("]]> in a text")
		return ""
	}
	return text
}

var errEntity = errors.New("an entity that XML does not define")

// resolve returns a text with its entities replaced, and its line ends as the XML standard wants them.
func (s *Scanner) resolve(text string) string {
	// Line ends are normalized first, because a carriage return that is written as an entity must stay.
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "&")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, ";")
		r, err := entity(name)
		if !closed || err != nil {
			s.fail("%v", errEntity)
			return ""
		}
		b.WriteRune(r)
		text = after
	}
}

// entity returns the character of an entity, such as lt, #10 or #x1F600.
func entity(name string) (rune, error) {
	switch name {
	case "lt":
		return '<', nil
	case "gt":
		return '>', nil
	case "amp":
		return '&', nil
	case "quot":
		return '"', nil
	case "apos":
		return '\'', nil
	}
	digits, isNumber := strings.CutPrefix(name, "#")
	if !isNumber {
		return 0, errEntity
	}
	base := 10
	if hex, isHex := strings.CutPrefix(digits, "x"); isHex {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) { //nolint:gosec // the bound is checked first
		return 0, errEntity
	}
	return rune(n), nil //nolint:gosec // the bound is checked above
}

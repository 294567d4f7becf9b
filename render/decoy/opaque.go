package decoy

import (
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Characters that stand for each other.
const (
	digits      = "123456789" // no zero: a number stays one without a leading zero
	lower       = "abcdefghijklmnopqrstuvwxyz"
	upper       = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	punctuation = "-_.~^!%+;|?,"
	control     = "\x01\x02\x03\x04\x05\x06\x07\x0e\x0f\x10\x11\x16\x1a\x1d"
)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func classOf(c byte) string {
	switch {
	case isDigit(c):
		return digits
	case isLower(c):
		return lower
	case isUpper(c):
		return upper
	case c < ' ', c == 0x7f:
		return control
	}
	return punctuation
}

// source is randomness that a text alone decides.
type source struct{ *rand.Rand }

func newSource(text string) source {
	return source{rand.New(rand.NewChaCha8(sha256.Sum256([]byte("decoy\x00" + text))))}
}

// choices are the characters that may stand for each ASCII one, the best first: those
// that are others in each part that a character of base64 holds, at whatever place
// they are encoded, so that the pieces of a text's base64 are others too.
var choices = func() (out [utf8.RuneSelf]string) {
	for c := range byte(len(out)) {
		class := classOf(c)
		for _, good := range []func(x byte) bool{
			func(x byte) bool { return x&3 != 0 && x>>4 != 0 },
			func(x byte) bool { return x&3 != 0 && x>>2 != 0 },
			func(x byte) bool { return x != 0 },
		} {
			for i := range len(class) {
				if good(class[i] ^ c) {
					out[c] += class[i : i+1]
				}
			}
			if out[c] != "" {
				break
			}
		}
	}
	return out
}()

// other chooses another ASCII character for one, if it can none of some.
func (s source) other(c byte, avoid string) byte {
	choice := choices[c]
	if strings.ContainsAny(choice, avoid) {
		for _, class := range []string{choice, classOf(c)} {
			left := strings.Map(func(r rune) rune {
				if byte(r) == c || strings.ContainsRune(avoid, r) {
					return -1
				}
				return r
			}, class)
			if left != "" {
				choice = left
				break
			}
		}
	}
	return choice[s.IntN(len(choice))]
}

// opaque is the decoy of a text without any structure but its delimiters.
func (m *Maker) opaque(text string) string {
	s, stays, avoid := newSource(text), m.staying(text), strings.Join(m.Delimiters, "")
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch c := text[i]; {
		case stays != nil && stays[i]:
			out, size = append(out, c), 1
		case isSpace(c):
			out = append(out, c)
		case r == utf8.RuneError && size == 1: // no UTF-8 before, and none afterwards
			next := 0x80 | byte(s.IntN(0x40))
			if next == c {
				next ^= 1
			}
			out = append(out, next)
		case size == 1:
			out = append(out, s.other(c, avoid))
		default:
			out = utf8.AppendRune(out, s.rune(r, size))
		}
		i += size
	}
	return string(out)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// letters are letters of a size in UTF-8, for those beyond ASCII.
var letters = map[int][2]rune{2: {0x400, 0x45f}, 3: {0x4e00, 0x9fa0}, 4: {0x20000, 0x2a6d0}}

func (s source) rune(r rune, size int) rune {
	if unicode.IsSpace(r) {
		return r
	}
	from, to := letters[size][0], letters[size][1]
	for {
		if other := from + s.Int32N(to-from); other != r {
			return other
		}
	}
}

// staying tells which bytes of a text belong to delimiters that stay. None do where
// two different ones meet, or nothing else is there: a piece between the others would
// then be the same.
func (m *Maker) staying(text string) []bool {
	var of []string   // the delimiter that a byte belongs to
	onlyMarks := true // no delimiter holds white space, which stays anyway
	for _, d := range m.Delimiters {
		if strings.ContainsAny(d, " \t\r\n") {
			onlyMarks = false
		}
		if strings.TrimSpace(d) == "" {
			continue
		}
		for at := 0; ; {
			i := strings.Index(text[at:], d)
			if i < 0 {
				break
			}
			if slices.ContainsFunc(m.Delimiters, func(other string) bool { return other != d && strings.Contains(d, other) }) {
				return nil
			}
			if of == nil {
				of = make([]string, len(text))
			}
			for j := at + i; j < at+i+len(d); j++ {
				if of[j] != "" && of[j] != d {
					return nil
				}
				of[j] = d
			}
			at += i + len(d)
		}
	}
	if of == nil {
		return nil
	}
	stays, changes := make([]bool, len(text)), false
	run := "" // the delimiter of what stays before a place without a break
	for i, d := range of {
		stays[i] = d != ""
		switch {
		case d == "" && isSpace(text[i]) && onlyMarks:
			continue
		case d == "" && isSpace(text[i]):
			d = text[i : i+1] // as good as a delimiter
		case d == "":
			changes, run = true, ""
			continue
		}
		if run != "" && run != d {
			return nil
		}
		run = d
	}
	if !changes {
		return nil
	}
	return stays
}

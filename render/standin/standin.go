// Package standin makes random stand-ins for secret texts, with a key of the process.
//
// A build sees only stand-ins. So none of its decisions depends on a secret: which patch applies, what a
// selector matches, the order of objects, a hash, or an error. Afterwards Put replaces the stand-ins with the
// secret texts, in fields that may contain secrets.
//
// All stand-ins have the same form: Length lower-case letters and digits, the first one a letter. Such a text
// is valid as a YAML string, a Kubernetes name, a value in a file of variables, and base64. A secret has the
// same stand-in until the process ends, and another one in the next process.
package standin

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/secret"
)

// Length is the length of a stand-in in bytes. It is a multiple of 3 and of 4, so that neither the stand-in
// nor its base64 form needs padding.
const Length = 48

// headLength is the length in bytes of the common prefix of all stand-ins of a process.
const headLength = 12

// process returns the key of the process and the prefix of its stand-ins.
var process = sync.OnceValue(func() (p struct {
	key  []byte
	head string
}) {
	p.key = make([]byte, 32)
	_, _ = rand.Read(p.key) // never fails
	p.head = "w" + letters(p.key, "head", headLength-1)
	return p
})

// letters derives n characters from a key and a text.
func letters(key []byte, of string, n int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	var out strings.Builder
	for block := byte(0); out.Len() < n; block++ {
		m := hmac.New(sha256.New, key)
		m.Write([]byte{block})
		m.Write([]byte(of))
		for _, b := range m.Sum(nil)[:min(sha256.Size, n-out.Len())] {
			out.WriteByte(alphabet[b%byte(len(alphabet))])
		}
	}
	return out.String()
}

// Text is a secret text.
type Text struct {
	// ID identifies the secret in all processes. It is derived from public data, such as the encrypted text.
	ID string
	// Value is the secret text.
	Value string
	// Tag is the YAML type, such as !!int. If it is empty, the text decides the type, as for variables.
	Tag string
	// Literal is the value in YAML syntax, for a file whose text becomes a value. Otherwise it is empty.
	Literal string
}

// StandIn returns the stand-in of the secret with the given ID.
func StandIn(id string) string {
	return process().head + letters(process().key, "id\x00"+id, Length-headLength)
}

// Other returns a decoy for the secret with the given ID. It has the form of a stand-in, and shares no text
// with the real one.
func Other(id string) string { return "v" + letters(process().key, "other\x00"+id, Length-1) }

// Holds reports whether a text contains a stand-in of this process. The stand-in may be cut off after its
// prefix.
func Holds(text string) bool { return strings.Contains(text, process().head) }

// Index returns the position of the first stand-in of this process in a text, or -1. The stand-in may be cut
// off after its prefix.
func Index(text []byte) int { return bytes.Index(text, []byte(process().head)) }

// Set has the secret texts of a build. The zero value and nil are empty. It is safe for concurrent use after
// the last Add.
type Set struct {
	texts   map[string]Text // by stand-in
	windows map[[window]byte]struct{}
}

// window is the length of the shortest recognized piece of a stand-in. A text contains such a piece by chance
// with a probability of 10^-12.
const window = 8

// Add adds a text and returns its stand-in.
func (s *Set) Add(t Text) string {
	standIn := StandIn(t.ID)
	if s.texts == nil {
		s.texts, s.windows = map[string]Text{}, map[[window]byte]struct{}{}
	}
	if _, known := s.texts[standIn]; !known {
		s.learn(standIn)
	}
	s.texts[standIn] = t
	return standIn
}

// learn records the pieces of a stand-in: unchanged, and in base64 at every offset.
func (s *Set) learn(standIn string) {
	add := func(text string) {
		for i := 0; i+window <= len(text); i++ {
			s.windows[[window]byte([]byte(text[i:i+window]))] = struct{}{}
		}
	}
	add(standIn)
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), standIn...))
		add(text[[]int{0, 2, 3}[before] : (before+len(standIn))*8/6])
	}
}

// Len returns the number of texts.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.texts)
}

// Touches reports whether a text contains a stand-in or a piece of one, unchanged or in base64.
func (s *Set) Touches(text string) bool {
	at, _ := s.piece(text, 0)
	return at >= 0
}

// piece returns the position and length of the first piece of a stand-in at or after a position, or -1.
func (s *Set) piece(text string, from int) (at, length int) {
	if s.Len() == 0 {
		return -1, 0
	}
	known := func(i int) bool {
		_, ok := s.windows[[window]byte([]byte(text[i:i+window]))]
		return ok
	}
	for i := from; i+window <= len(text); i++ {
		if !known(i) {
			continue
		}
		end := i + 1
		for end+window <= len(text) && known(end) {
			end++
		}
		return i, end - 1 + window - i
	}
	return -1, 0
}

// In returns the texts whose complete stand-ins are in a text. It returns each of them once.
func (s *Set) In(text string) (out []Text) {
	if s.Len() == 0 {
		return nil
	}
	for {
		_, t, after, ok := s.next(text)
		if !ok {
			return out
		}
		out = append(out, t)
		text = after
	}
}

// Mask replaces every stand-in and every piece of one in a text with secret.Mask.
func (s *Set) Mask(text string) string {
	at, length := s.piece(text, 0)
	if at < 0 {
		return text
	}
	var out strings.Builder
	from := 0
	for ; at >= 0; at, length = s.piece(text, from) {
		out.WriteString(text[from:at] + secret.Mask)
		from = at + length
	}
	return out.String() + text[from:]
}

// Found is the result of Put.
type Found int

// Results of Put.
const (
	None  Found = iota // no stand-in
	Whole              // the text is a single stand-in
	Part               // the text contains stand-ins and other text
	Cut                // the text contains a piece of a stand-in, and was not changed
)

// Put replaces stand-ins in a text with their secret texts. If the text is base64 of a text with stand-ins,
// Put replaces them in the decoded text and encodes the result. If the result is Cut, the text is unchanged.
func (s *Set) Put(text string) (string, Found) {
	return s.exchange(text, func(t Text) (string, string) { return t.Value, t.Literal })
}

// Marked replaces stand-ins in a text with the public IDs of their secrets.
func (s *Set) Marked(text string) string {
	mark := func(t Text) string { return "\x00" + hex.EncodeToString([]byte(t.ID)) + "\x00" }
	out, _ := s.exchange(text, func(t Text) (string, string) { return mark(t), mark(t) })
	return out
}

// exchange replaces the stand-ins in a text with the result of with, for Put and Marked. A stand-in in
// double quotes is replaced by the literal together with the quotes, unless the literal is empty.
func (s *Set) exchange(text string, with func(Text) (value, literal string)) (string, Found) {
	if !s.Touches(text) {
		return text, None
	}
	if t, ok := s.texts[text]; ok {
		value, _ := with(t)
		return value, Whole
	}
	if plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err == nil && Holds(string(plain)) {
		out, found := s.exchange(string(plain), with)
		if found == Cut {
			return text, Cut
		}
		return Base64(out), found
	}
	var out strings.Builder
	for rest := text; ; {
		before, t, after, more := s.next(rest)
		if !more {
			if s.Touches(rest) {
				return text, Cut
			}
			out.WriteString(rest)
			return out.String(), Part
		}
		if s.Touches(before) {
			return text, Cut
		}
		value, literal := with(t)
		if literal != "" && strings.HasSuffix(before, `"`) && strings.HasPrefix(after, `"`) {
			before, after, value = before[:len(before)-1], after[1:], literal
		}
		out.WriteString(before + value)
		rest = after
	}
}

// next returns the first complete stand-in of a text, and the text before and after it.
func (s *Set) next(text string) (before string, t Text, after string, ok bool) {
	for from := 0; ; {
		i := strings.Index(text[from:], process().head)
		if i < 0 || from+i+Length > len(text) {
			return "", Text{}, "", false
		}
		from += i
		if t, ok = s.texts[text[from:from+Length]]; ok {
			return text[:from], t, text[from+Length:], true
		}
		from++
	}
}

// Base64 encodes a text like kustomize does in Secrets: in lines if it is long.
func Base64(text string) string {
	const line = 70
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	if len(encoded) < line {
		return encoded
	}
	var out strings.Builder
	for chunk := range slices.Chunk([]byte(encoded), line) {
		out.Write(chunk)
		out.WriteByte('\n')
	}
	return out.String()
}

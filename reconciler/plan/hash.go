package plan

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/visible"
)

// descriptionLimit is EC2's limit for a version description, in the characters that
// Java counts: UTF-16 units, of which an emoji takes two.
// Assumed of AWS: description-units.
const descriptionLimit = 255

const descriptionPrefix = "weir:v1:"

// canonical returns JSON with sorted keys and absent members omitted, so equal
// values give equal bytes whatever order a struct declares its members in.
func canonical(v any) []byte {
	first, err := json.Marshal(v)
	if err != nil {
		// Intent types hold strings, numbers, booleans and slices of them.
		panic("canonical: " + err.Error())
	}
	var generic any
	if err := json.Unmarshal(first, &generic); err != nil {
		panic("canonical: " + err.Error())
	}
	out, err := json.Marshal(generic)
	if err != nil {
		panic("canonical: " + err.Error())
	}
	return out
}

func shortHash(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// bodyJSON is canonical for template data, whose structs declare their members
// in order: it is on the path of every steady pass. Compressed user data is
// taken uncompressed, because another release of the compressor may write the
// same text in other bytes, which must roll nothing.
func bodyJSON(data *intent.TemplateData) []byte {
	if strings.HasPrefix(data.UserData, gzipBase64) {
		plain := *data
		plain.UserData = base64.StdEncoding.EncodeToString([]byte(decoded(data.UserData)))
		data = &plain
	}
	out, err := json.Marshal(data)
	if err != nil {
		panic("template data: " + err.Error())
	}
	return out
}

// gzipBase64 is how gzip begins in base64: its magic number, and deflate.
const gzipBase64 = "H4sI"

// BodyHash is 16 hex of SHA-256 over the canonical JSON of template data.
func BodyHash(data intent.TemplateData) string { return shortHash(bodyJSON(&data)) }

// SourceHash is BodyHash with the image as Git names it: by lookup, not by what
// the lookup answered. While it is unchanged a newly published image rolls nothing.
func SourceHash(data intent.TemplateData, image intent.Lookup) string {
	return sourceHash(data, canonical(image))
}

// sourceHash is SourceHash where the image's canonical JSON is at hand.
func sourceHash(data intent.TemplateData, image []byte) string {
	data.ImageID = ""
	return shortHash(bodyJSON(&data), image)
}

// Description is what weir writes as a version's description: the hashes, then
// the commit, so that the console reads like a log.
func Description(body, source string, c Commit) string { return describe(body+":"+source, c) }

// describe puts the commit behind what the hashes say.
func describe(hashes string, c Commit) string {
	text := descriptionPrefix + hashes
	if c.Revision != "" {
		text += " " + c.Revision[:min(7, len(c.Revision))]
	}
	if subject := printable(c.Subject); subject != "" {
		text += " " + subject
	}
	return strings.TrimSpace(head(text, descriptionLimit))
}

// head is as much of a text as fits into a number of UTF-16 units.
func head(text string, units int) string {
	for i, r := range text {
		if units -= utf16.RuneLen(r); units < 0 {
			return text[:i]
		}
	}
	return text
}

func printable(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || visible.Hidden(r) || r == utf8.RuneError
	}), " ")
}

// said is what a version's description says of its content.
type said struct {
	body, source string
	// confirmed is the confirmation of a version that was made because the one
	// before did not hold what it said; "" in all others.
	confirmed string
}

// descriptionHashes reads the hashes back out of a version description.
func descriptionHashes(description string) (s said, ok bool) {
	rest, ok := strings.CutPrefix(description, descriptionPrefix)
	if !ok {
		return said{}, false
	}
	rest, _, _ = strings.Cut(rest, " ")
	return contentSaid(rest)
}

// contentSaid reads the hashes themselves.
func contentSaid(hashes string) (s said, ok bool) {
	s.body, hashes, ok = strings.Cut(hashes, ":")
	s.source, s.confirmed, _ = strings.Cut(hashes, ":")
	return s, ok && len(s.body) == 16 && len(s.source) == 16
}

// ContentOf is what a version's description says of its content; "" where weir did
// not write it.
func ContentOf(description string) string {
	s, ours := descriptionHashes(description)
	if !ours {
		return ""
	}
	return s.body + ":" + s.source
}

// mask stands for user data in changes: equal text gives equal marks, and the
// key keeps anybody without it from guessing a short secret.
func (p Policy) mask(text string) any {
	if text == "" {
		return nil
	}
	m := hmac.New(sha256.New, p.DigestKey)
	m.Write([]byte(text))
	return "hmac:" + hex.EncodeToString(m.Sum(nil))[:16]
}

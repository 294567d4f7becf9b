// Package content identifies the content of launch template versions by hashes, and writes and reads the
// version description that contains them. A version's body is the hash of its whole data. Its source is the
// same hash, but with Git's image lookup in place of the image id, so that a newly published image alone
// makes no version. Golden files fix the hashes: different hashes would make a version of every template and
// replace machines unnecessarily.
package content

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/visible"
)

// descriptionLimit is EC2's limit for a version description in UTF-16 units. An emoji takes two.
// Assumed of AWS: description-units.
const descriptionLimit = 255

const descriptionPrefix = "weir:v1:"

// Canonical returns JSON with sorted keys and without absent members. Equal values give equal bytes,
// whatever the order of a struct's members.
func Canonical(v any) []byte {
	first, err := json.Marshal(v)
	if err != nil {
		// Intent types contain only strings, numbers, booleans and slices of them.
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

func ShortHash(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// BodyJSON is Canonical for template data, whose structs declare their members in order. It is fast, because
// every idle pass calls it. It uses user data uncompressed: another release of the compressor may produce
// other bytes for the same text, and that must not replace machines.
func BodyJSON(data *intent.TemplateData) []byte {
	var out bytes.Buffer
	writeBody(&out, data)
	return out.Bytes()
}

func writeBody(out *bytes.Buffer, data *intent.TemplateData) {
	if strings.HasPrefix(data.UserData, GzipBase64) {
		plain := *data
		plain.UserData = base64.StdEncoding.EncodeToString([]byte(Decoded(data.UserData)))
		data = &plain
	}
	if err := json.NewEncoder(out).Encode(data); err != nil {
		panic("template data: " + err.Error())
	}
	out.Truncate(out.Len() - 1) // removes the line break of the encoder
}

// GzipBase64 is the start of gzip data in base64: its magic number, and the compression method.
const GzipBase64 = "H4sI"

// BodyHash returns 16 hex digits of the SHA-256 of the canonical JSON of template data.
func BodyHash(data intent.TemplateData) string { return ShortHash(BodyJSON(&data)) }

// SourceHash is BodyHash with Git's image lookup in place of the image that it resolved to. So a newly
// published image does not change it.
func SourceHash(data intent.TemplateData, image intent.Lookup) string {
	return HashOfSource(data, Canonical(image))
}

// bodies contains buffers for BodyJSON, which every idle pass calls for each pool.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// HashOfSource is SourceHash with the image lookup in canonical JSON.
func HashOfSource(data intent.TemplateData, image []byte) string {
	data.ImageID = ""
	body := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	writeBody(body, &data)
	return ShortHash(body.Bytes(), image)
}

// Describe returns the description that weir writes for a version: the hashes (body, colon, source), and the
// commit, so that the console shows a readable history.
func Describe(hashes string, c Commit) string {
	text := descriptionPrefix + hashes
	if c.Revision != "" {
		text += " " + c.Revision[:min(7, len(c.Revision))]
	}
	if subject := Printable(c.Subject); subject != "" {
		text += " " + subject
	}
	return strings.TrimSpace(head(text, descriptionLimit))
}

// head returns the longest start of a text that fits into a number of UTF-16 units.
func head(text string, units int) string {
	for i, r := range text {
		if units -= utf16.RuneLen(r); units < 0 {
			return text[:i]
		}
	}
	return text
}

func Printable(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || visible.Hidden(r) || r == utf8.RuneError
	}), " ")
}

// Said contains the hashes in a version's description.
type Said struct {
	Body, Source string
	// Confirmed is set for a version that was made because the version before it did not have the content
	// that its description stated. It is empty otherwise.
	Confirmed string
}

// DescriptionHashes parses the hashes in a version description.
func DescriptionHashes(description string) (s Said, ok bool) {
	rest, ok := strings.CutPrefix(description, descriptionPrefix)
	if !ok {
		return Said{}, false
	}
	rest, _, _ = strings.Cut(rest, " ")
	return Hashes(rest)
}

// Hashes parses the hashes without their prefix.
func Hashes(hashes string) (s Said, ok bool) {
	s.Body, hashes, ok = strings.Cut(hashes, ":")
	s.Source, s.Confirmed, _ = strings.Cut(hashes, ":")
	return s, ok && len(s.Body) == 16 && len(s.Source) == 16
}

// Of returns the hashes in a version's description, or an empty string if weir did not write it.
func Of(description string) string {
	s, ours := DescriptionHashes(description)
	if !ours {
		return ""
	}
	return s.Body + ":" + s.Source
}

// Commit is the commit in the description of a new template version.
type Commit struct {
	Revision string // full hash; "" for a path whose files belong to no commit
	Subject  string
}

func Decoded(b64 string) string {
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		return b64
	}
	return intent.DecodeUserData(raw)
}

// Package content says by hashes what a version of a launch template holds, and reads and
// writes the description that carries them. A version's body is the hash of its whole
// data; its source is the same with the image as Git names it, so that a newly published
// image alone makes no version. Goldens keep the hashes: another hash would make a
// version of every template and replace machines for nothing.
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

// descriptionLimit is EC2's limit for a version description, in Java's characters: UTF-16 units. An
// emoji takes two.
// Assumed of AWS: description-units.
const descriptionLimit = 255

const descriptionPrefix = "weir:v1:"

// Canonical returns JSON with sorted keys and absent members omitted, so equal
// values give equal bytes whatever order a struct declares its members in.
func Canonical(v any) []byte {
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

func ShortHash(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// BodyJSON is canonical for template data, whose structs declare their members
// in order: it is on the path of every steady pass. Compressed user data is
// taken uncompressed, because another release of the compressor may write the
// same text in other bytes, which must roll nothing.
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
	out.Truncate(out.Len() - 1) // the encoder's end of line
}

// GzipBase64 is the beginning of gzip data in base64: its magic number, and deflate.
const GzipBase64 = "H4sI"

// BodyHash is 16 hex of SHA-256 over the canonical JSON of template data.
func BodyHash(data intent.TemplateData) string { return ShortHash(BodyJSON(&data)) }

// SourceHash is BodyHash with the image as Git names it: by lookup, not by what
// the lookup answered. While it is unchanged a newly published image rolls nothing.
func SourceHash(data intent.TemplateData, image intent.Lookup) string {
	return HashOfSource(data, Canonical(image))
}

// bodies are written in each steady pass, once for each pool.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// HashOfSource is SourceHash where the image's canonical JSON is at hand.
func HashOfSource(data intent.TemplateData, image []byte) string {
	data.ImageID = ""
	body := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	writeBody(body, &data)
	return ShortHash(body.Bytes(), image)
}

// Describe is the text that weir writes as a version's description: the hashes (the body's and
// the source's, with a colon between them), then the commit, so that the console reads like a log.
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

// head is as much of a text as fits into a number of UTF-16 units.
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

// Said holds the statements of a version's description about its content.
type Said struct {
	Body, Source string
	// Confirmed is the confirmation of a version that was made because the one
	// before did not hold what it said; "" in all others.
	Confirmed string
}

// DescriptionHashes reads the hashes back out of a version description.
func DescriptionHashes(description string) (s Said, ok bool) {
	rest, ok := strings.CutPrefix(description, descriptionPrefix)
	if !ok {
		return Said{}, false
	}
	rest, _, _ = strings.Cut(rest, " ")
	return Hashes(rest)
}

// Hashes reads the hashes themselves.
func Hashes(hashes string) (s Said, ok bool) {
	s.Body, hashes, ok = strings.Cut(hashes, ":")
	s.Source, s.Confirmed, _ = strings.Cut(hashes, ":")
	return s, ok && len(s.Body) == 16 && len(s.Source) == 16
}

// Of reads what a version's description says of its content; "" where weir did not
// write it.
func Of(description string) string {
	s, ours := DescriptionHashes(description)
	if !ours {
		return ""
	}
	return s.Body + ":" + s.Source
}

// Commit is the cause that a new template version's description names.
type Commit struct {
	Revision string // full hash; "" for a path whose files are no commit's
	Subject  string
}

func Decoded(b64 string) string {
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		return b64
	}
	return intent.DecodeUserData(raw)
}

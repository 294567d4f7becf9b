package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// sealed matches an encrypted value. Values are encrypted with AES-256 in Galois/Counter Mode, with a nonce
// of 32 bytes and a tag of 16 bytes.
var sealed = lazyregexp.New(`^ENC\[AES256_GCM,data:([A-Za-z0-9+/=]*),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:([a-z]+)\]$`)

// unsealed returns the parts of an encrypted value: data, iv, tag and type, as in sealed. It does not check
// the base64 characters, because decoding does.
func unsealed(text string) (parts [4]string, ok bool) {
	rest, ok := strings.CutPrefix(text, marker+"data:")
	for i, mark := range []string{",iv:", ",tag:", ",type:", "]"} {
		if !ok {
			return parts, false
		}
		parts[i], rest, ok = strings.Cut(rest, mark)
	}
	return parts, ok && rest == "" && parts[1] != "" && parts[2] != "" && parts[3] != "" && !strings.ContainsAny(text, "\r\n")
}

// remark is the text of an encrypted comment.
type remark string

// additional returns the additional data that binds a value to its path.
func additional(path []string) string { return strings.Join(path, ":") + ":" }

// unseal decrypts a value and restores its type. An empty string is not encrypted.
func unseal(text string, key []byte, aad string) (any, error) {
	if text == "" {
		return "", nil
	}
	parts, ok := unsealed(text)
	if !ok {
		return nil, errors.New("is not encrypted, and should be")
	}
	var raw [3][]byte
	for i := range raw {
		var err error
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i]); err != nil {
			return nil, errors.New("is damaged: it is not base64")
		}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cannot be decrypted: %w", err)
	}
	if len(raw[2]) != aes.BlockSize {
		return nil, errors.New("is damaged: its tag has the wrong size")
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(raw[1]))
	if err != nil {
		return nil, fmt.Errorf("cannot be decrypted: %w", err)
	}
	plain, err := gcm.Open(nil, raw[1], append(raw[0], raw[2]...), []byte(aad))
	if err != nil {
		return nil, errors.New("does not decrypt: it, its path or the data key were changed")
	}
	return typed(string(plain), parts[3])
}

// typed converts a decrypted string to its original type. Its error does not quote the value.
func typed(text, kind string) (v any, err error) {
	switch kind {
	case "str", "bytes":
		return text, nil
	case "int":
		v, err = strconv.Atoi(text)
	case "float":
		v, err = strconv.ParseFloat(text, 64)
	case "bool":
		v, err = strconv.ParseBool(text)
	case "time":
		v, err = time.Parse(time.RFC3339Nano, text)
	case "comment":
		return remark(text), nil
	default:
		return nil, fmt.Errorf("has the type %q, which this version does not know", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("is not of its type %s", kind)
	}
	return v, nil
}

// textOf returns a value in the form for the MAC, which is also its form in a dotenv file.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case time.Time:
		text, err := v.MarshalText()
		return string(text), err
	}
	return "", fmt.Errorf("a value has the type %T, which SOPS does not know", v)
}

// secretsOf returns the strings that reveal a decrypted value: the value itself and, if it is base64 as in
// the data of a Secret, the decoded value.
func secretsOf(v any) []string {
	text, err := textOf(v)
	if err != nil {
		return nil
	}
	out := []string{text}
	if plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err == nil && len(plain) > 0 && utf8.Valid(plain) {
		out = append(out, string(plain))
	}
	return out
}

// seedOfPartial is the start of the MAC of a file whose MAC excludes unencrypted values: the SHA-256 of
// "sops". So the two kinds of MAC are always different.
var seedOfPartial = []byte{
	0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b,
	0x0b, 0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
}

// code is the message authentication code of a file: SHA-512 of its values, in order, encrypted with the data
// key and bound to the time of the last change.
type code struct {
	meta *metadata
	sum  hash.Hash
}

func newMAC(m *metadata) *code {
	c := &code{meta: m, sum: sha512.New()}
	if m.MACOnlyEncrypted {
		c.sum.Write(seedOfPartial)
	}
	return c
}

func (c *code) add(v *value, encrypted bool) error {
	if _, isRemark := v.typed.(remark); isRemark || c.meta.MACOnlyEncrypted && !encrypted {
		return nil
	}
	text, err := textOf(v.typed)
	if err != nil {
		return &lineError{v.line, err.Error()}
	}
	c.sum.Write([]byte(text))
	return nil
}

// verify checks that the file's code matches the values that were added. The error contains no secret.
func (c *code) verify(key []byte) error {
	if c.meta.MAC == "" {
		return errors.New("it has no message authentication code")
	}
	modified, err := time.Parse(time.RFC3339, c.meta.LastModified)
	if err != nil {
		return errors.New("sops.lastmodified is not a time")
	}
	want, err := unseal(c.meta.MAC, key, modified.Format(time.RFC3339))
	if err != nil {
		return errors.New("its message authentication code does not decrypt")
	}
	if got := fmt.Sprintf("%X", c.sum.Sum(nil)); subtle.ConstantTimeCompare([]byte(got), []byte(fmt.Sprint(want))) != 1 {
		return errors.New("its message authentication code is that of another content")
	}
	return nil
}

// comments decrypts comments. Each comment is bound to the path of the collection that contains it, so
// comments tries all paths.
type comments struct {
	doc   document
	key   []byte
	paths []string // nil before the first comment
	tries int      // the remaining tries
}

// commentTries bounds the tries for one file.
const commentTries = 20_000

func (c *comments) learnPaths() {
	seen := map[string]bool{":": true}
	// The previous walk would have returned the same error.
	_ = c.doc.walk(func(path []string, _ *value) error {
		for n := len(path); n > 0; n-- {
			seen[additional(path[:n])] = true
		}
		return nil
	})
	c.paths = slices.Sorted(maps.Keys(seen))
}

// open returns the text of a comment. ok is false if the comment cannot be decrypted; it is then removed.
func (c *comments) open(text string) (string, bool) {
	if c.paths == nil {
		c.learnPaths()
	}
	for _, aad := range c.paths {
		if c.tries--; c.tries < 0 {
			break
		}
		if plain, err := unseal(text, c.key, aad); err == nil {
			out, ok := plain.(remark)
			return string(out), ok && !strings.Contains(string(out), "\n")
		}
	}
	return "", false
}

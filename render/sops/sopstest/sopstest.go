// Package sopstest encrypts small files like SOPS does, for the tests of other packages. It makes the keys in
// the test, so that no key is stored anywhere.
package sopstest

import (
	"bytes"
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// modified is the time of the last change in all files.
const modified = "2026-01-02T03:04:05Z"

// Key encrypts the data keys of files.
type Key struct {
	// Identity is the text of an age identity file, for an age key.
	Identity string

	kind  string
	entry func(dataKey []byte) [][2]string
}

// Age returns a new age key.
func Age(t testing.TB) Key {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return Key{Identity: id.String() + "\n", kind: "age", entry: func(dataKey []byte) [][2]string {
		var b bytes.Buffer
		a := armor.NewWriter(&b)
		w, err := age.Encrypt(a, id.Recipient())
		if err == nil {
			_, err = w.Write(dataKey)
		}
		for _, close := range []func() error{w.Close, a.Close} {
			if err == nil {
				err = close()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return [][2]string{{"recipient", id.Recipient().String()}, {"enc", b.String()}}
	}}
}

// KMS returns a key of AWS KMS. encrypt encrypts with it.
func KMS(arn string, encrypt func(dataKey []byte) []byte) Key {
	return Key{kind: "kms", entry: func(dataKey []byte) [][2]string {
		return [][2]string{{"arn", arn}, {"enc", base64.StdEncoding.EncodeToString(encrypt(dataKey))}, {"aws_profile", ""}}
	}}
}

// IdentityFile writes the identity of an age key to a file and returns its name.
func (k Key) IdentityFile(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "age-key.txt")
	if err := os.WriteFile(name, []byte(k.Identity), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Field is a value at a path. If Plain is true, it is not encrypted.
type Field struct {
	// Path has dots between its elements. The element [] adds a new item to a list.
	Path  string
	Value string
	Plain bool
	// Type is SOPS's name for the value's type: int, float, or bool, whose values are True and False. It is
	// empty for a string.
	Type string
}

// file is a file during encryption.
type file struct {
	t    testing.TB
	key  []byte
	sums strings.Builder
}

func newFile(t testing.TB) *file {
	f := &file{t: t, key: make([]byte, 32)}
	_, _ = rand.Read(f.key) // never fails
	return f
}

func (f *file) seal(text, kind, aad string) string {
	block, err := aes.NewCipher(f.key)
	if err != nil {
		f.t.Fatal(err)
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, 32)
	if err != nil {
		f.t.Fatal(err)
	}
	nonce := make([]byte, 32)
	_, _ = rand.Read(nonce) // never fails
	out := gcm.Seal(nil, nonce, []byte(text), []byte(aad))
	at := len(out) - aes.BlockSize
	enc := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", enc(out[:at]), enc(nonce), enc(out[at:]), cmp.Or(kind, "str"))
}

// value adds a value to the MAC and returns its form in the file.
func (f *file) value(path []string, v Field) string {
	f.sums.WriteString(v.Value)
	if v.Plain {
		return v.Value
	}
	named := slices.DeleteFunc(slices.Clone(path), func(elem string) bool { return elem == "[]" })
	return f.seal(v.Value, v.Type, strings.Join(named, ":")+":")
}

func (f *file) mac() string {
	return f.seal(fmt.Sprintf("%X", sha512.Sum512([]byte(f.sums.String()))), "", modified)
}

// YAML encrypts a YAML file of strings. Fields with the same first element must be consecutive, and either
// all or none of them are plain.
func YAML(t testing.TB, k Key, fields ...Field) string {
	t.Helper()
	f := newFile(t)
	var b strings.Builder
	var open []string
	plain := map[string]bool{}
	for _, v := range fields {
		path := strings.Split(v.Path, ".")
		same := 0
		for same < len(path)-1 && same < len(open) && path[same] == open[same] {
			same++
		}
		item := ""
		for i := same; i < len(path); i++ {
			switch indent := strings.Repeat("    ", i); {
			case path[i] == "[]":
				item = indent[4:] + "  - "
				continue
			case item != "":
				b.WriteString(item + path[i] + ":")
			default:
				b.WriteString(indent + path[i] + ":")
			}
			if item = ""; i < len(path)-1 {
				b.WriteByte('\n')
			}
		}
		if open = path[:len(path)-1]; item != "" {
			b.WriteString(item)
		}
		fmt.Fprintf(&b, " %q\n", f.value(path, v))
		if v.Plain {
			plain[path[0]] = true
		}
	}
	fmt.Fprintf(&b, "sops:\n    %s:\n", k.kind)
	for i, e := range k.entry(f.key) {
		fmt.Fprintf(&b, "%s%s: %q\n", []string{"        - ", "          "}[min(i, 1)], e[0], e[1])
	}
	fmt.Fprintf(&b, "    lastmodified: %q\n    mac: %s\n", modified, f.mac())
	if len(plain) > 0 {
		var names []string
		for name := range plain {
			names = append(names, name)
		}
		fmt.Fprintf(&b, "    unencrypted_regex: ^(%s)$\n", strings.Join(names, "|"))
	}
	b.WriteString("    version: 3.9.0\n")
	return b.String()
}

// Secret encrypts a Kubernetes Secret with one value.
func Secret(t testing.TB, k Key, name, key, value string) string {
	t.Helper()
	return YAML(t, k, Field{Path: "apiVersion", Value: "v1", Plain: true}, Field{Path: "kind", Value: "Secret", Plain: true}, Field{Path: "metadata.name", Value: name, Plain: true}, Field{Path: "stringData." + key, Value: value})
}

// Dotenv encrypts a file with lines KEY=VALUE.
func Dotenv(t testing.TB, k Key, fields ...Field) string {
	t.Helper()
	f := newFile(t)
	var b strings.Builder
	for _, v := range fields {
		fmt.Fprintf(&b, "%s=%s\n", v.Path, f.value([]string{v.Path}, v))
	}
	for _, e := range k.entry(f.key) {
		fmt.Fprintf(&b, "sops_%s__list_0__map_%s=%s\n", k.kind, e[0], strings.ReplaceAll(e[1], "\n", `\n`))
	}
	fmt.Fprintf(&b, "sops_lastmodified=%s\nsops_mac=%s\nsops_version=3.9.0\n", modified, f.mac())
	return b.String()
}

// Binary encrypts a file of any content.
func Binary(t testing.TB, k Key, content string) string {
	t.Helper()
	f := newFile(t)
	data := f.value([]string{"data"}, Field{Value: content})
	entry := map[string]string{}
	for _, e := range k.entry(f.key) {
		entry[e[0]] = e[1]
	}
	out, err := json.MarshalIndent(map[string]any{
		"data": data,
		"sops": map[string]any{k.kind: []any{entry}, "lastmodified": modified, "mac": f.mac(), "version": "3.9.0"},
	}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

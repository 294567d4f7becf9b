// Package sops decrypts files that SOPS has encrypted, in memory.
//
// It reads the formats that kustomize's resources and generators use: YAML, JSON, dotenv and binary. Data
// keys may be encrypted for age recipients and with AWS KMS, also in key groups with a threshold. The message
// authentication code is always verified. Roles, profiles, contexts of the program and other key services in
// a file are ignored, because keys come only from the options. It encrypts only one kind of file: a Secret
// that weir itself has made (SealSecret).
//
// The SOPS library is not used, for two reasons. It includes the clients of every key service
// that it supports: 800 packages with gRPC and four more clouds, in a process that may write to AWS. It also
// rewrites the YAML, so faults and origins could not name a line of the file. weir uses only the part of the
// library that joins a split data key. Test vectors from the library check that everything else follows the
// format.
package sops

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"filippo.io/age"

	"github.com/weir-gitops/weir/render/diag"
)

// KMS decrypts with AWS KMS.
type KMS interface {
	// Decrypt decrypts data that the key of the given ARN has encrypted with an encryption context. The text
	// of an error contains advice.
	Decrypt(ctx context.Context, keyARN string, blob []byte, encryptionContext map[string]string) ([]byte, error)
}

// Options of a Decrypter. The zero value has no keys.
type Options struct {
	// Identities are the age identities for decryption; see ParseIdentities.
	Identities []age.Identity
	// KMSKeyARNs lists the keys that may be used. Other keys in a file are not used.
	KMSKeyARNs []string
	// KMS decrypts with these keys.
	KMS KMS
	// Placeholders makes a file that cannot be decrypted readable: each of its values is a placeholder, and a
	// warning replaces the error.
	Placeholders bool
	// Now returns the time. It decides how long an error of KMS is cached. Nil means time.Now.
	Now func() time.Time
}

// Decrypter decrypts files. It caches data keys, so a file that is read again needs no request. It is safe
// for concurrent use. A nil Decrypter has no keys and refuses every encrypted file.
type Decrypter struct {
	o Options

	mu   sync.Mutex
	keys map[string]dataKey // by the encrypted data keys
}

// dataKey is the result of decrypting a data key.
type dataKey struct {
	key   []byte
	err   error
	until time.Time // an error expires then
}

// refusalKept is the time for which an error of KMS is cached. A daemon with a pass every second must not
// send a request every second.
const refusalKept = 30 * time.Second

// keptKeys bounds the cached data keys.
const keptKeys = 10_000

// New returns a Decrypter.
func New(o Options) *Decrypter {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Decrypter{o: o, keys: map[string]dataKey{}}
}

// ParseIdentities parses a file of age identities: lines AGE-SECRET-KEY-1…, and blank lines and comments. Its
// error does not quote the text.
func ParseIdentities(text string) ([]age.Identity, error) {
	ids, err := age.ParseIdentities(strings.NewReader(text))
	if err != nil {
		return nil, errors.New("the text holds no age identities: want lines that start with AGE-SECRET-KEY-1")
	}
	return ids, nil
}

// File is a decrypted file.
type File struct {
	// Content is the plain text. Every line of a YAML file has the same number as in the encrypted file.
	Content []byte
	// Secrets are the decrypted values.
	Secrets []string
	// Faults are the reasons why the file could not be decrypted. Content then has placeholders.
	Faults diag.List
	// Placeholders is true if Content has placeholders.
	Placeholders bool
	// Retry is true if a later attempt may succeed although the file does not change.
	Retry bool

	doc      document          // the document that Content was decrypted from
	comments map[string]string // plain texts, by encrypted text
}

// marker is in every file that SOPS has encrypted.
const marker = "ENC[AES256_GCM,"

// MayBe reports whether SOPS can have encrypted a file: it contains the start of an encrypted value.
func MayBe(content []byte) bool { return bytes.Contains(content, []byte(marker)) }

// Mentioned reports whether a text contains a value that SOPS has encrypted, unchanged or in base64.
func Mentioned(text string) bool {
	if strings.Contains(text, marker) {
		return true
	}
	for _, form := range markerForms {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// markerForms has marker in base64, at each of the three alignments, without the characters that contain bits
// of the surrounding text.
var markerForms = func() (out []string) {
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), marker...))
		out = append(out, text[[]int{0, 2, 3}[before]:(before+len(marker))*8/6])
	}
	return out
}()

// Encrypted reports whether SOPS has encrypted a file.
func Encrypted(path string, content []byte) bool {
	if !bytes.Contains(content, []byte(marker)) {
		return false
	}
	_, err := load(path, content)
	return !errors.Is(err, errPlain)
}

// errPlain means that a file is not encrypted.
var errPlain = errors.New("the file has no SOPS metadata")

// document is a parsed encrypted file.
type document interface {
	// metadata returns the file's metadata.
	metadata() *metadata
	// walk visits every value in the order of the MAC, and may change it.
	walk(visit func(path []string, v *value) error) error
	// plain returns the file without its metadata.
	plain(comment func(text string) (string, bool)) ([]byte, error)
	// standIns is like plain, with stand-ins in place of secret texts.
	standIns(standIn func(Sealed) string, comment func(text string) (string, bool)) ([]byte, error)
}

// value is a value of a document.
type value struct {
	// typed is the value: string, int, float64, bool or time.Time.
	typed any
	line  int
	// open is true if the value is not secret although it was encrypted, such as the kind of an object.
	open bool
}

// Open decrypts a file of a tree. ok is false if the file is not encrypted. If it cannot be decrypted, the
// File has the faults, and its values are placeholders. A nil Decrypter has no keys.
func (d *Decrypter) Open(ctx context.Context, path string, content []byte) (f File, ok bool) {
	if !MayBe(content) {
		return File{}, false
	}
	if d == nil {
		d = New(Options{})
	}
	doc, err := load(path, content)
	switch {
	case errors.Is(err, errPlain):
		return File{}, false
	case err != nil:
		at := diag.Position{File: path}
		var lineErr *lineError
		if errors.As(err, &lineErr) {
			at.Line = lineErr.line
		}
		return File{Faults: diag.List{fault(at, "sops-invalid", "the file is not as SOPS writes it: "+err.Error(), "Encrypt it again with sops.")}, Placeholders: true}, true
	}
	meta := doc.metadata()
	at := diag.Position{File: path, Line: meta.line}
	key, retry, problem := d.dataKey(ctx, meta, at)
	if problem != nil {
		f := File{Faults: diag.List{*problem}, Retry: retry}
		if d.o.Placeholders && problem.Code == codeNoKey {
			f.Faults = diag.List{encryptedRemark(at, meta)}
		}
		return f.placeholders(doc), true
	}
	f = decrypt(doc, key, at)
	if f.Content == nil {
		if doc, err = load(path, content); err == nil {
			f = f.placeholders(doc)
		}
	}
	return f, true
}

// placeholders returns a file that cannot be decrypted with placeholders as values.
func (f File) placeholders(doc document) File {
	f.Placeholders = true
	err := doc.walk(func(_ []string, v *value) error {
		if text, ok := v.typed.(string); ok && strings.HasPrefix(text, marker) {
			v.typed = placeholderFor(text)
		}
		return nil
	})
	if err == nil {
		f.Content, err = doc.plain(func(string) (string, bool) { return "", false })
	}
	if err != nil {
		f.Content = nil
	}
	return f
}

// placeholder replaces a string. It is base64 of "placeholder!", so that it is also valid in the data of a
// Secret.
const placeholder = "cGxhY2Vob2xkZXIh"

func placeholderFor(encrypted string) any {
	switch _, kind, _ := strings.Cut(strings.TrimSuffix(encrypted, "]"), ",type:"); kind {
	case "int":
		return 0
	case "float":
		return 0.5
	case "bool":
		return false
	}
	return placeholder
}

// decrypt decrypts every value and verifies the MAC. at is the position of the metadata, for faults. With a
// fault, the File has no content.
func decrypt(doc document, key []byte, at diag.Position) File {
	meta := doc.metadata()
	var f File
	var secrets []string
	mac := newMAC(meta)
	err := doc.walk(func(path []string, v *value) error {
		encrypted := meta.encrypts(path, v.typed)
		if encrypted {
			text, ok := v.typed.(string)
			if !ok {
				return &lineError{v.line, fmt.Sprintf("the value at %s is not encrypted, and should be", strings.Join(path, "."))}
			}
			plain, err := unseal(text, key, additional(path))
			if err != nil {
				return &lineError{v.line, fmt.Sprintf("the value at %s %s", strings.Join(path, "."), err)}
			}
			v.typed = plain
			if !v.open {
				secrets = append(secrets, secretsOf(plain)...)
			}
		}
		return mac.add(v, encrypted)
	})
	if err != nil {
		var lineErr *lineError
		if errors.As(err, &lineErr) {
			at.Line = lineErr.line
		}
		f.Faults = diag.List{fault(at, "sops-invalid", "the file cannot be decrypted: "+err.Error(), "Somebody changed it after sops had encrypted it; take it from an earlier commit, or encrypt it again.")}
		f.Placeholders = true
		return f
	}
	if err := mac.verify(key); err != nil {
		at.Line = meta.macLine
		f.Faults = diag.List{fault(at, "sops-mac-mismatch", "the file was changed after it was encrypted: "+err.Error(),
			"Values, keys or their order are not what sops has signed. Take the file from an earlier commit, or encrypt it again.")}
		f.Placeholders = true
		return f
	}
	slices.Sort(secrets)
	f.Secrets = slices.Compact(secrets)
	opener, comment := &comments{doc: doc, key: key, tries: commentTries}, map[string]string{}
	f.Content, err = doc.plain(func(sealed string) (string, bool) {
		text, ok := opener.open(sealed)
		if ok {
			comment[sealed] = text
		}
		return text, ok
	})
	if err != nil {
		f.Faults = diag.List{fault(at, "sops-invalid", "the decrypted file cannot be written: "+err.Error(), "")}
		f.Content, f.Placeholders = nil, true
		return f
	}
	f.doc, f.comments = doc, comment
	return f
}

// lineError is an error with a line number.
type lineError struct {
	line int
	text string
}

// Error implements error.
func (p *lineError) Error() string { return p.text }

func fault(at diag.Position, code, summary, detail string) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Error, Code: code, Position: at, Summary: summary, Detail: detail}
}

package sops

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"go.yaml.in/yaml/v3"
)

// Sealer encrypts with AWS KMS.
type Sealer interface {
	// Encrypt encrypts with the key of the given ARN and an encryption context. The text of an error
	// contains advice.
	Encrypt(ctx context.Context, keyARN string, plain []byte, encryptionContext map[string]string) ([]byte, error)
}

// Recipients are the keys that can decrypt a file. Each of them is sufficient.
type Recipients struct {
	// Age has age recipients, age1….
	Age []string
	// KMSKeyARNs are keys of AWS KMS. KMS encrypts with them.
	KMSKeyARNs []string
	KMS        Sealer
}

// None reports whether no recipient is set.
func (r Recipients) None() bool { return len(r.Age)+len(r.KMSKeyARNs) == 0 }

// ParseRecipient returns an error if text is not an age recipient.
func ParseRecipient(text string) error {
	if _, err := age.ParseX25519Recipient(text); err != nil {
		return errors.New("it is not an age recipient: want one that starts with age1, as age-keygen prints it")
	}
	return nil
}

// hidden is the rule for the encrypted fields of a Secret that SOPS users commonly write.
const hidden = "^(data|stringData)$"

// encryptedWith is the SOPS version whose format is written.
const encryptedWith = "3.9.0"

// SealSecret writes a Kubernetes Secret encrypted like SOPS does. The values under data, which are base64,
// are encrypted. Name and kind stay readable. keys are the keys of values, in order.
func SealSecret(ctx context.Context, now time.Time, name string, keys []string, values map[string]string, to Recipients) ([]byte, error) {
	if to.None() {
		return nil, errors.New("encrypt a Secret: there is no key")
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	modified := now.UTC().Format(time.RFC3339)
	sum := sha512.New()
	text := func(v string) *yaml.Node {
		sum.Write([]byte(v))
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
	}
	doc, data := mapping(), mapping()
	put(doc, "apiVersion", text("v1"))
	put(doc, "kind", text("Secret"))
	meta := mapping()
	put(meta, "name", text(name))
	put(doc, "metadata", meta)
	for _, k := range keys {
		value := base64.StdEncoding.EncodeToString([]byte(values[k]))
		sum.Write([]byte(value))
		put(data, k, plainText(seal(value, key, additional([]string{"data", k}))))
	}
	put(doc, "data", data)
	about, err := to.entries(ctx, key, modified)
	if err != nil {
		return nil, err
	}
	put(about, "lastmodified", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: modified})
	put(about, "mac", plainText(seal(fmt.Sprintf("%X", sum.Sum(nil)), key, modified)))
	put(about, "encrypted_regex", plainText(hidden))
	put(about, "version", plainText(encryptedWith))
	put(doc, "sops", about)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(4)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("encrypt a Secret: %w", err)
	}
	return out.Bytes(), nil
}

// entries returns the data key, encrypted for each recipient, in the form of SOPS's metadata. made is the
// time of creation.
func (r Recipients) entries(ctx context.Context, key []byte, made string) (*yaml.Node, error) {
	out := mapping()
	if len(r.KMSKeyARNs) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, arn := range r.KMSKeyARNs {
			blob, err := r.KMS.Encrypt(ctx, arn, key, nil)
			if err != nil {
				return nil, fmt.Errorf("encrypt for %s: %w", arn, err)
			}
			entry := mapping()
			put(entry, "arn", plainText(arn))
			put(entry, "created_at", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: made})
			put(entry, "enc", plainText(base64.StdEncoding.EncodeToString(blob)))
			put(entry, "aws_profile", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle})
			list.Content = append(list.Content, entry)
		}
		put(out, "kms", list)
	}
	if len(r.Age) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, recipient := range r.Age {
			enc, err := sealAge(recipient, key)
			if err != nil {
				return nil, err
			}
			entry := mapping()
			put(entry, "recipient", plainText(recipient))
			put(entry, "enc", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: enc})
			list.Content = append(list.Content, entry)
		}
		put(out, "age", list)
	}
	return out, nil
}

// sealAge encrypts a data key for an age recipient, in the armored form that SOPS stores.
func sealAge(recipient string, key []byte) (string, error) {
	to, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		return "", ParseRecipient(recipient)
	}
	var out strings.Builder
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, to)
	if err == nil {
		_, err = w.Write(key)
	}
	if err == nil {
		err = errors.Join(w.Close(), a.Close())
	}
	if err != nil {
		return "", fmt.Errorf("encrypt for %s: %w", recipient, err)
	}
	return out.String(), nil
}

// seal encrypts a string; unseal reverses it. An empty string is not encrypted.
func seal(text string, key []byte, aad string) string {
	if text == "" {
		return ""
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("sops: " + err.Error()) // the key has keySize bytes
	}
	nonce := make([]byte, keySize)
	if _, err = io.ReadFull(rand.Reader, nonce); err != nil {
		panic("sops: " + err.Error()) // it never fails
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, len(nonce))
	if err != nil {
		panic("sops: " + err.Error()) // the size is valid
	}
	sealed := gcm.Seal(nil, nonce, []byte(text), []byte(aad))
	at := len(sealed) - gcm.Overhead()
	enc := base64.StdEncoding.EncodeToString
	return marker + "data:" + enc(sealed[:at]) + ",iv:" + enc(nonce) + ",tag:" + enc(sealed[at:]) + ",type:str]"
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func plainText(v string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v} }

func put(of *yaml.Node, key string, v *yaml.Node) {
	of.Content = append(of.Content, plainText(key), v)
}

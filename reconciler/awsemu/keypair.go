package awsemu

import (
	"crypto/md5" //nolint:gosec // EC2's fingerprint of an RSA key
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// keyPair is the public half of a key that machines let in.
type keyPair struct {
	ID          string
	Name        string
	Type        string // rsa or ed25519
	Fingerprint string
	Created     time.Time
	Tags        tags
}

// keyByName finds a key pair, nil for none.
func (r *region) keyByName(name string) *keyPair {
	for _, id := range r.EC2.KeyPairs.sorted() {
		if k := r.EC2.KeyPairs.get(id); k.Name == name {
			return k
		}
	}
	return nil
}

func keyNotFound(name string) *apiError {
	return fail("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", name)
}

type importKeyInput struct {
	name, material string
	tags           tags
}

func parseImportKeyPair(p *params) importKeyInput {
	return importKeyInput{name: p.text("KeyName"), material: p.text("PublicKeyMaterial"), tags: parseTagSpecifications(p, "key-pair")}
}

func importKeyPair(rq *request, in importKeyInput) error {
	r := rq.region
	if len(in.name) > 255 {
		return fail("InvalidParameterValue", "Value (%s) for parameter KeyName is invalid. The key name must have at most 255 characters.", in.name)
	}
	if r.keyByName(in.name) != nil {
		return fail("InvalidKeyPair.Duplicate", "The keypair already exists")
	}
	text, err := base64.StdEncoding.DecodeString(in.material)
	if err != nil {
		return fail("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	}
	kind, fingerprint, err := readPublicKey(string(text))
	if err != nil {
		return fail("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	}
	k := &keyPair{ID: r.newID("key"), Name: in.name, Type: kind, Fingerprint: fingerprint, Created: r.now(), Tags: in.tags}
	r.EC2.KeyPairs.put(k.ID, k)
	rq.xml.text("keyName", k.Name)
	rq.xml.text("keyFingerprint", k.Fingerprint)
	rq.xml.text("keyPairId", k.ID)
	rq.xml.writeTags(k.Tags)
	return nil
}

// readPublicKey tells the type of an OpenSSH public key and EC2's fingerprint of it:
// MD5 over an RSA key in DER, SHA-256 over an Ed25519 key as SSH writes it.
func readPublicKey(text string) (kind, fingerprint string, err error) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return "", "", errors.New("no OpenSSH public key")
	}
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return "", "", errors.New("no OpenSSH public key")
	}
	var parts [][]byte
	for rest := blob; len(rest) > 0; {
		if len(rest) < 4 || uint64(binary.BigEndian.Uint32(rest)) > uint64(len(rest)-4) {
			return "", "", errors.New("a public key that is cut")
		}
		n := 4 + int(binary.BigEndian.Uint32(rest))
		parts, rest = append(parts, rest[4:n]), rest[n:]
	}
	switch {
	case len(parts) == 2 && string(parts[0]) == "ssh-ed25519" && len(parts[1]) == 32:
		sum := sha256.Sum256(blob)
		return "ed25519", base64.StdEncoding.EncodeToString(sum[:]), nil
	case len(parts) == 3 && string(parts[0]) == "ssh-rsa":
		e := new(big.Int).SetBytes(parts[1])
		if !e.IsInt64() || e.Int64() > 1<<31-1 || len(parts[2]) > 1<<11 {
			break
		}
		der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: new(big.Int).SetBytes(parts[2]), E: int(e.Int64())})
		if err != nil {
			break
		}
		sum := md5.Sum(der) //nolint:gosec // as above
		return "rsa", strings.ReplaceAll(fmt.Sprintf("% x", sum[:]), " ", ":"), nil
	}
	return "", "", errors.New("a public key of another type")
}

type describeKeysInput struct {
	describe
	names []string
}

func parseDescribeKeyPairs(p *params) describeKeysInput {
	p.boolean("IncludePublicKey") // the emulator keeps fingerprints only
	return describeKeysInput{describe: describe{ids: p.strings("KeyPairId"), filters: parseFilters(p)}, names: p.strings("KeyName")}
}

func describeKeyPairs(rq *request, in describeKeysInput) error {
	r := rq.region
	for _, name := range in.names {
		k := r.keyByName(name)
		if k == nil {
			return keyNotFound(name)
		}
		in.ids = append(in.ids, k.ID)
	}
	match, err := matcher(in.filters, attributes[*keyPair]{
		"key-name":    one(func(k *keyPair) string { return k.Name }),
		"key-pair-id": one(func(k *keyPair) string { return k.ID }),
		"fingerprint": one(func(k *keyPair) string { return k.Fingerprint }),
	}, func(k *keyPair) tags { return k.Tags })
	if err != nil {
		return err
	}
	missing := func(id string) *apiError {
		return fail("InvalidKeyPair.NotFound", "The key pair ID '%s' does not exist", id)
	}
	return runDescribe(rq, in.describe, &r.EC2.KeyPairs, match, missing, "keySet", func(k *keyPair) {
		w := &rq.xml
		w.text("keyPairId", k.ID)
		w.text("keyName", k.Name)
		w.text("keyType", k.Type)
		w.text("keyFingerprint", k.Fingerprint)
		w.time("createTime", k.Created)
		w.writeTags(k.Tags)
	})
}

type deleteKeyInput struct{ name, id string }

func parseDeleteKeyPair(p *params) deleteKeyInput {
	in := deleteKeyInput{name: p.text("KeyName"), id: p.text("KeyPairId")}
	if in.name == "" && in.id == "" {
		p.reject(fail("MissingParameter", "The request must contain the parameter KeyName or KeyPairId"))
	}
	return in
}

// deleteKeyPair ends well where there is none, as EC2 does.
func deleteKeyPair(rq *request, in deleteKeyInput) error {
	r := rq.region
	if k := r.keyByName(in.name); k != nil {
		in.id = k.ID
	}
	r.EC2.KeyPairs.remove(in.id)
	rq.xml.boolean("return", true)
	rq.xml.optional("keyPairId", in.id)
	return nil
}

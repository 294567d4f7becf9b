package ec2

import (
	"bytes"
	"crypto/ed25519"
	"crypto/md5" //nolint:gosec // EC2's fingerprint of an RSA key
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // EC2's fingerprint of an RSA key that it made
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// KeyPair is the public half of a key for access to machines.
type KeyPair struct {
	ID          string
	Name        string
	Type        string // rsa or ed25519
	Fingerprint string
	Created     time.Time
	Tags        world.Tags
}

// KeyByName finds a key pair, or returns nil.
func (r *Region) KeyByName(name string) *KeyPair {
	for _, id := range r.KeyPairs.Sorted() {
		if k := r.KeyPairs.Get(id); k.Name == name {
			return k
		}
	}
	return nil
}

func keyNotFound(name string) *wire.Error {
	return wire.Fail("InvalidKeyPair.NotFound", "The key pair '%s' does not exist", name)
}

type importKeyInput struct {
	KeyName, PublicKeyMaterial string
	tagSpecifications
}

func (in *importKeyInput) Check() error {
	if err := checkKeyName(in.KeyName); err != nil {
		return err
	}
	return in.read("key-pair")
}

func importKeyPair(rq *request, in importKeyInput) error {
	r := rq.Region
	if r.KeyByName(in.KeyName) != nil {
		return wire.Fail("InvalidKeyPair.Duplicate", "The keypair already exists")
	}
	text, err := base64.StdEncoding.DecodeString(in.PublicKeyMaterial)
	if err != nil {
		return wire.Fail("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	}
	kind, fingerprint, err := readPublicKey(string(text))
	if err != nil {
		return wire.Fail("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
	}
	k := &KeyPair{ID: r.NewID("key"), Name: in.KeyName, Type: kind, Fingerprint: fingerprint, Created: r.Now(), Tags: in.tags}
	r.KeyPairs.Put(k.ID, k)
	rq.XML.Text("keyName", k.Name)
	rq.XML.Text("keyFingerprint", k.Fingerprint)
	rq.XML.Text("keyPairId", k.ID)
	rq.XML.WriteTags(k.Tags)
	return nil
}

// readPublicKey returns the type of an OpenSSH public key and EC2's fingerprint of it: MD5 over an RSA key
// in DER, SHA-256 over an Ed25519 key in SSH format.
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
	Filters          []filter
	KeyNames         []string
	KeyPairIDs       []string
	IncludePublicKey bool // the emulator stores only fingerprints
}

func (in *describeKeysInput) Check() error { return checkFilters(in.Filters) }

func describeKeyPairs(rq *request, in describeKeysInput) error {
	r := rq.Region
	for _, name := range in.KeyNames {
		k := r.KeyByName(name)
		if k == nil {
			return keyNotFound(name)
		}
		in.KeyPairIDs = append(in.KeyPairIDs, k.ID)
	}
	match, err := matcher(in.Filters, attributes[*KeyPair]{
		"key-name":    one(func(k *KeyPair) string { return k.Name }),
		"key-pair-id": one(func(k *KeyPair) string { return k.ID }),
		"fingerprint": one(func(k *KeyPair) string { return k.Fingerprint }),
	}, func(k *KeyPair) world.Tags { return k.Tags })
	if err != nil {
		return err
	}
	missing := func(id string) *wire.Error {
		return wire.Fail("InvalidKeyPair.NotFound", "The key pair ID '%s' does not exist", id)
	}
	return runDescribe(rq, describe{}, in.KeyPairIDs, &r.KeyPairs, match, missing, "keySet", func(k *KeyPair) {
		w := &rq.XML
		w.Text("keyPairId", k.ID)
		w.Text("keyName", k.Name)
		w.Text("keyType", k.Type)
		w.Text("keyFingerprint", k.Fingerprint)
		w.Time("createTime", k.Created)
		w.WriteTags(k.Tags)
	})
}

type deleteKeyInput struct{ KeyName, KeyPairID string }

func (in *deleteKeyInput) Check() error {
	if in.KeyName == "" && in.KeyPairID == "" {
		return wire.Fail("MissingParameter", "The request must contain the parameter KeyName or KeyPairId")
	}
	return nil
}

// deleteKeyPair succeeds if the key pair does not exist, like EC2.
func deleteKeyPair(rq *request, in deleteKeyInput) error {
	r := rq.Region
	if k := r.KeyByName(in.KeyName); k != nil {
		in.KeyPairID = k.ID
	}
	r.KeyPairs.Remove(in.KeyPairID)
	rq.XML.Boolean("return", true)
	rq.XML.Optional("keyPairId", in.KeyPairID)
	return nil
}

type createKeyInput struct {
	KeyName, KeyType, KeyFormat string
	tagSpecifications
}

func (in *createKeyInput) Check() error {
	if in.KeyFormat == "ppk" { // AWS also supports PuTTY's format
		return badValue("KeyFormat", in.KeyFormat, "Member must satisfy enum value set: [pem]")
	}
	if err := checkKeyName(in.KeyName); err != nil {
		return err
	}
	return in.read("key-pair")
}

func checkKeyName(name string) error {
	if len(name) > 255 {
		return badValue("KeyName", name, "The key name must have at most 255 characters.")
	}
	return nil
}

// createKeyPair makes a key pair and returns its private half without storing it.
func createKeyPair(rq *request, in createKeyInput) error {
	r := rq.Region
	if r.KeyByName(in.KeyName) != nil {
		return wire.Fail("InvalidKeyPair.Duplicate", "The keypair already exists")
	}
	k := &KeyPair{ID: r.NewID("key"), Name: in.KeyName, Type: "rsa", Created: r.Now(), Tags: in.tags}
	var material []byte
	var err error
	if in.KeyType == "ed25519" {
		k.Type = in.KeyType
		k.Fingerprint, material, err = newEd25519(k.Name)
	} else {
		k.Fingerprint, material, err = newRSA()
	}
	if err != nil {
		return err
	}
	r.KeyPairs.Put(k.ID, k)
	rq.XML.Text("keyName", k.Name)
	rq.XML.Text("keyFingerprint", k.Fingerprint)
	rq.XML.Text("keyMaterial", string(material))
	rq.XML.Text("keyPairId", k.ID)
	rq.XML.WriteTags(k.Tags)
	return nil
}

// newRSA makes an RSA key. EC2's fingerprint of such a key is SHA-1 over the private key.
func newRSA() (fingerprint string, material []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", nil, err
	}
	sum := sha1.Sum(private) //nolint:gosec // as above
	return strings.ReplaceAll(fmt.Sprintf("% x", sum[:]), " ", ":"),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
}

// newEd25519 makes an Ed25519 key in OpenSSH's own format: a header, the public key, and the private one
// with two equal numbers, padded to blocks of eight.
func newEd25519(comment string) (fingerprint string, material []byte, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", nil, err
	}
	text := func(b []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	blob := text(text(nil, "ssh-ed25519"), string(public))
	check := make([]byte, 4)
	if _, err := rand.Read(check); err != nil {
		return "", nil, err
	}
	secret := append(bytes.Repeat(check, 2), blob...)
	secret = text(text(secret, string(private)), comment)
	for i := byte(1); len(secret)%8 != 0; i++ {
		secret = append(secret, i)
	}
	out := append([]byte("openssh-key-v1\x00"), text(text(text(nil, "none"), "none"), "")...)
	out = binary.BigEndian.AppendUint32(out, 1)
	out = text(text(out, string(blob)), string(secret))
	_, fingerprint, err = readPublicKey("ssh-ed25519 " + base64.StdEncoding.EncodeToString(blob))
	return fingerprint, pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: out}), err
}

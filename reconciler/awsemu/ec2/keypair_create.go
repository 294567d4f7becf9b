package ec2

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // EC2's fingerprint of an RSA key that it made
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

type createKeyInput struct {
	KeyName, KeyType, KeyFormat string
	tagSpecifications
}

func (in *createKeyInput) Check() error {
	if in.KeyFormat == "ppk" { // AWS writes PuTTY's format too
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

// createKeyPair makes a key pair and hands out its private half, which is kept nowhere.
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

// newRSA makes an RSA key. EC2's fingerprint of those that it makes is SHA-1 over the
// private key.
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

// newEd25519 makes an Ed25519 key, in OpenSSH's own format: a header, the public key,
// and beside it the private one with two equal numbers, padded to blocks of eight.
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

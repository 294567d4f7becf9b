package signature

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Constants of OpenSSH's PROTOCOL.sshsig.
const (
	sshsigMagic   = "SSHSIG"
	sshsigVersion = 1
	// gitNamespace distinguishes signatures of commits from signatures of mails and files.
	gitNamespace = "git"
	// dsaKey is a key type whose signatures use SHA-1.
	dsaKey = "ssh-dss"
)

// sshsig is the content of an SSH signature after the magic string.
type sshsig struct {
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	HashAlg   string
	Signature []byte
}

// sshsigSigned is the signed content after the magic string.
type sshsigSigned struct {
	Namespace string
	Reserved  string
	HashAlg   string
	Hash      []byte
}

// verifySSH verifies an SSH signature, and returns the name of the key and its principals. The key must be
// allowed at the time that the object names.
func (k *Keys) verifySSH(o Object) (string, error) {
	if len(k.ssh) == 0 {
		return "", errors.New("it is signed with SSH, and verify.ssh lists no signers")
	}
	if !strings.HasSuffix(o.Who, ">") {
		return "", errors.New("it does not say by whom and when it was made, which SSH signatures require")
	}
	key, err := checkSSH(o)
	if err != nil {
		return "", err
	}
	name := "SSH key " + ssh.FingerprintSHA256(key)
	principals, err := findPrincipals(k.ssh, key, o.When, time.Now())
	if err != nil {
		return "", fmt.Errorf("it is signed with %s, %w", name, err)
	}
	return name + " (" + principals + ")", nil
}

// checkSSH checks a signature against the key that it contains. It does not check whether that key may sign.
func checkSSH(o Object) (ssh.PublicKey, error) {
	unreadable := errors.New("its SSH signature cannot be read")
	data, err := unarmored(o.Signature, "SSH SIGNATURE", false)
	if err != nil {
		return nil, err
	}
	blob, ok := bytes.CutPrefix(data, []byte(sshsigMagic))
	if !ok {
		return nil, unreadable
	}
	var s sshsig
	if err := ssh.Unmarshal(blob, &s); err != nil || s.Version != sshsigVersion || s.Reserved != "" {
		return nil, unreadable
	}
	if s.Namespace != gitNamespace {
		return nil, fmt.Errorf("its SSH signature is for %q, not for Git", s.Namespace)
	}
	key, err := ssh.ParsePublicKey(s.PublicKey)
	if err != nil {
		return nil, unreadable
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal(s.Signature, &sig); err != nil {
		return nil, unreadable
	}
	name := ssh.FingerprintSHA256(key)
	if _, isCert := key.(*ssh.Certificate); isCert {
		return nil, errors.New("it is signed with an SSH certificate, which weir does not support: sign with a plain key, and add that key to the list of signers")
	}
	if sig.Format == ssh.KeyAlgoRSA || key.Type() == dsaKey {
		return nil, fmt.Errorf("its signature with SSH key %s uses SHA-1, which is no longer secure", name)
	}
	if err := touched(key, sig); err != nil {
		return nil, err
	}
	var sum []byte
	switch s.HashAlg {
	case "sha256":
		h := sha256.Sum256(o.Payload)
		sum = h[:]
	case "sha512":
		h := sha512.Sum512(o.Payload)
		sum = h[:]
	default:
		return nil, unreadable
	}
	signed := append([]byte(sshsigMagic), ssh.Marshal(sshsigSigned{s.Namespace, s.Reserved, s.HashAlg, sum})...)
	if err := key.Verify(signed, &sig); err != nil {
		return nil, fmt.Errorf("its signature with SSH key %s is wrong: the content is not what was signed", name)
	}
	return key, nil
}

// touched requires that a hardware key was touched. Signatures of other keys must have no additional data.
func touched(key ssh.PublicKey, sig ssh.Signature) error {
	if t := key.Type(); t != ssh.KeyAlgoSKED25519 && t != ssh.KeyAlgoSKECDSA256 {
		if len(sig.Rest) > 0 {
			return errors.New("its SSH signature cannot be read: more data follows it")
		}
		return nil
	}
	const userPresent = 1
	if len(sig.Rest) == 0 || sig.Rest[0]&userPresent == 0 {
		return errors.New("it is signed with a hardware key that nobody touched; touch the key when you sign, and do not use one made with no-touch-required")
	}
	return nil
}

// Package signature checks whether the holder of an allowed key signed a commit or tag of Git, with PGP or
// SSH.
//
// It works on the bytes of Git's objects, so that it checks exactly the signed bytes. The allowed signers are
// in files outside of all repositories. A commit could change a list in its own tree, and so choose the
// signers that check it.
package signature

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Mode defines which objects must be signed.
type Mode string

// Modes. The zero value requires no signature.
const (
	// Commit requires a signed commit.
	Commit Mode = "commit"
	// Tag requires a signed tag. The source's ref must then be a tag.
	Tag Mode = "tag"
	// Either requires a signed commit or a signed tag.
	Either Mode = "either"
)

// maxFileBytes bounds the size of a key file.
const maxFileBytes = 4 << 20

// Policy defines which signatures a revision needs. The zero value requires none.
type Policy struct {
	// Mode is commit (the default), tag or either. For tag, ref must name a tag.
	Mode Mode `yaml:"mode"`
	PGP  PGP  `yaml:"pgp"`
	SSH  SSH  `yaml:"ssh"`
}

// PGP holds the keys that may sign with PGP.
type PGP struct {
	// KeyFiles lists files with public keys, as gpg --export --armor writes them.
	KeyFiles []string `yaml:"keyFiles"`
}

// SSH holds the keys that may sign with SSH.
type SSH struct {
	// AllowedSignersFile is a file in the format of ssh-keygen's ALLOWED SIGNERS, as for Git's
	// gpg.ssh.allowedSignersFile. weir ignores lines with cert-authority.
	AllowedSignersFile string `yaml:"allowedSignersFile"`
}

// HasKeys reports whether the policy has any keys.
func (p Policy) HasKeys() bool { return len(p.PGP.KeyFiles) > 0 || p.SSH.AllowedSignersFile != "" }

// IsZero reports whether the policy requires no signature.
func (p Policy) IsZero() bool { return p.Mode == "" }

// Validate returns an error if the policy is invalid. It does not read files.
func (p Policy) Validate() error {
	switch {
	case p.Mode == "" && !p.HasKeys():
		return nil
	case p.Mode != Commit && p.Mode != Tag && p.Mode != Either:
		return fmt.Errorf("verify.mode %q must be %s, %s or %s", p.Mode, Commit, Tag, Either)
	case !p.HasKeys():
		return errors.New("verify needs pgp.keyFiles or ssh.allowedSignersFile, or no signature is accepted")
	}
	return nil
}

// Keys are the signers of a policy, as read from its files.
type Keys struct {
	pgp pgpKeys
	ssh []allowedSigner
}

// Load reads the files of a policy.
func (p Policy) Load() (*Keys, error) {
	k := &Keys{}
	for _, file := range p.PGP.KeyFiles {
		data, err := readKeys(file)
		if err != nil {
			return nil, fmt.Errorf("verify.pgp.keyFiles: %w", err)
		}
		if err := k.pgp.add(data); err != nil {
			return nil, fmt.Errorf("verify.pgp.keyFiles: %s: %w", file, err)
		}
	}
	if p.SSH.AllowedSignersFile != "" {
		data, err := readKeys(p.SSH.AllowedSignersFile)
		if err != nil {
			return nil, fmt.Errorf("verify.ssh.allowedSignersFile: %w", err)
		}
		if k.ssh, err = parseAllowedSigners(p.SSH.AllowedSignersFile, data, time.Local); err != nil {
			return nil, fmt.Errorf("verify.ssh.allowedSignersFile: %w", err)
		}
	}
	return k, nil
}

func readKeys(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", file, info.Size(), maxFileBytes)
	}
	return os.ReadFile(file)
}

// Verify checks the signature of an object. It returns a name of the key, as in "SSH key SHA256:…
// (alice@example.com)". The error has the reason why the signature is not accepted. again is true if the same
// object was accepted before.
func (k *Keys) Verify(o Object, again bool) (string, error) {
	switch text := string(o.Signature); {
	case text == "":
		return "", errors.New("it is not signed")
	case strings.HasPrefix(text, beginSSH):
		return k.verifySSH(o)
	case strings.HasPrefix(text, beginPGP), strings.HasPrefix(text, beginPGPMessage):
		return k.pgp.verify(o, time.Now(), again)
	default:
		return "", errors.New("it is signed with X.509, or in a form that is not known; sign with PGP or SSH")
	}
}

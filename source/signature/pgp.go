package signature

import (
	"bufio"
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// pgpKeys are the public keys of those who may sign.
type pgpKeys struct{ ring openpgp.EntityList }

// add takes the keys of a file, of all its armored blocks.
func (k *pgpKeys) add(data []byte) error {
	before := len(k.ring)
	if !bytes.Contains(data, []byte("-----BEGIN")) {
		ring, err := openpgp.ReadKeyRing(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("no public key that can be read; write one with gpg --export --armor: %w", err)
		}
		k.ring = append(k.ring, ring...)
	}
	// A reader that buffers enough is used as it is, so that the next block is
	// found where the one before ended.
	r := bufio.NewReaderSize(bytes.NewReader(data), 4096)
	for bytes.Contains(data, []byte("-----BEGIN")) {
		block, err := armor.Decode(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("no armored public key: %w", err)
		}
		if block.Type != openpgp.PublicKeyType {
			return fmt.Errorf("it holds a %s, and public keys are wanted; write one with gpg --export --armor", block.Type)
		}
		ring, err := openpgp.ReadKeyRing(block.Body)
		if err != nil {
			return fmt.Errorf("no public key that can be read: %w", err)
		}
		k.ring = append(k.ring, ring...)
	}
	if len(k.ring) == before {
		return errors.New("it holds no public key; write one with gpg --export --armor")
	}
	return nil
}

// verify checks a detached signature. A key counts if it has not expired, or had
// not when the signature was made: commits stay signed though their key ran out.
// A revoked key never counts, nor one that is taken out of the file.
func (k *pgpKeys) verify(o Object) (string, error) {
	if len(k.ring) == 0 {
		return "", errors.New("it is signed with PGP, and verify.pgp names no keys")
	}
	block, err := armor.Decode(bytes.NewReader(o.Signature))
	if err != nil || block.Type != openpgp.SignatureType {
		return "", errors.New("its PGP signature cannot be read")
	}
	data, err := io.ReadAll(io.LimitReader(block.Body, maxFileBytes))
	if err != nil {
		return "", errors.New("its PGP signature cannot be read")
	}
	key, made, err := describePGP(data)
	if err != nil {
		return "", err
	}
	check := func(at time.Time) (*openpgp.Entity, error) {
		return openpgp.CheckDetachedSignature(&k.ring, bytes.NewReader(o.Payload), bytes.NewReader(data), &packet.Config{Time: func() time.Time { return at }})
	}
	entity, err := check(time.Now())
	if errors.Is(err, pgperrors.ErrKeyExpired) {
		entity, err = check(made)
	}
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return "", fmt.Errorf("it is signed with PGP key %s, which verify.pgp does not hold", key)
	case errors.Is(err, pgperrors.ErrKeyExpired), errors.Is(err, pgperrors.ErrSignatureExpired):
		return "", fmt.Errorf("it is signed with PGP key %s, which had expired", key)
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return "", fmt.Errorf("it is signed with PGP key %s, which is revoked", key)
	case err != nil:
		return "", fmt.Errorf("its signature with PGP key %s is wrong: %w", key, err)
	}
	name := fmt.Sprintf("PGP key %X", entity.PrimaryKey.Fingerprint)
	if id := entity.PrimaryIdentity(); id != nil {
		name += " (" + id.Name + ")"
	}
	return name, nil
}

// strongHashes are those over which a signature counts. The library takes SHA-1
// too, for which two contents with one hash can be made.
var strongHashes = []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512}

// describePGP gives the key's name and the time that a signature carries. There
// must be one signature alone, so that what is described is what is checked.
func describePGP(data []byte) (key string, made time.Time, err error) {
	r := bytes.NewReader(data)
	p, err := packet.Read(r)
	if err != nil || r.Len() > 0 {
		return "", made, errors.New("its PGP signature cannot be read, or is not one alone")
	}
	s, ok := p.(*packet.Signature)
	switch {
	case !ok:
		return "", made, errors.New("its PGP signature cannot be read")
	case !slices.Contains(strongHashes, s.Hash):
		return "", made, fmt.Errorf("its PGP signature is over %s, which proves nothing any more", s.Hash)
	case len(s.IssuerFingerprint) > 0:
		key = fmt.Sprintf("%X", s.IssuerFingerprint)
	case s.IssuerKeyId != nil:
		key = fmt.Sprintf("%016X", *s.IssuerKeyId)
	default:
		key = "without a name"
	}
	return key, s.CreationTime, nil
}

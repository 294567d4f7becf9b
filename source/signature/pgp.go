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

// pgpKeys are the public keys of allowed signers.
type pgpKeys struct{ ring openpgp.EntityList }

// add adds the public keys in a file, which is binary or has armored blocks. A file without a public key is
// an error.
func (k *pgpKeys) add(data []byte) error {
	before := len(k.ring)
	if !bytes.Contains(data, []byte("-----BEGIN")) {
		ring, err := openpgp.ReadKeyRing(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("no public key that can be read; write one with gpg --export --armor: %w", err)
		}
		k.ring = append(k.ring, ring...)
	}
	// A reader with a large enough buffer is used directly, so that the next block starts where the previous
	// one ended.
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
			return fmt.Errorf("it has a %s instead of public keys; write one with gpg --export --armor", block.Type)
		}
		ring, err := openpgp.ReadKeyRing(block.Body)
		if err != nil {
			return fmt.Errorf("no public key that can be read: %w", err)
		}
		k.ring = append(k.ring, ring...)
	}
	if len(k.ring) == before {
		return errors.New("it has no public key; write one with gpg --export --armor")
	}
	return nil
}

// verify checks a detached signature. A key is valid if it is not revoked and not expired. If again is true,
// the object was accepted before. Then a key that has expired since the signature was made is valid too.
// Otherwise a fleet would stop on a date without any change.
func (k *pgpKeys) verify(o Object, now time.Time, again bool) (string, error) {
	if len(k.ring) == 0 {
		return "", errors.New("it is signed with PGP, and verify.pgp names no keys")
	}
	data, err := unarmored(o.Signature, openpgp.SignatureType, true)
	if err != nil {
		return "", err
	}
	made, key, err := describePGP(data)
	if err != nil {
		return "", err
	}
	if made.CreationTime.After(now) {
		now = made.CreationTime // clocks differ, and gpg accepts this too
	}
	entity, err := k.check(o.Payload, data, made, now)
	if errors.Is(err, pgperrors.ErrKeyExpired) && again && !made.SigExpired(now) {
		entity, err = k.check(o.Payload, data, made, made.CreationTime)
	}
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return "", fmt.Errorf("it is signed with PGP key %s, which verify.pgp does not have", key)
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return "", fmt.Errorf("its signature with PGP key %s has expired", key)
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return "", fmt.Errorf("it is signed with PGP key %s, which has expired: put the key with its new date into the file of verify.pgp", key)
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

// check verifies a signature at a given time. A revoked key is invalid at every time, even if only one copy
// of it is revoked. A user who adds a revoked key to the file wants that.
func (k *pgpKeys) check(payload, data []byte, made *packet.Signature, at time.Time) (*openpgp.Entity, error) {
	entity, err := openpgp.CheckDetachedSignature(&k.ring, bytes.NewReader(payload), bytes.NewReader(data), &packet.Config{Time: func() time.Time { return at }})
	if err != nil && !errors.Is(err, pgperrors.ErrKeyExpired) {
		return nil, err
	}
	for _, copied := range k.ring.KeysById(*made.IssuerKeyId) {
		if len(copied.Revocations) > 0 || len(copied.Entity.Revocations) > 0 {
			return nil, pgperrors.ErrKeyRevoked
		}
		if made.CreationTime.Before(copied.PublicKey.CreationTime) || made.CreationTime.Before(copied.Entity.PrimaryKey.CreationTime) {
			return nil, errors.New("it is older than the key")
		}
	}
	return entity, err
}

// strongHashes lists the accepted hashes of signatures. The library also accepts SHA-1, for which different
// contents with the same hash can be made.
var strongHashes = []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512}

// describePGP parses a signature and returns the name of its key. It accepts only exactly one signature, so
// that messages describe the signature that was checked.
func describePGP(data []byte) (s *packet.Signature, key string, err error) {
	r := bytes.NewReader(data)
	p, err := packet.Read(r)
	if err != nil || r.Len() > 0 || !definite(data) {
		return nil, "", errors.New("its PGP signature cannot be read, or there is more than one")
	}
	s, ok := p.(*packet.Signature)
	switch {
	case !ok || s.IssuerKeyId == nil:
		return nil, "", errors.New("its PGP signature cannot be read")
	case !slices.Contains(strongHashes, s.Hash):
		return nil, "", fmt.Errorf("its PGP signature uses %s, which is no longer secure", s.Hash)
	case len(s.IssuerFingerprint) > 0:
		return s, fmt.Sprintf("%X", s.IssuerFingerprint), nil
	default:
		return s, fmt.Sprintf("%016X", *s.IssuerKeyId), nil
	}
}

// definite reports whether a packet has its complete length in its header. Only data packets may omit it; see
// RFC 9580, section 4.2.1.4.
func definite(data []byte) bool {
	const newFormat, indeterminate, partial = 0x40, 3, 224
	if data[0]&newFormat == 0 {
		return data[0]&3 != indeterminate
	}
	return data[1] < partial || data[1] == 0xff
}

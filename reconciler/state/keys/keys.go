// Package keys stores the keys that all daemons of an instance have in common (for digests and logins) in
// the records that they share. The keys are encrypted, so access to the engine does not reveal them.
//
// The first daemon that needs a key makes it with a compare-and-set. If two try concurrently, one wins, and
// both use its key. A daemon that cannot decrypt the key has other ciphers than the other daemons. It gets
// an error and no key of its own, because its digests would not match theirs.
//
// A daemon may have several ciphers. The first encrypts, all decrypt. A key that was not encrypted with the
// first cipher is encrypted again with it. To replace a cipher, put the new one in front of it, and remove
// the old one when every daemon has both. The keys themselves do not change.
package keys

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/weir-gitops/weir/reconciler/state"
)

// Bytes is the length of a key.
const Bytes = 32

// The uses of keys.
const (
	Digest  = "digest"  // for digests of user data in plans
	Session = "session" // for logins and forms
)

// Bucket has the keys by use.
const Bucket = "keys"

// Cipher encrypts keys. about is authenticated with the result, and not part of it. Decrypt returns ErrOther
// if another cipher encrypted the key, or this cipher did with another about.
type Cipher interface {
	Encrypt(ctx context.Context, plain []byte, about map[string]string) ([]byte, error)
	Decrypt(ctx context.Context, sealed []byte, about map[string]string) ([]byte, error)
}

// ErrOther says that a cipher did not encrypt a key.
var ErrOther = errors.New("it was encrypted with another key than this daemon has: give all daemons of the instance the same keysFile or kmsKeyARNs, and keep the previous key in it until all daemons have the new one")

// Ring contains the keys of an instance.
type Ring struct {
	Store state.Store
	// Ciphers lists the ciphers. All decrypt, and the first one encrypts.
	Ciphers  []Cipher
	Instance string
}

var records = state.Bucket[[]byte]{Name: Bucket}

// Key returns the key for a use. If it does not exist yet, Key makes it from first, or at random if first is
// nil.
func (r Ring) Key(ctx context.Context, use string, first []byte) ([]byte, error) {
	sealed, err := r.sealed(use)
	if err != nil {
		return nil, err
	}
	if sealed == nil {
		if sealed, err = r.add(ctx, use, first); err != nil {
			return nil, err
		}
	}
	key, by, err := r.open(ctx, use, sealed)
	if err == nil && by > 0 {
		if err = r.renew(ctx, use, sealed, key); err != nil {
			return nil, r.unread(use, err)
		}
	}
	return key, err
}

// Read is like Key, but writes nothing. It fails with fs.ErrNotExist if the key is missing.
func (r Ring) Read(ctx context.Context, use string) ([]byte, error) {
	sealed, err := r.sealed(use)
	if err == nil && sealed == nil {
		err = r.unread(use, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	key, _, err := r.open(ctx, use, sealed)
	return key, err
}

// open decrypts a key and checks its length.
func (r Ring) open(ctx context.Context, use string, sealed []byte) (key []byte, by int, err error) {
	key, by, err = r.decrypt(ctx, use, sealed)
	if err == nil && len(key) != Bytes {
		err = fmt.Errorf("it has %d bytes", len(key))
	}
	if err != nil {
		return nil, 0, r.unread(use, err)
	}
	return key, by, nil
}

func (r Ring) unread(use string, err error) error {
	return fmt.Errorf("read the %s key of instance %s, which all of its daemons share: %w", use, r.Instance, err)
}

// decrypt tries each cipher. It returns a cipher's own failure only if no other cipher decrypts the
// key.
func (r Ring) decrypt(ctx context.Context, use string, sealed []byte) (key []byte, by int, err error) {
	why := ErrOther
	for i, c := range r.Ciphers {
		if key, err = c.Decrypt(ctx, sealed, r.about(use)); err == nil {
			return key, i, nil
		}
		if errors.Is(why, ErrOther) {
			why = err
		}
	}
	return nil, 0, why
}

// renew encrypts a key with the first cipher, unless another process wrote it meanwhile.
func (r Ring) renew(ctx context.Context, use string, before, key []byte) error {
	sealed, err := r.Ciphers[0].Encrypt(ctx, key, r.about(use))
	if err != nil {
		return fmt.Errorf("encrypt it again with the first key: %w", err)
	}
	return r.Store.Update(func(tx *state.Tx) error {
		if now, _, err := records.Get(tx, use); err != nil || !bytes.Equal(now, before) {
			return err
		}
		return records.Put(tx, use, sealed)
	})
}

func (r Ring) about(use string) map[string]string {
	return map[string]string{"weir.dev/instance": r.Instance, "weir.dev/key": use}
}

func (r Ring) sealed(use string) (sealed []byte, err error) {
	err = r.Store.View(func(tx *state.Tx) (err error) { sealed, _, err = records.Get(tx, use); return err })
	return sealed, err
}

// add makes the key for a use, unless another daemon made it meanwhile.
func (r Ring) add(ctx context.Context, use string, first []byte) ([]byte, error) {
	if first == nil {
		first = make([]byte, Bytes)
		if _, err := rand.Read(first); err != nil {
			return nil, err
		}
	}
	mine, err := r.Ciphers[0].Encrypt(ctx, first, r.about(use))
	if err != nil {
		return nil, fmt.Errorf("make the %s key: %w", use, err)
	}
	var sealed []byte
	err = r.Store.Update(func(tx *state.Tx) error {
		theirs, there, err := records.Get(tx, use)
		if err != nil {
			return err
		}
		if sealed = theirs; there {
			return nil
		}
		sealed = mine
		return records.Put(tx, use, mine)
	})
	return sealed, err
}

// Set replaces the key for a use.
func (r Ring) Set(ctx context.Context, use string, key []byte) error {
	sealed, err := r.Ciphers[0].Encrypt(ctx, key, r.about(use))
	if err != nil {
		return fmt.Errorf("write the %s key: %w", use, err)
	}
	return r.Store.Update(func(tx *state.Tx) error { return records.Put(tx, use, sealed) })
}

// File is a cipher with random bytes from a keysFile.
type File []byte

func (f File) aead(about map[string]string) (cipher.AEAD, []byte, error) {
	bound := about["weir.dev/instance"] + "\x00" + about["weir.dev/key"]
	key, err := hkdf.Key(sha256.New, f, nil, "weir keys\x00"+bound, Bytes)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCM(block)
	return aead, []byte(bound), err
}

// Encrypt implements Cipher.
func (f File) Encrypt(_ context.Context, plain []byte, about map[string]string) ([]byte, error) {
	aead, bound, err := f.aead(about)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return aead.Seal(nonce, nonce, plain, bound), nil
}

// Decrypt implements Cipher.
func (f File) Decrypt(_ context.Context, sealed []byte, about map[string]string) ([]byte, error) {
	aead, bound, err := f.aead(about)
	if err != nil {
		return nil, err
	}
	n := aead.NonceSize()
	if len(sealed) < n {
		return nil, ErrOther
	}
	plain, err := aead.Open(nil, sealed[:n], sealed[n:], bound)
	if err != nil {
		return nil, ErrOther
	}
	return plain, nil
}

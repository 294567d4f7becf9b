package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"filippo.io/age"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/sops"
)

// keyring decrypts a target's encrypted files.
type keyring struct {
	decrypter *sops.Decrypter
	// id identifies the keys.
	id string
}

// ageKeys are the identities in a target's key files, and the texts of these files.
type ageKeys struct {
	ids   []age.Identity
	texts []string
}

// ageKeysOf reads the age keys that the configuration lists for a target.
func ageKeysOf(t *targetspec.Target) (ageKeys, error) {
	var out ageKeys
	for _, file := range t.AgeKeyFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			return ageKeys{}, fmt.Errorf("read age keys: %w", err)
		}
		more, err := sops.ParseIdentities(string(text))
		if err != nil {
			return ageKeys{}, fmt.Errorf("read age keys from %s: %w", file, err)
		}
		out.ids, out.texts = append(out.ids, more...), append(out.texts, string(text))
	}
	return out, nil
}

// keysOf returns the keys that the configuration lists for a target. As long as the keys are the same, it
// returns the same decrypter, because that remembers data keys.
func (f *Fleet) keysOf(in *inputs, t *targetspec.Target, ages ageKeys) keyring {
	h := sha256.New()
	for _, text := range ages.texts {
		fmt.Fprintf(h, "age %d %s\n", len(text), text)
	}
	key := reconciler.ScopeKey{Region: t.Region, RoleARN: t.RoleARN, Endpoint: f.o.endpoint(t)}
	fmt.Fprintf(h, "kms %q %q %q\n", t.KMSKeyARNs, key.RoleARN, key.Endpoint)
	k := keyring{id: hex.EncodeToString(h.Sum(nil))}
	// The encrypted text is the same for every role.
	key.RoleARN = in.role(t, key.RoleARN)
	by := k.id + " " + key.RoleARN
	if k.decrypter = f.decrypters[by]; k.decrypter == nil { // read the files again: none may have been given before
		o := sops.Options{Identities: ages.ids, KMSKeyARNs: t.KMSKeyARNs}
		if o.Placeholders = f.o.Keyless; !o.Placeholders && len(t.KMSKeyARNs) > 0 {
			o.KMS = f.o.Accounts.KMS(key)
		}
		k.decrypter = sops.New(o)
		f.decrypters[by] = k.decrypter
	}
	return k
}

package sops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/getsops/sops/v3/shamir"

	"github.com/weir-gitops/weir/render/diag"
)

// Codes for a data key that cannot be decrypted.
const (
	codeNoKey = "sops-no-key"
	codeKey   = "sops-key-failed"
)

// errNoKey means that no available key belongs to a group.
var errNoKey = errors.New("no key")

// keySize is the size of a data key, in bytes.
const keySize = 32

// dataKey decrypts the data key of a file, or reports the missing keys. retry is true if a later attempt may
// succeed.
func (d *Decrypter) dataKey(ctx context.Context, m *metadata, at diag.Position) (key []byte, retry bool, problem *diag.Diagnostic) {
	var parts [][]byte
	var refusals []error
	for _, group := range m.Groups {
		part, err := d.part(ctx, group)
		switch {
		case err == nil:
			parts = append(parts, part)
		case !errors.Is(err, errNoKey):
			refusals = append(refusals, err)
		}
	}
	need := 1
	if len(m.Groups) > 1 {
		need = m.Threshold
	}
	switch {
	case len(parts) >= need && len(m.Groups) == 1:
		key, problem = checked(parts[0], at)
		return key, false, problem
	case len(parts) >= need:
		key, err := shamir.Combine(parts)
		if err != nil {
			f := fault(at, "sops-invalid", "the parts of the data key do not fit together", "Encrypt the file again with sops.")
			return nil, false, &f
		}
		key, problem = checked(key, at)
		return key, false, problem
	case len(refusals) > 0:
		err := errors.Join(refusals...)
		var kms kmsError
		f := fault(at, codeKey, "the file's data key cannot be decrypted: "+strings.ReplaceAll(err.Error(), "\n", "; "), "Encrypt the file again with sops.")
		if retry = errors.As(err, &kms); retry {
			f.Detail = "It is tried again in a while. The role of the target needs kms:Decrypt on the key."
		}
		return nil, retry, &f
	}
	summary := "the file is encrypted for keys that are not given: " + recipients(m.Groups)
	if len(m.Groups) > 1 {
		summary = fmt.Sprintf("the file needs keys of %d of its %d key groups, and keys of %d are given: %s", need, len(m.Groups), len(parts), recipients(m.Groups))
	}
	f := fault(at, codeNoKey, summary, noKeyDetail)
	return nil, false, &f
}

const noKeyDetail = "Give one of them: ageKeyFiles or kmsKeyARNs of the target's configuration, or for a PATH --age-key-file or SOPS_AGE_KEY_FILE."

func checked(key []byte, at diag.Position) ([]byte, *diag.Diagnostic) {
	if len(key) != keySize {
		f := fault(at, "sops-invalid", fmt.Sprintf("the file's data key has %d bytes and needs %d", len(key), keySize), "Encrypt the file again with sops.")
		return nil, &f
	}
	return key, nil
}

// encryptedRemark returns the warning about a file that is read with placeholders.
func encryptedRemark(at diag.Position, m *metadata) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Code: "sops-encrypted", Position: at,
		Summary: "the file is encrypted and is read with placeholders for its values: no key is given of " + recipients(m.Groups),
		Detail:  "Give one with --age-key-file or SOPS_AGE_KEY_FILE to see what it stands for.",
	}
}

// recipients lists the keys of groups, without characters that do not belong into a name.
func recipients(groups [][]masterKey) string {
	const most = 8
	var names []string
	for _, g := range groups {
		for _, k := range g {
			name := strings.Map(func(r rune) rune {
				if r < '!' || r > '~' && r < 0xa0 {
					return -1
				}
				return r
			}, k.name)
			if len(name) > 200 {
				name = strings.ToValidUTF8(name[:200], "") + "…"
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "none that weir knows"
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// part decrypts the part of a data key that belongs to one group of keys. Its error is errNoKey if no key of
// the group is available, and otherwise the error of the last available key.
func (d *Decrypter) part(ctx context.Context, group []masterKey) ([]byte, error) {
	last := errNoKey
	for _, k := range group {
		var key []byte
		err := errNoKey
		switch {
		case k.kind == "age" && len(d.o.Identities) > 0:
			key, err = d.remembered(k, func() ([]byte, error) { return openAge(k, d.o.Identities) })
		case k.kind == "kms" && d.o.KMS != nil && slices.Contains(d.o.KMSKeyARNs, k.name):
			key, err = d.remembered(k, func() ([]byte, error) { return d.askKMS(ctx, k) })
		}
		if err == nil {
			return key, nil
		}
		if !errors.Is(err, errNoKey) {
			last = err
		}
	}
	return nil, last
}

// remembered decrypts a data key and caches it. A refusal is cached for a short time too, but a missing key
// and the end of the context are not.
func (d *Decrypter) remembered(k masterKey, decrypt func() ([]byte, error)) ([]byte, error) {
	id := k.id()
	d.mu.Lock()
	known, ok := d.keys[id]
	d.mu.Unlock()
	if ok && (known.err == nil || d.o.Now().Before(known.until)) {
		return known.key, known.err
	}
	key, err := decrypt()
	if errors.Is(err, errNoKey) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.keys) >= keptKeys {
		clear(d.keys)
	}
	d.keys[id] = dataKey{key: key, err: err, until: d.o.Now().Add(refusalKept)}
	return key, err
}

// kmsError is an error of KMS, which may be temporary.
type kmsError struct{ error }

func (e kmsError) Unwrap() error { return e.error }

func (d *Decrypter) askKMS(ctx context.Context, k masterKey) ([]byte, error) {
	key, err := d.o.KMS.Decrypt(ctx, k.name, k.data, k.context)
	if err != nil {
		return nil, kmsError{err}
	}
	return key, nil
}

// id identifies an encrypted data key.
func (k masterKey) id() string {
	h := sha256.New()
	field := func(b []byte) { fmt.Fprintf(h, "%d:%s", len(b), b) }
	field([]byte(k.kind))
	field([]byte(k.name))
	field(k.data)
	for _, name := range slices.Sorted(maps.Keys(k.context)) {
		field([]byte(name))
		field([]byte(k.context[name]))
	}
	return string(h.Sum(nil))
}

// openAge decrypts a data key for an age recipient. The header contains the recipients, so the recipient in
// the metadata is not used.
func openAge(k masterKey, identities []age.Identity) ([]byte, error) {
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(k.data)), identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, errNoKey
	}
	if err != nil {
		return nil, errors.New("sops.age.enc is damaged")
	}
	key, err := io.ReadAll(io.LimitReader(r, 1<<10))
	if err != nil {
		return nil, errors.New("sops.age.enc is damaged")
	}
	return key, nil
}

package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// Secrets contains the valid secrets. A delivery must prove one of them. Several are valid during the
// replacement of a secret.
type Secrets [][]byte

const (
	// minSecret is the minimum length of a secret in bytes. A shorter secret could be found by trying all
	// of them against a recorded delivery.
	minSecret = 16
	// maxSecrets is the maximum number of secrets that each delivery is compared with.
	maxSecrets    = 4
	maxSecretFile = 16 << 10
)

// readSecrets reads a file with one secret per line. It is called for each delivery, so that a new secret
// is valid at once.
func readSecrets(file string) (Secrets, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read webhook secret: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return nil, fmt.Errorf("read webhook secret: %w", err)
	}
	if len(text) > maxSecretFile {
		return nil, fmt.Errorf("read webhook secret: %s has more than %d bytes", file, maxSecretFile)
	}
	var out Secrets
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case len(line) < minSecret:
			return nil, fmt.Errorf("read webhook secret: line in %s has fewer than %d characters; openssl rand -hex 32 makes a good one", file, minSecret)
		case len(out) == maxSecrets:
			return nil, fmt.Errorf("read webhook secret: %s has more than %d secrets", file, maxSecrets)
		}
		out = append(out, []byte(line))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read webhook secret: %s is empty", file)
	}
	return out, nil
}

// errUnsigned means that a delivery does not prove that its sender knows the secret.
var errUnsigned = errors.New("the delivery is not signed with the secret")

// Verify reports whether a delivery proves that its sender knows one of the secrets. Its duration does not
// depend on the reason of a failure. It does not accept SHA-1 signatures.
func (s Secrets) Verify(kind Kind, h http.Header, body []byte) error {
	hook := ProfileOf(kind).webhook
	if hook.token != "" {
		// The digests always have the same length, so that the duration does not reveal the length of the
		// secret.
		sent := sha256.Sum256([]byte(h.Get(hook.token)))
		found := 0
		for _, secret := range s {
			want := sha256.Sum256(secret)
			found |= subtle.ConstantTimeCompare(sent[:], want[:])
		}
		return verdict(found)
	}
	sent, err := hex.DecodeString(strings.TrimPrefix(first(h, hook.signature), "sha256="))
	if err != nil {
		sent = nil // no signature equals it
	}
	found := 0
	for _, secret := range s {
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		found |= subtle.ConstantTimeCompare(sent, mac.Sum(nil))
	}
	return verdict(found)
}

func verdict(found int) error {
	if found != 1 {
		return errUnsigned
	}
	return nil
}

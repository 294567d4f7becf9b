package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
)

// The limits of files with tokens. leastToken is the minimum length of a token in bytes. A token of this
// length can be neither guessed nor memorized.
const (
	leastToken    = 32
	mostToken     = 1024
	maxTokenFile  = 64 << 10
	tokensPerFile = 16
)

// secretsOf reads the secrets in a file, one per line. If a secret is too short, the whole file is
// rejected, so that a weak secret is never accepted.
func secretsOf(file string) ([][]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	text, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case len(line) < leastToken || len(line) > mostToken:
			return nil, fmt.Errorf("%s: a line has %d characters; a token has %d to %d: openssl rand -hex 32 makes a good one", file, len(line), leastToken, mostToken)
		default:
			out = append(out, line)
		}
	}
	switch {
	case len(text) > maxTokenFile || len(out) > tokensPerFile:
		return nil, fmt.Errorf("%s: there are more than %d tokens", file, tokensPerFile)
	case len(out) == 0:
		return nil, errors.New(file + ": there is no token in it")
	}
	return out, nil
}

// same compares two values in constant time.
func same(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// find returns the entry of a token. It compares all tokens, so that the duration does not reveal a close
// match. faulty contains the errors of unusable files.
func (p *Policy) find(token []byte) (found Token, ok bool, faulty []error) {
	for _, t := range p.tokens {
		have, err := secretsOf(t.File)
		if err != nil {
			faulty = append(faulty, err)
		}
		for _, h := range have {
			if same(h, token) && !ok {
				found, ok = t, true
			}
		}
	}
	return found, ok, faulty
}

// all returns every token. faulty contains the errors of unusable files.
func (p *Policy) all() (tokens [][]byte, faulty []error) {
	for _, t := range p.tokens {
		have, err := secretsOf(t.File)
		if err != nil {
			faulty = append(faulty, err)
		}
		tokens = append(tokens, have...)
	}
	return tokens, faulty
}

// tokenByMark returns the token with a name, if its current mark is want.
func (p *Policy) tokenByMark(name string, mark func(token []byte) []byte, want []byte) (Token, bool) {
	for _, t := range p.tokens {
		if t.Name != name {
			continue
		}
		have, err := secretsOf(t.File)
		if err != nil {
			return Token{}, false
		}
		for _, h := range have {
			if subtle.ConstantTimeCompare(mark(h), want) == 1 {
				return t, true
			}
		}
	}
	return Token{}, false
}

// ReadToken returns the first token in a file, for a client.
func ReadToken(file string) (string, error) {
	all, err := secretsOf(file)
	if err != nil {
		return "", err
	}
	return string(all[0]), nil
}

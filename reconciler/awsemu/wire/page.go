package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"sort"
	"strings"
)

// pageToken returns an opaque token for the page after key. The token is bound to the operation, and a
// checksum protects against guessed tokens.
func (rq *Exchange) pageToken(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(rq.tokenCheck(key) + key))
}

func (rq *Exchange) tokenCheck(key string) string {
	sum := sha256.Sum256([]byte("page|" + rq.Service.Name + "|" + rq.Operation.Name + "|" + key))
	return hex.EncodeToString(sum[:8])
}

// pageKey returns the key after which a token continues.
func (rq *Exchange) pageKey(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < 16 || !strings.HasPrefix(string(raw), rq.tokenCheck(string(raw[16:]))) {
		return "", rq.Service.Dialect.badToken()
	}
	return string(raw[16:]), nil
}

// Page calls take for each sorted key after the token, until take has accepted limit keys (0: no limit). It
// returns the token for the remaining keys, or "" at the end. A page starts at a key, not at an index, so
// pages stay correct if keys are added or removed between them.
func (rq *Exchange) Page(keys []string, token string, limit int, take func(key string) bool) (string, error) {
	after, err := rq.pageKey(token)
	if err != nil {
		return "", err
	}
	start := 0
	if token != "" {
		start = sort.SearchStrings(keys, after)
		if start < len(keys) && keys[start] == after {
			start++
		}
	}
	taken := 0
	last := ""
	for _, key := range keys[start:] {
		if limit > 0 && taken == limit {
			return rq.pageToken(last), nil
		}
		if take(key) {
			taken++
		}
		last = key
	}
	return "", nil
}

// NewestFirst returns a page key that sorts increasing numbers in reverse.
func NewestFirst(seq uint64) string { return fmt.Sprintf("%020d", math.MaxUint64-seq) }

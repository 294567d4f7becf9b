package membership

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// ScopeKey returns the key of an account and region. All roles into them share it. A custom endpoint has a
// different key, with a hash of its address.
func ScopeKey(partition, account, region, endpoint string) string {
	key := "scope/" + partition + "/" + account + "/" + region
	if endpoint != "" {
		sum := sha256.Sum256([]byte(endpoint))
		key += "/" + hex.EncodeToString(sum[:6])
	}
	return key
}

// SourceKey returns the key of a repository. Its owner reads it, and writes statuses, for all sources in
// the repository.
func SourceKey(id string) string { return "source/" + id }

// IsSource reports whether a key belongs to a source.
func IsSource(key string) bool { return strings.HasPrefix(key, "source/") }

const (
	headPrefix    = "head/"
	reportPrefix  = "report/"
	pullPrefix    = "pull/"
	requestPrefix = "ask/"
)

func headKey(id, source string) string { return headPrefix + id + "/" + url.PathEscape(source) }

func reportKey(target string) string { return reportPrefix + url.PathEscape(target) + "/" }

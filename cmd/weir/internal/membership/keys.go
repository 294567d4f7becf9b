package membership

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// ScopeKey is the key of an account and region. All roles into them share it; a custom endpoint has another key, with a hash of its address.
func ScopeKey(partition, account, region, endpoint string) string {
	key := "scope/" + partition + "/" + account + "/" + region
	if endpoint != "" {
		sum := sha256.Sum256([]byte(endpoint))
		key += "/" + hex.EncodeToString(sum[:6])
	}
	return key
}

// SourceKey is the key of a repository. Its owner reads and reports for all sources in the repository.
func SourceKey(id string) string { return "source/" + id }

// IsSource reports whether a key is a source's.
func IsSource(key string) bool { return strings.HasPrefix(key, "source/") }

const (
	headPrefix    = "head/"
	reportPrefix  = "report/"
	pullPrefix    = "pull/"
	requestPrefix = "ask/"
)

func headKey(id, source string) string { return headPrefix + id + "/" + url.PathEscape(source) }

func reportKey(target string) string { return reportPrefix + url.PathEscape(target) + "/" }

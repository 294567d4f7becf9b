package status

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/weir-gitops/weir/status/wording"
)

// oneLine makes a text fit for a single line: valid UTF-8 of characters that a reader
// sees, blanks collapsed.
func oneLine(s string) string { return strings.Join(strings.Fields(wording.Clean(s)), " ") }

// clip cuts s to at most limit UTF-16 units, at the end of a character, marked
// with an ellipsis. No forge counts more than that for a character.
func clip(s string, limit int) string {
	if units(s) <= limit {
		return s
	}
	left := limit - 1 // the ellipsis
	end := 0
	for i, r := range s {
		n := utf16.RuneLen(r)
		if n < 0 {
			n = 1
		}
		if n > left {
			break
		}
		left -= n
		end = i + len(string(r))
	}
	return strings.TrimRight(s[:end], " ") + "…"
}

func units(s string) int {
	n := 0
	for _, r := range s {
		if l := utf16.RuneLen(r); l > 0 {
			n += l
		} else {
			n++
		}
	}
	return n
}

// contextName cuts a context to limit. The end becomes a hash of the whole, so
// that two long names stay two contexts, the same in every process.
func contextName(s string, limit int) string {
	if units(s) <= limit {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimSuffix(clip(s, limit-len(suffix)+1), "…") + suffix
}

// short is a commit hash as people read it.
func short(sha string) string {
	if len(sha) > 7 {
		return sha[:7]
	}
	return sha
}

// count prints "1 pool" or "3 pools".
func count(n int, noun string) string { return wording.Count(n, noun) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
)

// A tag's value holds at most 256 characters, fewer than the keys of fifty tags,
// so the keys are recorded as marks: a character that says how long each mark is,
// then the marks, sorted. A mark is the beginning of the key's SHA-256 in the
// alphabet of base64 URLs, all of which AWS takes in a tag. Sixteen characters
// fit for up to fifteen keys, five for fifty: even then the chance that one
// foreign tag is taken for weir's is below one in twenty million.
const (
	marksLimit  = 256 // characters of a tag's value
	longestMark = 16
	markLengths = "0123456789abcdefg"
)

// keyMarks records the keys of tags; "0" where there is none.
func keyMarks(tags map[string]string) string {
	if len(tags) == 0 {
		return markLengths[:1]
	}
	length := min(longestMark, (marksLimit-1)/len(tags))
	marks := make([]string, 0, len(tags))
	for k := range tags {
		marks = append(marks, keyMark(k, length))
	}
	slices.Sort(marks)
	return markLengths[length:length+1] + strings.Join(marks, "")
}

func keyMark(key string, length int) string {
	sum := sha256.Sum256([]byte(key))
	var text [longestMark]byte
	base64.RawURLEncoding.Encode(text[:], sum[:longestMark/4*3])
	return string(text[:length])
}

// marked reports whether a record made by keyMarks holds key. A record that
// somebody changed by hand holds what can be read of it.
func marked(record, key string) bool {
	if record == "" || strings.HasPrefix(key, "aws:") || strings.HasPrefix(key, ownTagPrefix) {
		return false
	}
	length := strings.IndexByte(markLengths, record[0])
	if length < shortestMark {
		return false
	}
	mark := keyMark(key, length)
	for rest := record[1:]; len(rest) >= length; rest = rest[length:] {
		if rest[:length] == mark {
			return true
		}
	}
	return false
}

const (
	// ownTagPrefix begins the keys of weir's own tags.
	ownTagPrefix = "weir.dev/"
	// shortestMark is that of fifty keys; a shorter one was not made by weir.
	shortestMark = 5
)

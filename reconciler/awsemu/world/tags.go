package world

import (
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// Tag is one tag of a resource.
type Tag struct {
	Key   string
	Value string
}

// Tags are a resource's tags, sorted by key, each key once.
type Tags []Tag

func (ts Tags) find(key string) (int, bool) {
	i := sort.Search(len(ts), func(i int) bool { return ts[i].Key >= key })
	return i, i < len(ts) && ts[i].Key == key
}

// Get returns a tag's value and whether the tag exists.
func (ts Tags) Get(key string) (string, bool) {
	if i, ok := ts.find(key); ok {
		return ts[i].Value, true
	}
	return "", false
}

// Set adds a tag or changes its value.
func (ts *Tags) Set(key, value string) {
	i, ok := ts.find(key)
	if ok {
		(*ts)[i].Value = value
		return
	}
	*ts = append(*ts, Tag{})
	copy((*ts)[i+1:], (*ts)[i:])
	(*ts)[i] = Tag{Key: key, Value: value}
}

// Remove removes a tag.
func (ts *Tags) Remove(key string) {
	if i, ok := ts.find(key); ok {
		*ts = append((*ts)[:i], (*ts)[i+1:]...)
	}
}

// Clone returns tags that share nothing with ts.
func (ts Tags) Clone() Tags { return append(Tags(nil), ts...) }

// UserCount returns the number of tags that count towards the quota. AWS's own tags do not count.
func (ts Tags) UserCount() int {
	n := 0
	for _, t := range ts {
		if !strings.HasPrefix(t.Key, "aws:") {
			n++
		}
	}
	return n
}

// TagFault returns the violation of AWS's rules by a user's tag, or "" for none. Keys have 1 to 128 and
// values up to 256 characters, and the prefix aws: is not allowed.
func TagFault(key, value string) string {
	switch {
	case key == "":
		return "Tag keys must not be empty"
	case utf8.RuneCountInString(key) > 128:
		return "Tag keys must be 128 characters or less"
	case utf8.RuneCountInString(value) > 256:
		return "Tag values must be 256 characters or less"
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return "Tag keys starting with 'aws:' are reserved for internal use"
	}
	return ""
}

// SeedTime returns the creation time of all seeded resources.
func SeedTime() time.Time { return time.Date(2025, 1, 15, 12, 0, 0, 0, time.UTC) }

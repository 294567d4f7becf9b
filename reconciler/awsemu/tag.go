package awsemu

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// tag is one tag of a resource.
type tag struct {
	Key   string
	Value string
}

// tags are a resource's tags, sorted by key, each key once.
type tags []tag

func (ts tags) find(key string) (int, bool) {
	i := sort.Search(len(ts), func(i int) bool { return ts[i].Key >= key })
	return i, i < len(ts) && ts[i].Key == key
}

// get returns a tag's value and whether it is there.
func (ts tags) get(key string) (string, bool) {
	if i, ok := ts.find(key); ok {
		return ts[i].Value, true
	}
	return "", false
}

// set adds a tag or changes its value.
func (ts *tags) set(key, value string) {
	i, ok := ts.find(key)
	if ok {
		(*ts)[i].Value = value
		return
	}
	*ts = append(*ts, tag{})
	copy((*ts)[i+1:], (*ts)[i:])
	(*ts)[i] = tag{Key: key, Value: value}
}

// remove takes a tag away.
func (ts *tags) remove(key string) {
	if i, ok := ts.find(key); ok {
		*ts = append((*ts)[:i], (*ts)[i+1:]...)
	}
}

// clone returns tags that share nothing with ts.
func (ts tags) clone() tags { return append(tags(nil), ts...) }

// userCount is the number of tags that count against the quota: AWS's own do not.
func (ts tags) userCount() int {
	n := 0
	for _, t := range ts {
		if !strings.HasPrefix(t.Key, "aws:") {
			n++
		}
	}
	return n
}

// tagFault says what AWS's rules hold against a tag that a user sets, "" if
// nothing: keys of 1 to 128 and values of up to 256 characters, no prefix aws:.
func tagFault(key, value string) string {
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

// writeTags writes EC2's tagSet, nothing for no tags.
func (w *xmlWriter) writeTags(ts tags) {
	if len(ts) == 0 {
		return
	}
	w.open("tagSet")
	for _, t := range ts {
		w.open("item")
		w.text("key", t.Key)
		w.text("value", t.Value)
		w.close("item")
	}
	w.close("tagSet")
}

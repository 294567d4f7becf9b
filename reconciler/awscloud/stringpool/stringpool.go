// Package stringpool lets equal short texts share their memory. AWS's answers repeat the same ids, zones,
// tag keys and tag values for each of ten thousand pools, and each separately stored text keeps a page of
// memory from being freed. Package unique is no replacement: it would add an entry for each text, and most
// ids occur only once.
package stringpool

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// Longest is the maximum length of shared texts, in bytes.
const Longest = 64

// recent has the latest texts, each at the index of its hash. A frequent text is nearly always there, and a
// rare text is soon replaced. The array bounds the memory, whatever AWS returns.
var recent [4096]atomic.Pointer[string]

var seed = maphash.MakeSeed()

// String returns s. If s is short, the result shares the memory of an equal earlier text.
func String(s string) string {
	if len(s) == 0 || len(s) > Longest {
		return s
	}
	at := &recent[maphash.String(seed, s)%uint64(len(recent))]
	if known := at.Load(); known != nil && *known == s {
		return *known
	}
	s = strings.Clone(s) // a substring would keep the whole text in memory
	at.Store(&s)
	return s
}

// Bytes is like String, for bytes that it does not keep.
func Bytes(b []byte) string {
	if len(b) == 0 || len(b) > Longest {
		return string(b)
	}
	at := &recent[maphash.Bytes(seed, b)%uint64(len(recent))]
	if known := at.Load(); known != nil && *known == string(b) {
		return *known
	}
	s := string(b)
	at.Store(&s)
	return s
}

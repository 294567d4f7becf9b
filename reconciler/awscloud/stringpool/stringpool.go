// Package stringpool lets equal short texts share their memory. What AWS answers says the same
// ids, zones, keys and values of tags of each of ten thousand pools, and each text that is
// kept by itself keeps a page of memory from being given back. Package unique would keep an
// entry of each text besides, and most ids are there once.
package stringpool

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// Longest is the length in bytes up to which texts are shared.
const Longest = 64

// recent holds the latest texts, each at the index of its hash. A frequent text is nearly always
// there, and a text that came once gives way to the next. The array bounds the memory, whatever AWS
// answers.
var recent [4096]atomic.Pointer[string]

var seed = maphash.MakeSeed()

// String is s, where it is short in the memory that an equal text had before.
func String(s string) string {
	if len(s) == 0 || len(s) > Longest {
		return s
	}
	at := &recent[maphash.String(seed, s)%uint64(len(recent))]
	if known := at.Load(); known != nil && *known == s {
		return *known
	}
	s = strings.Clone(s) // a part would keep the whole
	at.Store(&s)
	return s
}

// Bytes is String of a text in bytes, which is not kept.
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

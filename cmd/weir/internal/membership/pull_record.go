package membership

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// A pull request is stored in parts, under pull/SOURCE/NUMBER/N. The first part starts with a pullHead. The
// data follow.

// The records of one source may use keptPullBytes, and contain keptEnded ended pull requests. If there is
// no room, the oldest ended pull requests are removed. If that is not enough, a new one is stored without
// its plans.
const (
	keptEnded     = 30
	keptPullBytes = 8 << 20
)

type pullKey struct {
	source string
	number int64
}

func pullSource(source string) string { return pullPrefix + url.PathEscape(source) + "/" }

func (k pullKey) prefix() string { return fmt.Sprintf("%s%019d/", pullSource(k.source), k.number) }

// pullHead is the start of the first part: the number of parts, whether the pull request has ended, a
// number that increases with each write, and a hash of the content.
type pullHead struct {
	parts byte
	ended bool
	n     int64
	same  [sha256.Size]byte
}

const pullHeadSize = 1 + 1 + 8 + sha256.Size

func (h pullHead) bytes() []byte {
	out := []byte{h.parts, 0}
	if h.ended {
		out[1] = 1
	}
	out = binary.BigEndian.AppendUint64(out, uint64(h.n)) //nolint:gosec // compared alone
	return append(out, h.same[:]...)
}

func readPullHead(value []byte) (h pullHead, ok bool) {
	if len(value) < pullHeadSize {
		return h, false
	}
	h.parts, h.ended, h.n = value[0], value[1] == 1, int64(binary.BigEndian.Uint64(value[2:])) //nolint:gosec // compared alone
	copy(h.same[:], value[10:])
	return h, true
}

// keptPull describes the record of a pull request in the engine.
type keptPull struct {
	pullKey
	head    pullHead
	version int64
	keys    []string
	bytes   int
}

// pullsOf lists the records of a source's pull requests, or of all sources for an empty name.
func pullsOf(now *coord.Snapshot, source string) (list []keptPull) {
	prefix := pullPrefix
	if source != "" {
		prefix = pullSource(source)
	}
	for _, r := range now.List(prefix) {
		words := strings.Split(strings.TrimPrefix(r.Key, pullPrefix), "/")
		if len(words) != 3 {
			continue
		}
		name, err := url.PathUnescape(words[0])
		number, bad := strconv.ParseInt(words[1], 10, 64)
		if err != nil || bad != nil {
			continue
		}
		key := pullKey{name, number}
		if words[2] == "0" {
			head, _ := readPullHead(r.Value)
			list = append(list, keptPull{pullKey: key, head: head, version: r.Version})
		}
		if n := len(list) - 1; n >= 0 && list[n].pullKey == key {
			list[n].keys, list[n].bytes = append(list[n].keys, r.Key), list[n].bytes+len(r.Value)
		}
	}
	return list
}

// makeRoom returns the operations that remove the oldest ended pull requests, if they are too many or too
// large together with a new one. It also returns the number of bytes that the new one may use.
func makeRoom(list []keptPull, size int, ended bool) (ops []coord.Op, left int) {
	left = keptPullBytes
	var over []keptPull
	for _, k := range list {
		if left -= k.bytes; k.head.ended {
			over = append(over, k)
		}
	}
	slices.SortFunc(over, func(x, y keptPull) int { return int(x.head.n - y.head.n) })
	count := len(over)
	if ended {
		count++
	}
	for _, k := range over {
		if count <= keptEnded && size <= left || len(ops)+len(k.keys) > coord.MaxOps/2 {
			break
		}
		for _, gone := range k.keys {
			ops = append(ops, coord.Op{Key: gone, Delete: true, If: coord.Any})
		}
		left += k.bytes
		count--
	}
	return ops, left
}

// readPull returns the data of a pull request. It returns false if a part is missing.
func readPull(now *coord.Snapshot, k keptPull) (data []byte, ok bool) {
	if len(k.keys) < int(k.head.parts) {
		return nil, false
	}
	for i, part := range k.keys {
		value := now.Get(part).Value
		if i == 0 {
			value = value[pullHeadSize:]
		}
		data = append(data, value...)
	}
	return data, true
}

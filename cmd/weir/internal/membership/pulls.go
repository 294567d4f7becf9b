package membership

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// The owner of a source publishes its pull requests for the pages of all members:
//
//	pull/SOURCE/NUMBER/N   parts of one: a head, which describes the data, and the data
//
// The engine keeps all open ones, and the last few that have ended.

const pullPrefix = "pull/"

// Of one source, the records of pull requests that have ended are keptEnded at most, and all of them have keptPullBytes at most: those that have ended
// go first, and then new plans stay with the speaker.
const (
	keptEnded     = 30
	keptPullBytes = 8 << 20
)

// Pull is a pull request to publish.
type Pull struct {
	Source string
	Number int64
	Ended  bool
	// Data makes its record, and what stands for its content; Short makes it without its plans.
	Data, Short func() (data, same []byte, err error)
}

type pullKey struct {
	source string
	number int64
}

// waitingPull is a pull request to send, under a lease of its source.
type waitingPull struct {
	Pull
	lease *coord.Lease
}

func pullSource(source string) string { return pullPrefix + url.PathEscape(source) + "/" }

func (k pullKey) prefix() string { return fmt.Sprintf("%s%019d/", pullSource(k.source), k.number) }

// pullHead is the beginning of the first part: the number of parts, whether the pull request has
// ended, when it was written, and a hash of its content.
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

// keptPull is the record of a pull request in the engine.
type keptPull struct {
	pullKey
	head    pullHead
	version int64
	keys    []string
	bytes   int
}

// pullsOf reads which records there are, of a source or, with "", of all.
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

// PublishPull sends a pull request to the other members if it has changed, without waiting.
func (c *Member) PublishPull(l *coord.Lease, p Pull) {
	c.out.mu.Lock()
	c.out.pulls[pullKey{p.Source, p.Number}] = waitingPull{p, l}
	c.out.mu.Unlock()
	c.wake()
}

// sendPulls sends the waiting ones; of a lease alone if there is one. False: some cannot be sent now.
func (c *Member) sendPulls(ctx context.Context, of *coord.Lease) bool {
	c.out.mu.Lock()
	var list []waitingPull
	for key, p := range c.out.pulls {
		if of == nil || p.lease == of {
			list = append(list, p)
			delete(c.out.pulls, key)
		}
	}
	c.out.mu.Unlock()
	sent := true
	for _, p := range list {
		err := c.sendPull(ctx, p)
		if err == nil {
			continue
		}
		c.o.Logger.Warn("cannot publish a pull request: other members show it as it was before", "source", p.Source, "number", p.Number, "error", err)
		if errors.Is(err, coord.ErrLost) {
			continue // the next owner of the source shows it
		}
		sent = false
		c.out.mu.Lock()
		if key := (pullKey{p.Source, p.Number}); c.out.pulls[key].lease == nil {
			c.out.pulls[key] = p
		}
		c.out.mu.Unlock()
	}
	return sent
}

// sendPull writes the record of one, unless it is there already.
func (c *Member) sendPull(ctx context.Context, p waitingPull) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	data, same, err := p.Data()
	if err != nil {
		return err
	}
	key := pullKey{p.Source, p.Number}
	now := pullsOf(c.mirror.Snapshot(), p.Source)
	var mine keptPull
	for _, k := range now {
		if k.pullKey == key {
			mine = k
		}
	}
	now = slices.DeleteFunc(now, func(k keptPull) bool { return k.pullKey == key })
	ops, left := makeRoom(now, len(data), p.Ended)
	if len(data) > left || len(data) > keptBytes {
		if data, same, err = p.Short(); err != nil {
			return err
		}
	}
	head := pullHead{ended: p.Ended, n: c.number(mine.head.n), same: sha256.Sum256(same)}
	if mine.head.same == head.same && mine.head.ended == head.ended {
		return nil
	}
	parts := slices.Collect(slices.Chunk(data, partSize))
	head.parts = byte(len(parts)) //nolint:gosec // keptBytes makes it three
	for i, part := range parts {
		value := part
		if i == 0 {
			value = append(head.bytes(), part...)
		}
		ops = append(ops, coord.Op{Key: key.prefix() + strconv.Itoa(i), Value: value, If: coord.Any})
	}
	for _, old := range mine.keys[min(len(parts), len(mine.keys)):] {
		ops = append(ops, coord.Op{Key: old, Delete: true, If: coord.Any})
	}
	if _, err := p.lease.Write(ctx, ops...); err != nil {
		return err
	}
	_ = c.mirror.Sync(ctx) // the next one comes after this one
	return nil
}

// makeRoom returns the operations that remove the oldest ended pull requests, if there are too many
// or they are too large together with a new one. It also returns the number of bytes that the new
// one may have.
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

// Pulls calls take with the records of pull requests that came or changed since its last call. Those of sources that skip names are taken later, once
// it does not name them any more.
func (c *Member) Pulls(skip func(source string) bool, take func(source string, number int64, data []byte)) {
	now := c.mirror.Snapshot()
	c.mu.Lock()
	if now == c.pullsAt {
		c.mu.Unlock()
		return
	}
	old := c.pulls
	c.mu.Unlock()
	seen, whole := map[pullKey]int64{}, true
	for _, k := range pullsOf(now, "") {
		if skip(k.source) {
			whole = false
			continue
		}
		seen[k.pullKey] = k.version
		if old[k.pullKey] == k.version || len(k.keys) < int(k.head.parts) {
			continue
		}
		var data []byte
		for i, part := range k.keys {
			value := now.Get(part).Value
			if i == 0 {
				value = value[pullHeadSize:]
			}
			data = append(data, value...)
		}
		take(k.source, k.number, data)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pulls = seen
	if c.pullsAt = now; !whole {
		c.pullsAt = nil
	}
}

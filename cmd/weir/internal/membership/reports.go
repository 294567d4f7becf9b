package membership

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// outbox has the reports to be published: the last one of each target.
type outbox struct {
	mu      sync.Mutex
	waiting map[string]sending
	asks    []Ask
	gone    []string
	last    map[string]published // of each target
	pulls   map[pullKey]waitingPull
	due     chan struct{}
}

// published is a report in the form of Report.Same, and the version of its record.
type published struct {
	same    []byte
	version int64
}

// sending are a target's waiting reports, in order.
type sending struct {
	lease *coord.Lease
	made  []made
	same  []byte
}

// made is a report. did says that its pass made changes: no later report shows them, so this one
// must not be skipped.
type made struct {
	data func() ([]byte, error)
	did  bool
}

// A record holds the newest report of a target, last, and before it those of the last few whose passes did something, as others read only now and
// then.
const (
	keptReports = 8
	keptBytes   = 768 << 10
	// mostBytes bounds the data of one write.
	mostBytes = coord.MaxWrite - 4<<10
)

// numbered is a report in a record. Numbers grow from owner to owner.
type numbered struct {
	n    int64
	did  bool
	data []byte
}

func pack(list []numbered) []byte {
	var out []byte
	for _, r := range list {
		out = binary.BigEndian.AppendUint64(out, uint64(r.n)) //nolint:gosec // a time
		did := byte(0)
		if r.did {
			did = 1
		}
		out = append(out, did)
		out = binary.BigEndian.AppendUint32(out, uint32(len(r.data))) //nolint:gosec // bounded by keptBytes
		out = append(out, r.data...)
	}
	return out
}

func unpack(data []byte) (list []numbered) {
	for len(data) >= 13 {
		r := numbered{n: int64(binary.BigEndian.Uint64(data)), did: data[8] == 1} //nolint:gosec // compared alone
		size := int(binary.BigEndian.Uint32(data[9:]))
		if data = data[13:]; size > len(data) {
			break
		}
		r.data, data = data[:size], data[size:]
		list = append(list, r)
	}
	return list
}

// trim drops reports that are no longer needed.
func trim(list []numbered) []numbered {
	newest := len(list) - 1
	list = slices.DeleteFunc(list, func(r numbered) bool { return !r.did && r.n != list[newest].n })
	list = list[max(0, len(list)-keptReports):]
	size := 0
	for i := len(list) - 1; i >= 0; i-- {
		if size += len(list[i].data); size > keptBytes && i < len(list)-1 {
			return list[i+1:]
		}
	}
	return list
}

// partSize leaves room for the first byte of a part, which says how many there are.
const partSize = coord.MaxValue - 1024

// Publish sends a report to the other members if it has changed, without waiting. It also does so
// if the record no longer comes from this member: a member that gave up the target, as by a reload,
// wrote its last report late, or dropped the record. same stands for the report's content, data
// makes its record, and did says that the pass made changes.
func (c *Member) Publish(l *coord.Lease, target string, did bool, same []byte, data func() ([]byte, error)) {
	now := c.mirror.Snapshot().Get(reportKey(target) + "0").Version
	c.out.mu.Lock()
	waits, last := c.out.waiting[target], c.out.last[target]
	if len(waits.made) == 0 && !did && bytes.Equal(last.same, same) && last.version == now {
		c.out.mu.Unlock()
		return
	}
	list := append(waits.made, made{data, did})
	c.out.waiting[target] = sending{l, list[max(0, len(list)-keptReports):], same}
	c.out.mu.Unlock()
	c.wake()
}

func (c *Member) wake() {
	select {
	case c.out.due <- struct{}{}:
	default:
	}
}

// publish sends waiting reports until ctx ends.
func (c *Member) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.out.due:
		}
		c.out.mu.Lock()
		asks, gone := c.out.asks, c.out.gone
		c.out.asks, c.out.gone = nil, nil
		targets := make([]string, 0, len(c.out.waiting))
		for target := range c.out.waiting {
			targets = append(targets, target)
		}
		c.out.mu.Unlock()
		for _, a := range asks {
			if err := c.Ask(ctx, a); err != nil {
				c.o.Logger.Warn("cannot send a hint to the other members: they find its cause by polling", "error", err)
			}
		}
		for _, target := range gone {
			c.Drop(ctx, target)
		}
		again := !c.sendPulls(ctx, nil)
		for _, target := range targets {
			again = !c.send(ctx, target) || again
		}
		if again {
			sleep(ctx, againAfter)
			c.wake()
		}
	}
}

// againAfter is the delay before a failed publication of a report is retried.
const againAfter = time.Second

// flush sends the waiting reports of a key that is about to be released, and forgets the last ones of its targets: another member may publish others
// meanwhile.
func (c *Member) flush(l *coord.Lease) {
	c.out.mu.Lock()
	var targets []string
	for target, s := range c.out.waiting {
		if s.lease == l {
			targets = append(targets, target)
		}
	}
	clear(c.out.last)
	c.out.mu.Unlock()
	for _, target := range targets {
		c.send(context.Background(), target)
	}
	c.sendPulls(context.Background(), l)
}

// send publishes a target's reports. False: it cannot now, and they wait as long as this member is the owner.
func (c *Member) send(ctx context.Context, target string) bool {
	c.out.mu.Lock()
	s, ok := c.out.waiting[target]
	delete(c.out.waiting, target)
	c.out.mu.Unlock()
	if !ok {
		return true
	}
	key := reportKey(target)
	list := c.recorded(c.mirror.Snapshot(), target)
	for _, m := range s.made {
		data, err := m.data()
		if err != nil {
			c.o.Logger.Error("cannot publish a report", "target", target, "error", err)
			return true
		}
		last := int64(0)
		if len(list) > 0 {
			last = list[len(list)-1].n
		}
		list = append(list, numbered{c.number(last), m.did, data})
	}
	data := pack(trim(list))
	if len(data) > mostBytes {
		c.o.Logger.Error("a report is too large for the engine: other members show the one before; make targets of fewer pools", "target", target, "bytes", len(data), "most", mostBytes)
		return true
	}
	var ops []coord.Op
	parts := slices.Collect(slices.Chunk(data, partSize))
	for i, part := range parts {
		value := append([]byte{byte(len(parts))}, part...)
		ops = append(ops, coord.Op{Key: fmt.Sprintf("%s%d", key, i), Value: value, If: coord.Any})
	}
	for _, old := range c.mirror.Snapshot().List(key) {
		if !slices.ContainsFunc(ops, func(op coord.Op) bool { return op.Key == old.Key }) {
			ops = append(ops, coord.Op{Key: old.Key, Delete: true, If: coord.Any})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	version, err := s.lease.Write(ctx, ops...)
	if err != nil {
		c.o.Logger.Warn("cannot publish a report: other members show the one before", "target", target, "error", err)
		if errors.Is(err, coord.ErrLost) {
			return true
		}
		c.keep(target, s)
		return false
	}
	_ = c.mirror.Sync(ctx) // the next one comes after this one
	c.out.mu.Lock()
	c.out.last[target] = published{s.same, version}
	c.out.mu.Unlock()
	return true
}

// number is greater than last: a time, so that numbers grow from owner to owner.
func (c *Member) number(last int64) int64 { return max(time.Now().UnixMilli(), last+1) }

// keep puts reports back, before those that came meanwhile.
func (c *Member) keep(target string, s sending) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if now, newer := c.out.waiting[target]; newer {
		s = sending{now.lease, append(s.made, now.made...), now.same}
	}
	s.made = s.made[max(0, len(s.made)-keptReports):]
	c.out.waiting[target] = s
}

// recorded returns the reports in a target's record.
func (c *Member) recorded(now *coord.Snapshot, target string) []numbered {
	first := now.Get(reportKey(target) + "0")
	if len(first.Value) == 0 {
		return nil
	}
	var data []byte
	for i := range int(first.Value[0]) {
		if r := now.Get(fmt.Sprintf("%s%d", reportKey(target), i)); len(r.Value) > 0 {
			data = append(data, r.Value[1:]...)
		}
	}
	return unpack(data)
}

// Reports calls take with the reports published since its last call, the newest of each target last.
func (c *Member) Reports(take func(target string, data []byte)) {
	now := c.mirror.Snapshot()
	seen := map[string]bool{}
	for _, first := range now.List(reportPrefix) {
		name, part, _ := strings.Cut(strings.TrimPrefix(first.Key, reportPrefix), "/")
		if part != "0" || len(first.Value) == 0 {
			continue
		}
		target, err := url.PathUnescape(name)
		if err != nil {
			continue
		}
		seen[target] = true
		c.mu.Lock()
		old := c.reports[target]
		c.mu.Unlock()
		if old.version == first.Version {
			continue
		}
		list := c.recorded(now, target)
		for _, r := range list {
			if r.n > old.n {
				take(target, r.data)
				old.n = r.n
			}
		}
		old.version = first.Version
		c.mu.Lock()
		c.reports[target] = old
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for target := range c.reports {
		if !seen[target] {
			delete(c.reports, target)
		}
	}
}

// Again makes Reports give all reports once more.
func (c *Member) Again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.reports)
}

// DropSoon is Drop without waiting.
func (c *Member) DropSoon(target string) {
	c.out.mu.Lock()
	c.out.gone = append(c.out.gone, target)
	c.out.mu.Unlock()
	c.wake()
}

// Drop forgets the report of a removed target.
func (c *Member) Drop(ctx context.Context, target string) {
	var ops []coord.Op
	for _, r := range c.mirror.Snapshot().List(reportKey(target)) {
		ops = append(ops, coord.Op{Key: r.Key, Delete: true, If: r.Version})
	}
	if s := c.keeper.Session(); s != nil && len(ops) > 0 {
		ctx, cancel := context.WithTimeout(ctx, writeWithin)
		defer cancel()
		_, _ = s.Write(ctx, coord.Write{Ops: ops}) // else another member does it; none shows it
	}
}

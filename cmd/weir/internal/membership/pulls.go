package membership

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Pull is a pull request to publish.
type Pull struct {
	Source string
	Number int64
	Ended  bool
	// Data returns the record and a text that identifies its content. Short returns both without the plans.
	Data, Short func() (data, same []byte, err error)
}

// Pulls contains the published pull requests. The owner of a source publishes them for the pages of all
// members. The engine stores all open ones, and the last few that have ended.
type Pulls struct {
	mirror *coord.Mirror
	log    *slog.Logger
	wake   func() // starts the outbox

	mu      sync.Mutex
	waiting map[pullKey]waitingPull

	// read contains the version of each record at the last Read, and readAt the snapshot of that Read.
	// readAt is nil if Read skipped sources. Only Read uses them.
	read   map[pullKey]int64
	readAt *coord.Snapshot
}

// waitingPull is a pull request to send, under a lease of its source.
type waitingPull struct {
	Pull
	lease *coord.Lease
}

func newPulls(mirror *coord.Mirror, log *slog.Logger, wake func()) *Pulls {
	return &Pulls{mirror: mirror, log: log, wake: wake, waiting: map[pullKey]waitingPull{}}
}

// Publish sends a pull request to the other members, if it has changed. It does not block.
func (s *Pulls) Publish(l *coord.Lease, p Pull) {
	s.mu.Lock()
	s.waiting[pullKey{p.Source, p.Number}] = waitingPull{p, l}
	s.mu.Unlock()
	s.wake()
}

// send sends the waiting pull requests. It returns false if some must be sent again later.
func (s *Pulls) send(ctx context.Context) (done bool) { return s.sendUnder(ctx, nil) }

// flush sends the waiting pull requests of a key that is about to be released.
func (s *Pulls) flush(l *coord.Lease) { s.sendUnder(context.Background(), l) }

// sendUnder sends the waiting pull requests of a lease, or all if the lease is nil.
func (s *Pulls) sendUnder(ctx context.Context, l *coord.Lease) (done bool) {
	s.mu.Lock()
	var list []waitingPull
	for key, p := range s.waiting {
		if l == nil || p.lease == l {
			list = append(list, p)
			delete(s.waiting, key)
		}
	}
	s.mu.Unlock()
	done = true
	for _, p := range list {
		err := s.write(ctx, p)
		if err == nil {
			continue
		}
		s.log.Warn("cannot publish a pull request: other members show it as it was before", "source", p.Source, "number", p.Number, "error", err)
		if errors.Is(err, coord.ErrLost) {
			continue // the next owner of the source publishes it
		}
		done = false
		s.mu.Lock()
		if key := (pullKey{p.Source, p.Number}); s.waiting[key].lease == nil {
			s.waiting[key] = p
		}
		s.mu.Unlock()
	}
	return done
}

// write writes the record of a pull request, unless the engine already has the same record.
func (s *Pulls) write(ctx context.Context, p waitingPull) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	data, same, err := p.Data()
	if err != nil {
		return err
	}
	key := pullKey{p.Source, p.Number}
	others := pullsOf(s.mirror.Snapshot(), p.Source)
	var before keptPull
	for _, k := range others {
		if k.pullKey == key {
			before = k
		}
	}
	others = slices.DeleteFunc(others, func(k keptPull) bool { return k.pullKey == key })
	ops, left := makeRoom(others, len(data), p.Ended)
	if len(data) > left || len(data) > keptBytes {
		if data, same, err = p.Short(); err != nil {
			return err
		}
	}
	head := pullHead{ended: p.Ended, n: numberAfter(before.head.n), same: sha256.Sum256(same)}
	if before.head.same == head.same && before.head.ended == head.ended {
		return nil
	}
	parts := slices.Collect(slices.Chunk(data, partSize))
	head.parts = byte(len(parts)) //nolint:gosec // at most 3, because of keptBytes
	for i, part := range parts {
		value := part
		if i == 0 {
			value = append(head.bytes(), part...)
		}
		ops = append(ops, coord.Op{Key: key.prefix() + strconv.Itoa(i), Value: value, If: coord.Any})
	}
	for _, old := range before.keys[min(len(parts), len(before.keys)):] {
		ops = append(ops, coord.Op{Key: old, Delete: true, If: coord.Any})
	}
	if _, err := p.lease.Write(ctx, ops...); err != nil {
		return err
	}
	_ = s.mirror.Sync(ctx) // so that the next write is based on this one
	return nil
}

// Read calls take for the pull requests that were added or changed since the last call. It leaves the
// sources for which skip returns true to a later call. Only one goroutine may call it.
func (s *Pulls) Read(skip func(source string) bool, take func(source string, number int64, data []byte)) {
	now := s.mirror.Snapshot()
	if now == s.readAt {
		return
	}
	seen, complete := map[pullKey]int64{}, true
	for _, k := range pullsOf(now, "") {
		if skip(k.source) {
			complete = false
			continue
		}
		seen[k.pullKey] = k.version
		if s.read[k.pullKey] == k.version {
			continue
		}
		if data, ok := readPull(now, k); ok {
			take(k.source, k.number, data)
		}
	}
	s.read, s.readAt = seen, nil
	if complete {
		s.readAt = now
	}
}

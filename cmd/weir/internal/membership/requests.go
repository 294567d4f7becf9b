package membership

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Request asks all members to do something soon that any of them may be able to do. A lost request only
// costs time.
type Request struct {
	// Source names a source to read. If Pulls is set, pull request Pull of the source has changed instead.
	// Without a Source, a pass over Targets is requested.
	Source  string   `json:"source,omitempty"`
	Pulls   bool     `json:"pulls,omitempty"`
	Pull    int64    `json:"pull,omitempty"`
	Targets []string `json:"targets,omitempty"`
	// Heard identifies a comment on the pull request that a webhook reported, if any.
	Heard *Heard    `json:"heard,omitempty"`
	At    time.Time `json:"at"`
}

// Heard identifies the text of a comment, like forge.Heard.
type Heard struct {
	ID     int64  `json:"id"`
	Sum    string `json:"sum"`
	Edited bool   `json:"edited,omitempty"`
}

// requestFor is the time for which the engine keeps a request. Every member has read it by then.
const requestFor = time.Minute

// Requests contains the requests between members.
type Requests struct {
	mirror  *coord.Mirror
	session func() *coord.Session
	log     *slog.Logger
	wake    func() // starts the outbox

	mu      sync.Mutex
	waiting []Request

	// seen contains the keys of requests that were already read, or are older than this process. Only Read
	// uses it.
	seen map[string]bool
}

func newRequests(mirror *coord.Mirror, session func() *coord.Session, log *slog.Logger, wake func()) *Requests {
	r := &Requests{mirror: mirror, session: session, log: log, wake: wake, seen: map[string]bool{}}
	for _, old := range mirror.Snapshot().List(requestPrefix) {
		r.seen[old.Key] = true // other members have executed it
	}
	return r
}

// Send sends a request to all members, including this one.
func (r *Requests) Send(ctx context.Context, q Request) error {
	s := r.session()
	if s == nil {
		return fmt.Errorf("tell the other members: %w", coord.ErrLost)
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	q.At = time.Now().UTC()
	value, err := json.Marshal(q)
	if err != nil {
		return err
	}
	ops := []coord.Op{{Key: fmt.Sprintf("%s%015d-%s", requestPrefix, q.At.UnixMilli(), hex.EncodeToString(random[:])), Value: value, If: 0}}
	for _, old := range r.mirror.Snapshot().List(requestPrefix) {
		var was Request
		if err := json.Unmarshal(old.Value, &was); (err != nil || q.At.Sub(was.At) > requestFor) && len(ops) < coord.MaxOps/2 {
			ops = append(ops, coord.Op{Key: old.Key, Delete: true, If: coord.Any})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if _, err := s.Write(ctx, coord.Write{Ops: ops}); err != nil {
		return fmt.Errorf("tell the other members: %w", err)
	}
	_ = r.mirror.Sync(ctx) // otherwise the mirror reads it within a second
	return nil
}

// SendSoon is Send without waiting. If the request cannot be sent, it is dropped.
func (r *Requests) SendSoon(q Request) {
	r.mu.Lock()
	r.waiting = append(r.waiting, q)
	r.mu.Unlock()
	r.wake()
}

// send sends the waiting requests.
func (r *Requests) send(ctx context.Context) (done bool) {
	r.mu.Lock()
	waiting := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	for _, q := range waiting {
		if err := r.Send(ctx, q); err != nil {
			r.log.Warn("cannot send a hint to the other members: they find its cause by polling", "error", err)
		}
	}
	return true
}

// Read calls handle for each request since the last call. Only one goroutine may call it.
func (r *Requests) Read(handle func(Request)) {
	list := r.mirror.Snapshot().List(requestPrefix)
	now := make(map[string]bool, len(list))
	for _, record := range list {
		now[record.Key] = true
		var q Request
		if !r.seen[record.Key] && json.Unmarshal(record.Value, &q) == nil {
			handle(q)
		}
	}
	r.seen = now
}

package state

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// engine is an engine in memory, of which each member has a replica of its own.
type engine struct {
	mu      sync.Mutex
	version int64
	records map[string]coord.Record
	later   [][]coord.Op // commits whose time comes
}

type replica map[string]coord.Record

func (r replica) Get(key string) coord.Record { return r[key] }

func (r replica) List(prefix string) (out []coord.Record) {
	for key, record := range r {
		if strings.HasPrefix(key, prefix) {
			out = append(out, record)
		}
	}
	return out
}

// engineID is where a fake has its engine's id.
const engineID = "#engine"

func (r replica) EngineID() string { return string(r[engineID].Value) }

// is gives the engine an id, as another one has it.
func (e *engine) is(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records[engineID] = coord.Record{Key: engineID, Value: []byte(id)}
}

// way is a member's way to the engine.
type way struct {
	*engine
	have replica
	// fate says what becomes of a commit: "", "conflict", "lost before", "lost after",
	// "later", "down".
	fate func() string
	// cut says that the engine cannot be reached.
	cut bool
	// parts says that parts of long values have a fate, too.
	parts   bool
	commits int
}

func newEngine() *engine { return &engine{records: map[string]coord.Record{}} }

func (e *engine) way() *way {
	return &way{engine: e, have: replica{}, fate: func() string { return "" }}
}

func (w *way) Replica() Replica { return w.have }

var errDown = errors.New("connection refused")

func (w *way) Refresh(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return errDown
	}
	w.have = replica(maps.Clone(w.records))
	maps.DeleteFunc(w.have, func(key string, _ coord.Record) bool { return strings.HasPrefix(key, LogPrefix) })
	return nil
}

func (w *way) Commit(_ context.Context, ops []coord.Op) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	seen := map[string]bool{}
	for _, op := range ops {
		if seen[op.Key] || strings.ContainsFunc(op.Key, func(r rune) bool { return r < ' ' }) || len(op.Key) > 512 || len(op.Value) >= 300<<10 || len(ops) > 64 {
			panic("no engine takes " + op.Key)
		}
		seen[op.Key] = true
	}
	if w.cut {
		return errDown
	}
	fate := ""
	if !strings.HasPrefix(ops[0].Key, partPrefix) || w.parts {
		fate = w.fate()
	}
	switch fate {
	case "conflict":
		return coord.ErrConflict
	case "lost before":
		return coord.ErrUnknown
	case "lost after":
		_ = w.apply(ops)
		return coord.ErrUnknown
	case "later":
		w.later = append(w.later, ops)
		return coord.ErrUnknown
	case "down":
		return errDown
	}
	return w.apply(ops)
}

func (e *engine) apply(ops []coord.Op) error {
	for _, op := range ops {
		if op.If != coord.Any && e.records[op.Key].Version != op.If {
			return coord.ErrConflict
		}
	}
	e.version++
	for _, op := range ops {
		if op.Delete {
			delete(e.records, op.Key)
		} else {
			e.records[op.Key] = coord.Record{Key: op.Key, Value: slices.Clone(op.Value), Version: e.version}
		}
	}
	return nil
}

// arrive lets the oldest delayed commit have its effect.
func (e *engine) arrive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.later) > 0 {
		_ = e.apply(e.later[0])
		e.later = e.later[1:]
	}
}

func (w *way) List(_ context.Context, prefix, after string) (page []coord.Record, next string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, "", errDown
	}
	for _, key := range slices.Sorted(maps.Keys(w.records)) {
		if strings.HasPrefix(key, prefix) && cmp.Compare(key, after) > 0 {
			if len(page) == 3 {
				return page, page[2].Key, nil
			}
			page = append(page, w.records[key])
		}
	}
	return page, "", nil
}

func mustShare(t interface {
	Helper()
	Fatal(...any)
}, e Engine, member string,
) *Shared {
	t.Helper()
	s, err := OpenShared(context.Background(), e, member)
	if err != nil {
		t.Fatal(err)
	}
	s.pause = func(context.Context, time.Duration) {}
	return s
}

package refusals

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Stored holds the entries of a target that the next owner of the account and region has to know, so
// that it does not repeat failed attempts.
type Stored struct {
	// Wanted identifies what Git and the configuration wanted then.
	Wanted  string          `json:"wanted"`
	Refused []StoredRefusal `json:"refused,omitempty"`
	Writes  []StoredWrite   `json:"vain,omitempty"`
}

// StoredRefusal are steps that AWS refused.
type StoredRefusal struct {
	Key    string          `json:"key"` // Key.String
	Digest string          `json:"digest"`
	Until  time.Time       `json:"until"`
	Err    *observed.Error `json:"error"`
}

// StoredWrite is a change that weir wrote more than once and AWS did not keep.
type StoredWrite struct {
	Owner string `json:"owner"`
	// Pool identifies the pool that Git wanted then, empty for none.
	Pool      string `json:"pool,omitempty"`
	What      string `json:"what"`
	From      string `json:"from"`
	Unchanged int    `json:"unchanged"`
	Writes    int    `json:"writes"`
}

// Empty reports whether no attempt failed.
func (s Stored) Empty() bool { return len(s.Refused)+len(s.Writes) == 0 }

// Wanted is the desired state of a target now.
type Wanted struct {
	Target string
	// Wanted is Stored.Wanted of now, and Pools the target's pools. Rendered says that there is a
	// render, also one without pools.
	Wanted   string
	Rendered bool
	Pools    []intent.Pool
}

// Recalled reports whether the record contains the entries of the previous owner.
func (r *Record) Recalled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored != nil
}

// Recall takes in the stored entries, by target, and adds the entries of the given targets (see RecallNew).
func (r *Record) Recall(stored map[string]Stored, targets []Wanted, now time.Time) {
	r.mu.Lock()
	r.stored, r.unread = map[string]Stored{}, map[string]Stored{}
	for target, s := range stored {
		r.stored[target], r.unread[target] = s, s
	}
	r.mu.Unlock()
	r.RecallNew(targets, now)
}

// RecallNew adds the stored refusals of targets that appear for the first time since Recall, and the
// stored writes of targets that have a render for the first time. It leaves out the writes of a target
// that wants something else now, and entries that a request to try again lifts.
func (r *Record) RecallNew(targets []Wanted, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range targets {
		s, unread := r.unread[w.Target]
		if !unread {
			continue
		}
		r.recallRefused(s.Refused, now)
		if s.Refused = nil; !w.Rendered && len(s.Writes) > 0 {
			r.unread[w.Target] = s
			continue
		}
		delete(r.unread, w.Target)
		if w.Rendered && w.Wanted == s.Wanted {
			r.recallWrites(w.Target, s.Writes, w.Pools)
		}
	}
}

// recallRefused adds stored refusals, except those for which there is a newer one.
func (r *Record) recallRefused(stored []StoredRefusal, now time.Time) {
	for _, e := range stored {
		key := parseKey(e.Key)
		if _, newer := r.refused[key]; newer || e.Err == nil || lifted(r.view.Retry, key.Owner) {
			continue
		}
		until := now.Add(WaitFor(e.Err)) // the clock of the previous owner may have been ahead
		if e.Until.Before(until) {
			until = e.Until
		}
		r.refuse(key, refused{digest: e.Digest, until: until, err: e.Err})
	}
}

// recallWrites restores stored writes of a target, unless a user asked to try again.
func (r *Record) recallWrites(target string, stored []StoredWrite, pools []intent.Pool) {
	for _, s := range stored {
		if lifted(r.view.Retry, s.Owner) {
			continue
		}
		w := written{from: s.From, unchanged: s.Unchanged, writes: s.Writes}
		for i := range pools {
			if pools[i].Key.String() == s.Pool {
				w.pool = &pools[i]
			}
		}
		if r.view.writes == nil {
			r.view.writes = map[Key]written{}
		}
		r.view.writes[Key{target, s.Owner, s.What}] = w
	}
}

// ToStore returns the entries of targets that differ from the store's content. An empty Stored replaces one
// that is no longer needed. If the given targets are all targets, the result also includes entries of any
// other target. ToStore returns nothing before Recall.
func (r *Record) ToStore(targets []Wanted, all bool, now time.Time) map[string]Stored {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stored == nil {
		return nil
	}
	out := map[string]Stored{}
	for target := range r.stored {
		if all {
			out[target] = Stored{}
		}
	}
	for _, w := range targets {
		s, stored := r.store(w, now), r.stored[w.Target]
		switch {
		case !s.Empty():
			out[w.Target] = s
		case !stored.Empty():
			out[w.Target] = Stored{}
		}
	}
	maps.DeleteFunc(out, func(target string, s Stored) bool { return reflect.DeepEqual(s, r.stored[target]) })
	return out
}

// store returns the refusals and repeated writes of a target to store, in a stable order.
func (r *Record) store(w Wanted, now time.Time) Stored {
	s := Stored{Wanted: w.Wanted}
	if unread, is := r.unread[w.Target]; is && len(unread.Writes) > 0 {
		s.Wanted, s.Writes = unread.Wanted, slices.Clone(unread.Writes)
	}
	for key, e := range r.refused {
		if key.Target == w.Target && e.unsent == 0 && !now.After(e.until) {
			err := *e.err
			err.Err = nil // it repeats the message, and may contain anything
			s.Refused = append(s.Refused, StoredRefusal{key.String(), e.digest, e.until.UTC().Round(0), &err})
		}
	}
	slices.SortFunc(s.Refused, func(x, y StoredRefusal) int { return cmp.Compare(x.Key, y.Key) })
	for key, e := range r.view.writes {
		if key.Target == w.Target && max(e.unchanged, e.writes) > 1 {
			v := StoredWrite{Owner: key.Owner, What: key.What, From: e.from, Unchanged: e.unchanged, Writes: e.writes}
			if e.pool != nil {
				v.Pool = e.pool.Key.String()
			}
			s.Writes = append(s.Writes, v)
		}
	}
	slices.SortFunc(s.Writes, func(a, b StoredWrite) int { return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.What, b.What)) })
	return s
}

// Stored notes that the store contains the entries that ToStore returned for a target.
func (r *Record) Stored(target string, s Stored) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Empty() {
		delete(r.stored, target)
		return
	}
	r.stored[target] = s
}

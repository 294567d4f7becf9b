package reconciler

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
)

// Tried holds the failed attempts for a target: the next owner of the scope does not repeat them.
type Tried struct {
	// Wanted identifies what Git and the configuration wanted then (Desired.Wanted).
	Wanted  string       `json:"wanted"`
	Refused []Refused    `json:"refused,omitempty"`
	Vain    []basis.Vain `json:"vain,omitempty"`
}

// Refused are steps that AWS refused.
type Refused struct {
	Key    string          `json:"key"` // of the pool, and of the step where it parks alone
	Digest string          `json:"digest"`
	Until  time.Time       `json:"until"`
	Err    *observed.Error `json:"error"`
}

// Nothing reports whether no attempt failed.
func (t Tried) Nothing() bool { return len(t.Refused)+len(t.Vain) == 0 }

// recall takes in the earlier owner's failed attempts, in the first pass of a scope. It leaves out
// what somebody has asked to be tried again.
func (s *Scope) recall(b Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Tries == nil || s.kept != nil {
		return
	}
	kept, err := b.Tries.Recall()
	if err != nil {
		s.logger().Warn("what was tried in vain before cannot be read, and is tried again", "error", err)
		return
	}
	s.kept = map[string]Tried{}
	for target, t := range kept {
		s.kept[target] = t
		i := slices.IndexFunc(b.Targets, func(d Desired) bool { return d.Policy.Target == target })
		if i < 0 {
			continue
		}
		for _, r := range t.Refused {
			_, owner, _ := strings.Cut(r.Key, "\x00")
			owner, _, _ = strings.Cut(owner, "\x00")
			if r.Err == nil || s.memory.Retry[owner] {
				continue
			}
			if s.parked == nil {
				s.parked = map[string]parking{}
			}
			until := s.now().Add(parkedFor(r.Err)) // the owner before may have had another time
			if r.Until.Before(until) {
				until = r.Until
			}
			s.parked[r.Key] = parking{digest: r.Digest, until: until, err: r.Err}
		}
		if d := b.Targets[i]; d.Set != nil && d.Wanted == t.Wanted {
			s.memory.Recall(target, slices.DeleteFunc(slices.Clone(t.Vain), func(v basis.Vain) bool { return s.memory.Retry[v.Owner] }), d.Set.Pools)
		}
	}
}

// keepTried keeps the failed attempts if they have changed. If it fails, the next pass tries to
// keep them again.
func (s *Scope) keepTried(b Batch) {
	s.mu.Lock()
	if b.Tries == nil || s.kept == nil {
		s.mu.Unlock()
		return
	}
	now := map[string]Tried{}
	for _, d := range b.Targets {
		t := Tried{Wanted: d.Wanted, Vain: s.memory.Vain(d.Policy.Target)}
		for key, p := range s.parked {
			if target, _, _ := cutTarget(key); target == d.Policy.Target && p.changed == 0 && !s.now().After(p.until) {
				refused := *p.err
				refused.Err = nil // it repeats the message, and may hold anything
				t.Refused = append(t.Refused, Refused{key, p.digest, p.until.UTC().Round(0), &refused})
			}
		}
		slices.SortFunc(t.Refused, func(x, y Refused) int { return cmp.Compare(x.Key, y.Key) })
		if !t.Nothing() {
			now[d.Policy.Target] = t
		}
	}
	kept := s.kept
	s.mu.Unlock()
	for target := range kept {
		if _, still := now[target]; !still {
			now[target] = Tried{}
		}
	}
	for target, t := range now {
		if reflect.DeepEqual(t, kept[target]) {
			continue
		}
		if err := b.Tries.Keep(target, t); err != nil {
			s.logger().Warn("what was tried in vain cannot be kept for the next owner", "target", target, "error", err)
			continue
		}
		if t.Nothing() {
			delete(kept, target)
		} else {
			kept[target] = t
		}
	}
}

package refusals

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// AWS may accept a value and return another: a synonym, a value with a member dropped, filled in or
// reordered. weir would write such a difference again in every pass, and some of these writes
// replace machines. So weir writes a change at most twice if it reads back as before both times, and
// at most five times if it makes, deletes or rolls out something. It tries again once AWS returns
// something else, the pool changes in Git, or somebody requests it. A restart forgets this, and
// costs two more writes.

const (
	// mostUnchanged bounds the writes of a change while AWS keeps returning the same.
	mostUnchanged = 2
	// mostMade bounds how often something is made, deleted or rolled out. AWS may not show the result for a
	// while. Two instances may also undo each other's changes, which rollout-contested reports earlier.
	mostMade = 5
	// mostWrites bounds the writes of a value while AWS returns a different value every time.
	mostWrites = 5
)

// written is one change since AWS last returned what weir wrote.
type written struct {
	// from identifies what AWS returned before the last unchanged writes. unchanged is their number,
	// and writes is the number of all writes.
	from              string
	unchanged, writes int
	// pool is the pool that Git wanted then.
	pool *intent.Pool
}

// Write is a change of a step as the record knows it.
type Write struct {
	Key    Key
	from   string
	change step.Change
}

// WritesOf returns the changes of a step of a target. A creation is one change. So is a step that
// changes no field: its reason identifies it.
func WritesOf(s step.Step, target string) []Write {
	key := func(more ...[]byte) Key {
		text := strings.Join([]string{fmt.Sprintf("%T", s.Do), string(s.Resource), s.About().EksCluster(), s.Name}, "\x00")
		if content := s.Makes(); content != "" {
			text += "\x00" + content // several pools may share the template
		}
		return Key{target, s.Owner(), content.ShortHash(append(more, []byte(text))...)}
	}
	if s.Verb == step.Create || len(s.Changes) == 0 {
		return []Write{{Key: key(), from: content.ShortHash([]byte(reworded.Replace(s.Reason)))}}
	}
	out := make([]Write, len(s.Changes))
	for i, ch := range s.Changes {
		out[i] = Write{Key: key([]byte(ch.Field), content.Canonical(ch.To)), from: content.ShortHash(content.Canonical(ch.From)), change: ch}
	}
	return out
}

// reworded restores the first wording of reasons that have changed since. Members of other versions
// share the stored writes and identify steps without changes by that wording, so a reason of such a
// step may only change together with an entry here.
var reworded = strings.NewReplacer(
	" no longer exists", " is not there to go by",
	"; new machines are launched, as ", "; machines are launched anew, as ",
)

// Wrote adds a step of a target that AWS accepted at a revision.
func (r *Record) Wrote(target, revision string, s step.Step, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	writes := WritesOf(s, target)
	if r.view.writes == nil {
		r.view.writes = map[Key]written{}
	}
	for _, w := range writes {
		before := r.view.writes[w.Key]
		if !before.of(s.Wanted) {
			before = written{}
		}
		if before.from != w.from {
			before.unchanged = 0
		}
		r.view.writes[w.Key] = written{from: w.from, unchanged: before.unchanged + 1, writes: before.writes + 1, pool: s.Wanted}
	}
	r.corrected(writes, revision, s, now)
}

func (w written) of(pool *intent.Pool) bool { return w.pool == pool || reflect.DeepEqual(w.pool, pool) }

// Taken forgets the writes of a target that its plan no longer asks for, because AWS returns what weir
// wrote. The plan says nothing about unclear pools ("namespace/name"): they cannot be planned, or a
// rollout is in progress.
func (r *Record) Taken(target string, steps []step.Step, unclear map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.view.writes)+len(r.view.corrections) == 0 {
		return
	}
	asked := map[Key]bool{}
	for _, s := range steps {
		for _, w := range WritesOf(s, target) {
			asked[w.Key] = true
		}
	}
	taken := func(key Key) bool {
		return key.Target == target && !asked[key] && !unclear[key.Owner] && (len(unclear) == 0 || !step.OfLaunchConfig(key.Owner))
	}
	maps.DeleteFunc(r.view.writes, func(key Key, _ written) bool { return taken(key) })
	for key, c := range r.view.corrections {
		if taken(key) {
			c.kept = true
			r.view.corrections[key] = c
		}
	}
}

// HasWrites reports whether there are writes at all.
func (v View) HasWrites() bool { return len(v.writes) > 0 }

// Spent reports whether a change has been written as often as it may be.
func (v View) Spent(s step.Step, w Write) bool {
	before, known := v.writes[w.Key]
	if !known || !before.of(s.Wanted) {
		return false
	}
	most := mostUnchanged
	if s.Makes() != "" || s.Verb == step.Create || s.Verb == step.Delete || s.Rollout != "" {
		most = mostMade
	}
	return before.from == w.from && before.unchanged >= most || w.change.To != nil && before.writes >= mostWrites
}

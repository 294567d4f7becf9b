package basis

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// AWS may accept a value and return another: a synonym, a value with a member dropped, filled in or
// reordered. weir would write such a difference again in every pass, and some of these writes
// replace machines. So weir writes a change at most twice if it reads back as before each time, and
// at most five times if it makes, deletes or rolls out something. It tries again once AWS returns
// something else, the pool changes in Git, or somebody requests it. A restart forgets this, and
// costs two more writes.

// CodeNotTaken is the diagnostic of a change that AWS takes and does not keep.
const CodeNotTaken = "not-taken"

// CodeImmutable is the diagnostic of a nodegroup that EKS cannot change to what Git wants.
const CodeImmutable = "nodegroup-immutable"

const (
	// mostUnchanged bounds the writes of a change while AWS keeps returning the same.
	mostUnchanged = 2
	// mostMade bounds how often something is made, deleted or rolled out. AWS may not show that for
	// a while, and two weirs undo it for each other, which rollout-contested reports earlier.
	mostMade = 5
	// mostWrites bounds the writes of a value while AWS returns a different value every time.
	mostWrites = 5
)

// WriteKey names a change of a target's pool, or of what else owns a step.
type WriteKey struct {
	Target, Owner string
	what          string // of the action, the resource, the field and the wanted value
}

// Written is the memory of one change since AWS last answered what it wrote.
type Written struct {
	// from identifies what AWS returned before the last unchanged writes. unchanged is their number,
	// and writes is the number of all writes.
	from              string
	unchanged, writes int
	// pool is the pool that Git wanted then.
	pool *intent.Pool
}

// Write is a change in the form of the memory.
type Write struct {
	Key    WriteKey
	from   string
	change step.Change
}

// writes are the changes of a step. A creation is one, and so is a step that changes no
// field: that is known by its reason.
func WritesOf(s step.Step, target string) []Write {
	key := func(more ...[]byte) WriteKey {
		text := strings.Join([]string{fmt.Sprintf("%T", s.Do), string(s.Resource), s.About().EksCluster(), s.Name}, "\x00")
		if content := s.Makes(); content != "" {
			text += "\x00" + content // one of several for pools that share the template
		}
		return WriteKey{target, s.Owner(), content.ShortHash(append(more, []byte(text))...)}
	}
	if s.Verb == step.Create || len(s.Changes) == 0 {
		return []Write{{Key: key(), from: content.ShortHash([]byte(s.Reason))}}
	}
	out := make([]Write, len(s.Changes))
	for i, ch := range s.Changes {
		out[i] = Write{Key: key([]byte(ch.Field), content.Canonical(ch.To)), from: content.ShortHash(content.Canonical(ch.From)), change: ch}
	}
	return out
}

// Spent reports whether a change has been written as often as it may be.
func (m Memory) Spent(s step.Step, w Write) bool {
	before, known := m.Written[w.Key]
	if !known || !before.of(s.Wanted) {
		return false
	}
	most := mostUnchanged
	if s.Makes() != "" || s.Verb == step.Create || s.Verb == step.Delete || s.Rollout != "" {
		most = mostMade
	}
	return before.from == w.from && before.unchanged >= most || w.change.To != nil && before.writes >= mostWrites
}

func (w Written) of(pool *intent.Pool) bool { return w.pool == pool || reflect.DeepEqual(w.pool, pool) }

// Wrote remembers that AWS took a step of a target.
func (m *Memory) Wrote(target string, s step.Step) {
	if m.Written == nil {
		m.Written = map[WriteKey]Written{}
	}
	for _, w := range WritesOf(s, target) {
		now := m.Written[w.Key]
		if !now.of(s.Wanted) {
			now = Written{}
		}
		if now.from != w.from {
			now.unchanged = 0
		}
		m.Written[w.Key] = Written{from: w.from, unchanged: now.unchanged + 1, writes: now.writes + 1, pool: s.Wanted}
	}
}

// WriteAgain forgets what was written for a pool ("namespace/name").
func (m *Memory) WriteAgain(pool string) {
	maps.DeleteFunc(m.Written, func(key WriteKey, _ Written) bool { return key.Owner == pool || step.OfLaunchConfig(key.Owner) })
	maps.DeleteFunc(m.Corrections, func(key WriteKey, _ Correction) bool { return key.Owner == pool || step.OfLaunchConfig(key.Owner) })
}

// ForgetWrites forgets what was written for targets that are not among the known.
func (m *Memory) ForgetWrites(known map[string]bool) {
	maps.DeleteFunc(m.Written, func(key WriteKey, _ Written) bool { return !known[key.Target] })
	maps.DeleteFunc(m.Corrections, func(key WriteKey, _ Correction) bool { return !known[key.Target] })
}

// A reviewed plan is applied with the images that it showed, whatever was published
// since: the content of a version, with its image as Git names it, says which version of
// which review it is. So it does not matter how a pull request was merged, nor whether
// its forge has reported that yet.

// ReviewedImage is the image of a version in a reviewed plan.
type ReviewedImage struct {
	Lookup intent.Lookup `json:"lookup"`
	// ID is the image's; empty where the version keeps the image that the pool has. Words
	// names it for people.
	ID    string `json:"id,omitempty"`
	Words string `json:"words,omitempty"`
	// By says who showed the plan, At when it was made. Outdated says that this is too
	// long ago.
	By       string    `json:"-"`
	At       time.Time `json:"-"`
	Outdated bool      `json:"-"`
}

// ImageCheck asks whether an image is an answer to a lookup.
type ImageCheck struct {
	Lookup intent.Lookup
	ID     string
}

// Settled is the pool that Git wanted when it last had converged. The process remembers
// it, and a restart forgets it: what differs then may be a change of Git that was never
// applied, so that it is called drift only where the target reports and never changes
// anything.
type Settled struct {
	Pool    *intent.Pool
	Answers observed.Answers
}

// Of reports whether Git wants the same of the pool as it did then.
func (s Settled) Of(pool *intent.Pool) bool {
	return s.Pool != nil && (s.Pool == pool || reflect.DeepEqual(s.Pool, pool))
}

// Same reports whether the pool wants the same as then, from Git and from AWS's answers.
func (s Settled) Same(pool *intent.Pool, answers observed.Answers) bool {
	if !s.Of(pool) {
		return false
	}
	for l := range pool.Lookups() {
		// A launch template that the pool brings along is itself what drifts.
		if l.Kind != intent.TemplateByName && l.Kind != intent.TemplateByID && !reflect.DeepEqual(s.Answers[l], answers[l]) {
			return false
		}
	}
	return true
}

// Placed reports whether the pool wants what it wanted then, in the same subnets. It is
// Same for a pool of a target that is held: nothing else that AWS answers is taken there.
func (s Settled) Placed(pool *intent.Pool, answers observed.Answers) bool {
	if !s.Of(pool) {
		return false
	}
	l := SubnetsOf(pool)
	return slices.Equal(s.Answers[l].Subnets, answers[l].Subnets)
}

// settled reports whether the pool wants the same as when it last had converged.
func (in Input) settled(pool *intent.Pool) bool {
	then, known := in.Memory.Settled[SettledKey(in.Policy.Target, pool.Key.String())]
	return known && in.same(then, pool)
}

func (in Input) same(then Settled, pool *intent.Pool) bool {
	if in.Earlier(pool.Key.String()) != nil {
		return then.Placed(pool, in.Answers)
	}
	return then.Same(pool, in.Answers)
}

// Drifts reports whether what differs of the pool was changed outside Git; known is whether
// the pool is known to have converged.
func (in Input) Drifts(pool *intent.Pool) (drifts, known bool) {
	then, known := in.Memory.Settled[SettledKey(in.Policy.Target, pool.Key.String())]
	return known && in.same(then, pool), known
}

// SettledKey is a pool's key in Memory.Settled.
func SettledKey(target, pool string) string { return target + "\x00" + pool }

// SettledOf reports whether a key of Memory.Settled is that of a pool of the targets.
func SettledOf(key string, targets map[string]bool) bool {
	target, _, _ := strings.Cut(key, "\x00")
	return targets[target]
}

// Vain is a change that was written more than once without AWS keeping it, as the next
// owner of an account and region has to know it.
type Vain struct {
	Owner string `json:"owner"`
	// Pool identifies the pool that Git wanted then, empty for none.
	Pool      string `json:"pool,omitempty"`
	What      string `json:"what"`
	From      string `json:"from"`
	Unchanged int    `json:"unchanged"`
	Writes    int    `json:"writes"`
}

// Vain are the changes of a target that were written more than once, in order.
func (m Memory) Vain(target string) (out []Vain) {
	for key, w := range m.Written {
		if key.Target == target && max(w.unchanged, w.writes) > 1 {
			v := Vain{Owner: key.Owner, What: key.what, From: w.from, Unchanged: w.unchanged, Writes: w.writes}
			if w.pool != nil {
				v.Pool = w.pool.Key.String()
			}
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b Vain) int { return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.What, b.What)) })
	return out
}

// Recall takes in another owner's failed writes, as long as Git wants the same of each pool as it
// did then.
func (m *Memory) Recall(target string, list []Vain, pools []intent.Pool) {
	for _, v := range list {
		w := Written{from: v.From, unchanged: v.Unchanged, writes: v.Writes}
		for i := range pools {
			if pools[i].Key.String() == v.Pool {
				w.pool = &pools[i]
			}
		}
		if m.Written == nil {
			m.Written = map[WriteKey]Written{}
		}
		m.Written[WriteKey{target, v.Owner, v.What}] = w
	}
}

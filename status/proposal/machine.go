package proposal

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
)

// Entry is a pointer to the entry of a kind, which embeds State.
type Entry[E any] interface {
	*E
	state() *State
}

// Machine opens, updates and closes the pull requests of one kind for one source. A turn does what
// is missing, so a crash, a lost answer or another member changes nothing: every write is preceded
// by a look at the forge or the branch, and by a note in the record.
//
// These rules hold for every kind:
//   - A branch moves to descendants only. A commit is noted before it is pushed. A tip that is not
//     noted is weir's own only if its author, its committer and its trailers say so.
//   - Once somebody else has pushed to a branch, weir leaves the pull request alone for good: it
//     neither pushes to it nor closes it.
//   - Pull requests from forks, and those into another branch, are never weir's.
//   - A pull request that has ended is not opened again, unless the kind asks for it.
//   - An open pull request is changed at most as often as Options.Every.
type Machine[E any, P Entry[E]] struct {
	Options
	kind    Kind[E]
	records state.Bucket[record[E]]
	mu      sync.Mutex // of all work: people may ask during a turn
	// list holds the open pull requests, as they were listed last, at cursor.
	list   []forge.PullRequest
	cursor forge.Cursor
}

type record[E any] struct {
	Entries []E `json:"entries"`
}

// New makes a machine.
func New[E any, P Entry[E]](o Options, kind Kind[E]) *Machine[E, P] {
	return &Machine[E, P]{Options: o, kind: kind, records: state.Bucket[record[E]]{Name: o.Record}}
}

// turn is the work of one turn: the entries, and how to keep them.
type turn[E any, P Entry[E]] struct {
	*Machine[E, P]
	store    state.Store
	now      Now
	all, had []E
	// listed says that the open pull requests were listed in this turn, or why they could not be.
	listed   bool
	unlisted error
}

func (m *Machine[E, P]) newTurn(store state.Store, now Now) (*turn[E, P], error) {
	all, err := m.Read(store)
	return &turn[E, P]{Machine: m, store: store, now: now, all: all, had: slices.Clone(all)}, err
}

// Read returns the entries that are kept.
func (m *Machine[E, P]) Read(store state.Store) ([]E, error) {
	var had record[E]
	err := store.View(func(tx *state.Tx) (err error) {
		had, _, err = m.records.Get(tx, m.Source)
		return err
	})
	return had.Entries, err
}

// save keeps the entries, if they have changed.
func (t *turn[E, P]) save() error {
	all := slices.DeleteFunc(slices.Clone(t.all), func(e E) bool { return P(&e).state().drop })
	if reflect.DeepEqual(all, t.had) {
		return nil
	}
	t.had = all
	return t.store.Update(func(tx *state.Tx) error { return t.records.Put(tx, t.Source, record[E]{all}) })
}

// Turn checks the open pull requests, then opens, updates or closes what is due. again is the time
// of the next turn if no event comes earlier, or zero. The store is
// that of the source's lease if several weirs share the work.
func (m *Machine[E, P]) Turn(ctx context.Context, store state.Store, now Now) (again time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.newTurn(store, now)
	if err != nil {
		return again, err
	}
	// What became of the open ones decides about new ones.
	for i := range t.all {
		if e := P(&t.all[i]); e.state().IsOpen() && !now.Time.Before(e.state().After) {
			if err := t.watch(ctx, e); err != nil {
				t.later(ctx, e, err)
			}
			if err := t.save(); err != nil {
				return again, err
			}
		}
	}
	t.all, again, err = m.kind.Entries(ctx, t.all, now)
	if err != nil {
		return again, err
	}
	for i := range t.all {
		e := P(&t.all[i])
		at := e.state().After
		if !now.Time.Before(at) && !e.state().drop {
			at = t.step(ctx, e)
			if ctx.Err() != nil {
				return again, ctx.Err()
			}
			if err := t.save(); err != nil {
				return again, err
			}
		}
		if at.After(now.Time) && (again.IsZero() || at.Before(again)) {
			again = at
		}
	}
	m.kind.Finish(ctx, t.all)
	return again, t.save()
}

// step opens, updates or closes the pull request of one entry if that is due, and returns the time
// of its next step.
func (t *turn[E, P]) step(ctx context.Context, e P) (at time.Time) {
	s := e.state()
	var err error
	if s.Phase != Theirs {
		at, err = t.act(ctx, e, false)
	}
	var hand *Refusal
	var gone *NotNeeded
	switch {
	case errors.As(err, &gone):
		t.end(e, Obsolete, join(t.kind.Texts(e).Unneeded, gone.Why))
	case errors.As(err, &hand) && s.IsOpen():
		s.Changed = t.now.Time
		t.say(e, WasRefused, join(t.kind.Texts(e).ByHand, hand.Text))
	case errors.As(err, &hand):
		t.end(e, ByHand, join(t.kind.Texts(e).ByHand, hand.Text))
	case err != nil:
		t.later(ctx, e, err)
	default:
		s.Tries, s.After = 0, time.Time{}
	}
	if at.Before(s.After) {
		at = s.After
	}
	return at
}

// Ask does at once what is missing of one entry, because a user requested it. It uses the entry
// that is the same, or otherwise fresh. with checks and changes the entry before. Options.Every
// does not apply to requested pull requests.
func (m *Machine[E, P]) Ask(ctx context.Context, store state.Store, now Now, fresh E, same func(*E) bool, with func(*E) error) (e E, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.newTurn(store, now)
	if err != nil {
		return e, err
	}
	i := slices.IndexFunc(t.all, func(o E) bool { return same(&o) })
	if i >= 0 && P(&t.all[i]).state().IsOpen() {
		if err := t.watch(ctx, &t.all[i]); err != nil {
			return t.all[i], err
		}
		if err := t.save(); err != nil {
			return t.all[i], err
		}
	}
	if i < 0 || P(&t.all[i]).state().drop {
		i, t.all = len(t.all), append(t.all, fresh)
	}
	p := P(&t.all[i])
	if err := with(p); err != nil {
		return *p, err
	}
	if err := t.save(); err != nil {
		return *p, err
	}
	_, err = t.act(ctx, p, true)
	switch hand := (*Refusal)(nil); {
	case err == nil:
		p.state().Tries = 0
	case !errors.As(err, &hand):
		t.later(ctx, p, err)
	}
	return *p, errors.Join(err, t.save())
}

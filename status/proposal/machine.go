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

// Machine opens, updates and closes the pull requests of one kind for one source. Each turn does only what
// is still missing, so a crash, a lost response or another member does no harm: before every write, Machine
// reads the forge or the branch, and stores the intended write.
//
// These rules hold for every kind:
//   - A branch only advances to descendants. A commit is recorded before it is pushed. A tip
//     without a record is weir's own only if its author, its committer and its trailers show it.
//   - After somebody else has pushed to a branch, weir never changes the pull request again: it
//     neither pushes to it nor closes it.
//   - Pull requests from forks, and into other branches, are never weir's.
//   - A pull request that has ended is not opened again, unless the kind requires it.
//   - An open pull request is changed at most once per Options.Every.
type Machine[E any, P Entry[E]] struct {
	Options
	kind    Kind[E]
	records state.Bucket[record[E]]
	mu      sync.Mutex // for all work, because users may call Ask during a turn
	// list contains the open pull requests as last listed, at cursor.
	list   []forge.PullRequest
	cursor forge.Cursor
}

type record[E any] struct {
	Entries []E `json:"entries"`
}

// New returns a Machine.
func New[E any, P Entry[E]](o Options, kind Kind[E]) *Machine[E, P] {
	return &Machine[E, P]{Options: o, kind: kind, records: state.Bucket[record[E]]{Name: o.Record}}
}

// turn is the work of one turn: the entries, and the store for them.
type turn[E any, P Entry[E]] struct {
	*Machine[E, P]
	store    state.Store
	now      Now
	all, had []E
	// listed says that the open pull requests were listed in this turn, or that listing them failed.
	listed   bool
	unlisted error
}

func (m *Machine[E, P]) newTurn(store state.Store, now Now) (*turn[E, P], error) {
	all, err := m.Read(store)
	return &turn[E, P]{Machine: m, store: store, now: now, all: all, had: slices.Clone(all)}, err
}

// Read returns the stored entries.
func (m *Machine[E, P]) Read(store state.Store) ([]E, error) {
	var had record[E]
	err := store.View(func(tx *state.Tx) (err error) {
		had, _, err = m.records.Get(tx, m.Source)
		return err
	})
	return had.Entries, err
}

// save stores the entries if they have changed.
func (t *turn[E, P]) save() error {
	all := slices.DeleteFunc(slices.Clone(t.all), func(e E) bool { return P(&e).state().drop })
	if reflect.DeepEqual(all, t.had) {
		return nil
	}
	t.had = all
	return t.store.Update(func(tx *state.Tx) error { return t.records.Put(tx, t.Source, record[E]{all}) })
}

// Turn checks the open pull requests, then opens, updates or closes pull requests that are due. again is
// the time of the next turn if no event comes earlier, or zero. If several weirs share the work, store must
// be the store of the source's lease.
func (m *Machine[E, P]) Turn(ctx context.Context, store state.Store, now Now) (again time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.newTurn(store, now)
	if err != nil {
		return again, err
	}
	// The results of open pull requests affect new ones.
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
			at = t.advance(ctx, e)
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

// advance opens, updates or closes the pull request of one entry if that is due, and returns the time of its
// next step.
func (t *turn[E, P]) advance(ctx context.Context, e P) (at time.Time) {
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

// Ask executes the step of one entry at once, because a user requested it. It uses the stored entry for
// which same returns true, or otherwise fresh. with validates and changes the entry first. Options.Every
// does not apply.
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

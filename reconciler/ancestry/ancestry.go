// Package ancestry relates the commits that AWS's tags name to the commits that weir follows. Git
// orders two commits of one history. This package remembers what Git does not record: where branches were before they were reset, and which commits a person
// has decided to overwrite.
package ancestry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source/snapshot"
)

const (
	// mostLeft bounds the commits that branches were reset from, mostLost those and the ones
	// before them by name, mostLifted those that are written over, mostAsked those that Git
	// is asked for, of each repository.
	mostLeft   = 100
	mostLost   = 20_000
	mostLifted = 1000
	mostAsked  = 1000
	// unknownFor is for how long a commit that the repository does not have stops pools. By
	// then it is taken for one of a history that was rewritten while no weir looked.
	unknownFor = 6 * time.Hour
)

// Git is a source's repository.
type Git interface {
	Standings(ctx context.Context, heads, others []string) (map[string]snapshot.Standing, error)
	Descends(ctx context.Context, revision, from string) (bool, error)
	// Lost names the commits that a branch loses when it is reset, the youngest first.
	Lost(ctx context.Context, from, to string) ([]string, error)
	// Nudge makes the source look at its repository soon.
	Nudge()
}

// record holds the facts known of a repository, whichever of its branches are followed.
type record struct {
	// Heads holds the last followed commit of each source, by its name.
	Heads map[string]string `json:"heads,omitempty"`
	// Left are commits that sources went away from to such as do not descend from them:
	// what AWS holds of those was made by this weir, or with its knowledge.
	Left []string `json:"left,omitempty"`
	// Lifted are commits, as AWS names them, that a person has decided to overwrite.
	Lifted []string `json:"lifted,omitempty"`
}

// records are by the repository's id.
var records = state.Bucket[record]{Name: "lineage"}

// Tracker keeps the lineages of all repositories.
type Tracker struct {
	db  state.Store
	log *slog.Logger

	mu    state.Turn
	known map[string]record           // those that could not be written
	lines map[string]map[string]*Line // by repository, then source
}

// Open reads nothing yet.
func Open(db state.Store, log *slog.Logger) *Tracker {
	return &Tracker{db: db, log: log, known: map[string]record{}, lines: map[string]map[string]*Line{}}
}

// Line is the lineage of one source. It is a reconciler.Ancestry.
type Line struct {
	tracker  *Tracker
	id, name string
	git      Git
	// nudge starts new passes once Git has answered.
	nudge func()
	now   func() time.Time

	// guarded by book.mu: when the last look that worked began and what it found, whether all
	// that was lost until then is written down, since when Git is asked for commits, and
	// since when passes wait for that, zero if none does.
	foundAt time.Time
	head    string
	named   bool
	asked   map[string]time.Time
	waiting time.Time
}

// Line returns the lineage of a source of the repository with the id.
func (b *Tracker) Line(id, name string, git Git, nudge func(), now func() time.Time) *Line {
	return &Line{tracker: b, id: id, name: name, git: git, nudge: nudge, now: now, asked: map[string]time.Time{}}
}

// Follow sets the sources, and forgets what no source names any more: repositories without a
// source, and the last commit of a removed source. The commit that the removed source had applied
// is not a newer commit of another source, so Follow marks it as left.
func (b *Tracker) Follow(lines []*Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = map[string]map[string]*Line{}
	for _, l := range lines {
		if b.lines[l.id] == nil {
			b.lines[l.id] = map[string]*Line{}
		}
		b.lines[l.id][l.name] = l
	}
	maps.DeleteFunc(b.known, func(id string, _ record) bool { return b.lines[id] == nil })
	for id, here := range b.lines {
		r := b.of(id)
		heads, left := map[string]string{}, slices.Clone(r.Left)
		for _, name := range slices.Sorted(maps.Keys(r.Heads)) {
			if head := r.Heads[name]; here[name] != nil {
				heads[name] = head
			} else if !slices.Contains(left, head) {
				left = append(left, head)
			}
		}
		if len(heads) < len(r.Heads) {
			r.Heads, r.Left = heads, left[max(0, len(left)-mostLeft):]
			b.set(id, r)
		}
	}
	err := b.db.Update(func(tx *state.Tx) error {
		var gone []string
		err := records.ForEach(tx, "", func(id string, _ record) error {
			if b.lines[id] == nil {
				gone = append(gone, id)
			}
			return nil
		})
		for _, id := range gone {
			err = errors.Join(err, records.Delete(tx, id), lost.Delete(tx, id))
		}
		return err
	})
	if err != nil {
		b.log.Error("cannot delete the records of repositories that are no longer followed", "error", err)
	}
}

// of returns the record of a repository; mu is held. A record that cannot be read
// counts as empty: then pools are stopped that need not be.
func (b *Tracker) of(id string) record {
	r, unwritten := b.known[id]
	if unwritten {
		return r
	}
	err := b.db.View(func(tx *state.Tx) (err error) { r, _, err = records.Get(tx, id); return err })
	if err != nil {
		b.log.Error("cannot read the earlier commits of sources", "error", err)
	}
	return r
}

// set keeps a record; mu is held.
func (b *Tracker) set(id string, r record) {
	delete(b.known, id)
	if err := b.db.Update(func(tx *state.Tx) error { return records.Put(tx, id, r) }); err != nil {
		b.log.Error("state cannot be written", "error", err)
		b.known[id] = r
	}
}

// Found takes in that a look at the repository, which began at a time, found a
// revision. A branch that was reset is seen here, also where that happened while weir
// was not running.
func (l *Line) Found(began time.Time, revision string) {
	b := l.tracker
	b.mu.Lock()
	r := b.of(l.id)
	last := r.Heads[l.name]
	from, left := []string{last, l.head}, r.Left // another member may have seen more, or this one
	if l.named {
		left = nil
	}
	l.foundAt, l.head = began, revision
	waited := !l.waiting.IsZero() && began.After(l.waiting)
	if waited {
		l.waiting = time.Time{}
	}
	b.mu.Unlock()
	if last != revision {
		l.came(last, revision)
	}
	named := l.nameLost(from, left, revision)
	b.mu.Lock()
	l.named = named
	b.mu.Unlock()
	if waited {
		l.nudge()
	}
}

// came notes that the source went from one commit to another.
func (l *Line) came(last, revision string) {
	ctx := context.Background() // no source is asked
	var left []string
	for _, from := range append(slices.Clone(l.left()), last) {
		if from == "" {
			continue
		}
		// One that cannot be compared may as well have been left.
		if on, err := l.git.Descends(ctx, revision, from); err != nil || !on {
			left = append(left, from)
		}
	}
	b := l.tracker
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.of(l.id)
	heads := map[string]string{l.name: revision}
	for name, head := range r.Heads {
		if name != l.name {
			heads[name] = head
		}
	}
	left = left[max(0, len(left)-mostLeft):]
	if last != "" && slices.Contains(left, last) && !slices.Contains(r.Left, last) {
		b.log.Info("the source moved to a commit that does not descend from the previous one", "source", l.name, "from", last, "to", revision)
	}
	r.Heads, r.Left = heads, left
	b.set(l.id, r)
}

func (l *Line) left() []string {
	l.tracker.mu.Lock()
	defer l.tracker.mu.Unlock()
	return l.tracker.of(l.id).Left
}

// Lift lets commits of a repository, as AWS names them, stop nothing any more.
func (b *Tracker) Lift(id string, commits []string) {
	if len(commits) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.of(id)
	lifted := slices.Clone(r.Lifted)
	for _, c := range commits {
		if !slices.Contains(lifted, c) {
			lifted = append(lifted, c)
		}
	}
	r.Lifted = lifted[max(0, len(lifted)-mostLifted):]
	b.set(id, r)
}

// ID is the repository's.
func (l *Line) ID() string { return l.id }

// Relations returns the relation of commits to the followed one. If a commit is newer or missing,
// Relations first asks for a fetch. It trusts that result once a later fetch has succeeded and
// found nothing newer to follow. After that, a commit that a branch lost counts as old: the branch
// has not got it again.
func (l *Line) Relations(ctx context.Context, followed string, commits []string) (map[string]model.Relation, error) {
	l.tracker.mu.Lock()
	r := l.tracker.of(l.id)
	lines := make([]*Line, 0, len(l.tracker.lines[l.id]))
	for _, other := range l.tracker.lines[l.id] {
		if other != l {
			lines = append(lines, other)
		}
	}
	l.tracker.mu.Unlock()
	out := make(map[string]model.Relation, len(commits))
	var open []string
	past := append([]string{followed}, r.Left...)
	for _, c := range commits {
		if slices.ContainsFunc(r.Lifted, func(lifted string) bool { return alike(lifted, c) }) || slices.ContainsFunc(past, func(p string) bool { return alike(p, c) }) {
			out[c] = model.RelationOlder
		} else {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return out, nil
	}
	standings, err := l.git.Standings(ctx, past, open)
	if err != nil {
		return nil, fmt.Errorf("compare commits: %w", err)
	}
	var lost []string
	if slices.ContainsFunc(open, func(c string) bool { return standings[c] == snapshot.Unknown || standings[c] == snapshot.Ahead }) {
		lost = l.lost()
	}
	for _, c := range open {
		switch s := standings[c]; {
		case s == snapshot.Behind || s == snapshot.Aside || l.passedElsewhere(ctx, lines, r, c):
			out[c] = model.RelationOlder
		case l.asking(c, followed):
			out[c] = model.RelationAsked
		case slices.ContainsFunc(lost, func(name string) bool { return alike(name, c) }):
			out[c] = model.RelationOlder
		case s == snapshot.Ahead:
			out[c] = model.RelationNewer
		case l.unknownFor(c) >= unknownFor:
			out[c] = model.RelationOlder
		default:
			out[c] = model.RelationUnknown
		}
	}
	return out, nil
}

// alike reports whether two names, each possibly short, are of one commit.
func alike(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// passedElsewhere reports whether another source of the same repository has already passed the
// commit: this weir is not behind a commit that it follows.
func (l *Line) passedElsewhere(ctx context.Context, lines []*Line, r record, commit string) bool {
	for _, other := range lines {
		head := r.Heads[other.name]
		if head == "" {
			continue
		}
		s, err := other.git.Standings(ctx, []string{head}, []string{commit})
		if err == nil && s[commit] == snapshot.Behind {
			return true
		}
	}
	return false
}

// unknownFor returns the time since this process first asked Git for a commit.
func (l *Line) unknownFor(commit string) time.Duration {
	l.tracker.mu.Lock()
	defer l.tracker.mu.Unlock()
	since, asked := l.asked[commit]
	if !asked {
		return 0
	}
	return l.now().Sub(since)
}

// asking reports whether Git has yet to say whether there is something newer to follow
// than followed, and asks.
func (l *Line) asking(commit, followed string) bool {
	b := l.tracker
	b.mu.Lock()
	defer b.mu.Unlock()
	since, known := l.asked[commit]
	if !known {
		if len(l.asked) >= mostAsked {
			clear(l.asked)
		}
		since = l.now()
		l.asked[commit] = since
	}
	if l.foundAt.After(since) && l.head == followed {
		return false
	}
	l.waiting = l.now()
	l.git.Nudge()
	return true
}

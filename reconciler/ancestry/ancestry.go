// Package ancestry relates the commits in AWS's tags to the commits that weir follows. Git orders two
// commits of one history. This package remembers two facts that Git does not record: the commits that
// branches had before a reset, and the commits that a person decided to overwrite.
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
	// The limits for each repository: mostLeft bounds the commits from which branches were reset, mostLost
	// the names of these commits and their ancestors, mostLifted the commits that may be overwritten, and
	// mostAsked the commits requested from Git.
	mostLeft   = 100
	mostLost   = 20_000
	mostLifted = 1000
	mostAsked  = 1000
	// unknownFor is the time for which a commit that is missing from the repository stops pools. After
	// it, weir assumes that the history was rewritten while no weir was running.
	unknownFor = 6 * time.Hour
)

// Git is a source's repository.
type Git interface {
	Standings(ctx context.Context, heads, others []string) (map[string]snapshot.Standing, error)
	Descends(ctx context.Context, revision, from string) (bool, error)
	// Lost returns the commits that a branch loses by a reset, the newest first.
	Lost(ctx context.Context, from, to string) ([]string, error)
	// Nudge makes the source read its repository soon.
	Nudge()
}

// record contains the facts about a repository, for all its followed branches.
type record struct {
	// Heads has the last followed commit of each source, by the source's name.
	Heads map[string]string `json:"heads,omitempty"`
	// Left lists followed commits that sources left for commits that do not descend from them. AWS's
	// resources from those commits were made by this instance, or with its knowledge.
	Left []string `json:"left,omitempty"`
	// Lifted lists commits, in the form of AWS's tags, that a person decided to overwrite.
	Lifted []string `json:"lifted,omitempty"`
}

// records has the records by the repository's id.
var records = state.Bucket[record]{Name: "lineage"}

// Tracker tracks the lineages of all repositories.
type Tracker struct {
	db  state.Store
	log *slog.Logger

	mu    state.Turn
	known map[string]record           // records that could not be written
	lines map[string]map[string]*Line // by repository, then source
}

// Open returns a Tracker. It does not read the store yet.
func Open(db state.Store, log *slog.Logger) *Tracker {
	return &Tracker{db: db, log: log, known: map[string]record{}, lines: map[string]map[string]*Line{}}
}

// Line is the lineage of one source. It is a reconciler.Ancestry.
type Line struct {
	tracker  *Tracker
	id, name string
	git      Git
	// nudge starts new passes after Git has answered.
	nudge func()
	now   func() time.Time

	// The fields below are guarded by tracker.mu. foundAt is the start of the last successful read of the
	// repository, and head its result. named says that all commits lost until then are recorded. asked has
	// the time at which each commit was first requested. waiting is the time since which passes wait for
	// Git, or zero.
	foundAt time.Time
	head    string
	named   bool
	asked   map[string]time.Time
	waiting time.Time
}

// Line returns the lineage of a source. id identifies its repository.
func (b *Tracker) Line(id, name string, git Git, nudge func(), now func() time.Time) *Line {
	return &Line{tracker: b, id: id, name: name, git: git, nudge: nudge, now: now, asked: map[string]time.Time{}}
}

// Follow sets the sources. It forgets repositories without a source, and the last commits of removed
// sources. The commit of a removed source is not a newer commit of another source, so Follow marks it as
// left.
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

// of returns the record of a repository. The caller holds mu. An unreadable record counts as empty, so pools
// may be stopped unnecessarily.
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

// set stores a record. The caller holds mu.
func (b *Tracker) set(id string, r record) {
	delete(b.known, id)
	if err := b.db.Update(func(tx *state.Tx) error { return records.Put(tx, id, r) }); err != nil {
		b.log.Error("state cannot be written", "error", err)
		b.known[id] = r
	}
}

// RecordHead records the commit that a read of the repository, started at began, found as the branch's head. It
// also records the commits that a reset of the branch has lost, even if weir was not running at the time, and
// wakes the passes that wait for this read.
func (l *Line) RecordHead(began time.Time, revision string) {
	b := l.tracker
	b.mu.Lock()
	r := b.of(l.id)
	last := r.Heads[l.name]
	// The two commits can differ: another member may have recorded a later one, or the commit that this member
	// read was not recorded.
	from, left := []string{last, l.head}, r.Left
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

// came notes that the source changed from one commit to another.
func (l *Line) came(last, revision string) {
	ctx := context.Background() // this reads only the local mirror
	var left []string
	for _, from := range append(slices.Clone(l.left()), last) {
		if from == "" {
			continue
		}
		// A commit that cannot be compared counts as left.
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

// Lift makes commits of a repository, in the form of AWS's tags, stop no more pools.
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

// ID returns the repository's id.
func (l *Line) ID() string { return l.id }

// Relations returns the relation of commits to the followed one. If a commit is newer or missing, Relations
// first requests a fetch. It returns that relation only after a later fetch has found nothing newer to
// follow. Then a commit that a branch lost counts as old, because the branch did not get it back.
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

// alike reports whether two commit names mean the same commit. Both names may be abbreviated.
func alike(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// passedElsewhere reports whether another source of the same repository has already passed the commit. This
// instance is then not behind that commit.
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

// asking reports whether weir must still wait for Git to show whether a commit newer than followed exists.
// If so, it requests a fetch.
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

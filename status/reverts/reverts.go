// Package reverts proposes on a forge to take back what a FleetRollout stopped: one pull
// request of a branch of weir's own, or a status on the commit that says what to do by hand.
// It reverts the commit; where no commit changed what the pools launch, but AWS answered a
// lookup otherwise, as with a newly published image, it pins what they ran before.
//
// A Source is turned again and again by the member that speaks for the source. A turn looks
// at what was stopped, at what is kept of it (Entry), and at the forge, and does what is
// missing. The forge is the uniqueness: the branch weir/revert-COMMIT is looked up there
// first, its commit is the same object whoever makes it, and a pull request that was ever
// opened of it, closed by hand or not, is the only one. So a crash between two writes, an
// answer that was lost and a second member change nothing.
//
// What is reverted are the fewest paths of the commit that take every stopped pool back:
// Find tries them by rendering, offline. A pull request that weir closes itself is one that
// nobody needs any more.
package reverts

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
)

// Branches begins the names of the branches.
const Branches = transport.OwnBranches + "revert-"

// Trailer names in a commit of weir's the one that it reverts.
const Trailer = "Weir-Reverts"

// Forge is where pull requests are, with the token that may push.
type Forge interface {
	Pull(ctx context.Context, number int64) (forge.PullRequest, error)
	PullOf(ctx context.Context, base, head string) (p forge.PullRequest, found bool, err error)
	OpenPull(ctx context.Context, p forge.Proposal) (forge.PullRequest, error)
	ClosePull(ctx context.Context, number int64) error
	CreateComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Statuses takes the status of a commit, with the token for statuses.
type Statuses interface {
	Profile() forge.Profile
	SetStatus(ctx context.Context, sha string, s forge.CommitStatus) error
}

// Git is the source's mirror.
type Git interface {
	At(ctx context.Context, revision string) (snapshot.Snapshot, error)
	Descends(ctx context.Context, revision, from string) (bool, error)
	Changed(ctx context.Context, from, to string) ([]string, error)
	Restored(ctx context.Context, on, from string, paths []string) (snapshot.Snapshot, error)
	Edited(ctx context.Context, on string, files map[string][]byte) (snapshot.Snapshot, error)
	Branch(ctx context.Context, name string, c source.Commit) (transport.Branch, error)
}

// Pusher makes branches.
type Pusher interface {
	Make(ctx context.Context, b transport.Branch) error
}

// Renderer says what a tree would make of targets: of those named, or with none of those
// that it would change.
type Renderer interface {
	Render(ctx context.Context, s snapshot.Snapshot, only []string) ([]Target, error)
	// Pin finds the files in which pools of a tree get back what they ran.
	Pin(ctx context.Context, s snapshot.Snapshot, was map[rollout.ID]rollout.Version) (Pinned, error)
}

// Target is what a tree makes of a target.
type Target struct {
	Name string
	// Fault says why it does not render whole; empty if it does.
	Fault string
	// Launches stands, by pool, for what its machines are launched of as Git says it.
	Launches map[string]string
}

// Options are what the surroundings give.
type Options struct {
	Source          string
	Instance        string
	PageURL         string
	Author, Address string
	Forge           Forge
	Statuses        Statuses
	Git             Git
	Pusher          Pusher
	Renderer        Renderer
	Redact          func(string) string
	Event           func(events.Event)
	Logger          *slog.Logger
}

// Phase is how far a revert is.
type Phase string

// Phases.
const (
	Wanted   Phase = ""         // weir has yet to decide, or to write
	Open     Phase = "open"     // the pull request is open
	Merged   Phase = "merged"   // it was merged
	Closed   Phase = "closed"   // somebody closed it
	Obsolete Phase = "obsolete" // nobody needs it any more
	ByHand   Phase = "by-hand"  // weir cannot propose it
)

// Entry is what is kept of one commit that was stopped.
type Entry struct {
	Revision string    `json:"revision"`
	At       time.Time `json:"at"`
	Rollouts []string  `json:"rollouts"`
	// Pools are those that were stopped, with what is bad for them.
	Pools []rollout.Subject `json:"pools"`
	// Earlier is what one of them ran before.
	Earlier *rollout.Version `json:"earlier,omitempty"`
	// Was is what pools ran before that could be pinned to it, by pool. Pin says that the pull
	// request does so, and reverts nothing.
	Was   map[string]rollout.Version `json:"was,omitempty"`
	Pin   bool                       `json:"pin,omitempty"`
	Phase Phase                      `json:"phase,omitempty"`
	// Number and URL are the pull request's, Merge the commit that merging it made.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	Merge  string `json:"merge,omitempty"`
	// Made are the commits that weir may have pushed for it, each with what it was made for:
	// what is followed may have moved on since.
	Made map[string]string `json:"made,omitempty"`
	// Closing is why weir closes it, noted before it does.
	Closing string `json:"closing,omitempty"`
	// Text says what became of it, or what stands in the way.
	Text string `json:"text,omitempty"`
	// Refused says that the forge refuses what weir may not do; After is when it is tried
	// again, Tries how often it was.
	Refused bool      `json:"refused,omitempty"`
	Tries   int       `json:"tries,omitempty"`
	After   time.Time `json:"after,omitzero"`
	// Told is the status of the commit that was written last.
	Told string `json:"told,omitempty"`
}

type record struct {
	Entries []Entry `json:"entries"`
}

var records = state.Bucket[record]{Name: "reverts"}

// kept is how many entries are remembered of a source.
const kept = 50

// Now is how the source stands.
type Now struct {
	Time time.Time
	// Head is the commit that is followed, Base the branch that it is on.
	Head, Base string
	Record     *rollout.Record
	// Pools are as their owners reported them at Head; Missing are targets that did not.
	Pools   []rollout.Pool
	Missing map[string]string
}

// Source proposes the reverts of one source. One goroutine turns it.
type Source struct{ Options }

// New makes one.
func New(o Options) *Source { return &Source{o} }

// Turn does what is missing, and says when to turn again without news, zero for no such time.
// It reads and writes what is kept in the store, which is that of the source's lease where
// several weirs share the work.
func (s *Source) Turn(ctx context.Context, store state.Store, now Now) (again time.Time, err error) {
	var had record
	err = store.View(func(tx *state.Tx) (err error) {
		had, _, err = records.Get(tx, s.Source)
		return err
	})
	if err != nil {
		return again, err
	}
	all := slices.Clone(had.Entries)
	s.take(&all, now)
	keep := func() error {
		return store.Update(func(tx *state.Tx) error { return records.Put(tx, s.Source, record{slices.Clone(all)}) })
	}
	for i := range all { // what became of the others decides about the new ones
		if e := &all[i]; e.Phase == Open && !now.Time.Before(e.After) {
			was := *e
			s.watch(ctx, e, now, keep)
			if reflect.DeepEqual(was, *e) {
				continue
			}
			if err := keep(); err != nil {
				return again, err
			}
		}
	}
	for i := range all {
		e := &all[i]
		if e.Phase == Wanted && !now.Time.Before(e.After) {
			s.propose(ctx, e, all, now, keep)
			if ctx.Err() != nil {
				return again, ctx.Err()
			}
			if err := keep(); err != nil {
				return again, err
			}
		}
		if s.tell(ctx, e) {
			if err := keep(); err != nil {
				return again, err
			}
		}
		if e.After.After(now.Time) && (again.IsZero() || e.After.Before(again)) {
			again = e.After
		}
	}
	return again, nil
}

// take adds what was stopped by a bad signal. What a person aborted is in that person's
// hands.
func (s *Source) take(all *[]Entry, now Now) {
	for _, run := range now.Record.Runs {
		if run.Stopped == nil || run.Stopped.By != "weir" || run.Revision == "" {
			continue
		}
		var pools []rollout.Subject
		var earlier *rollout.Version
		was := map[string]rollout.Version{}
		for _, m := range run.Members {
			if now.Record.BadOf(m.ID, m.Hash) != nil {
				pools = append(pools, rollout.Subject{ID: m.ID, Hash: m.Hash})
				earlier = cmp.Or(earlier, m.Earlier)
				if m.Earlier != nil && m.Earlier.Pin != "" {
					was[m.String()] = *m.Earlier
				}
			}
		}
		if len(pools) == 0 {
			continue // it is let go again
		}
		// A rollout that is let go again, or begins anew after an edit, has a later commit as
		// its own: what was bad before is not proposed twice.
		// What is bad at one commit for another reason, as a second image is, is a matter of its
		// own, unless it takes the same revert.
		i := slices.IndexFunc(*all, func(e Entry) bool {
			return slices.ContainsFunc(pools, func(p rollout.Subject) bool { return slices.Contains(e.Pools, p) }) ||
				e.Revision == run.Revision && (len(was) == 0 && e.reverts() || !slices.ContainsFunc(pools, func(p rollout.Subject) bool {
					return slices.ContainsFunc(e.Pools, func(o rollout.Subject) bool { return o.ID == p.ID && o.Hash != p.Hash })
				}))
		})
		if i < 0 {
			*all = append(*all, Entry{Revision: run.Revision, At: run.Stopped.At, Rollouts: []string{run.Name}, Pools: pools, Earlier: earlier, Was: was})
			continue
		}
		e := &(*all)[i]
		if !slices.Contains(e.Rollouts, run.Name) {
			e.Rollouts = append(slices.Clone(e.Rollouts), run.Name)
		}
		e.Pools, e.Was = slices.Clone(e.Pools), maps.Clone(e.Was)
		for _, p := range pools {
			switch k := slices.IndexFunc(e.Pools, func(o rollout.Subject) bool { return o.ID == p.ID }); {
			case k < 0:
				e.Pools = append(e.Pools, p)
			case e.Pools[k] == p:
				continue
			default:
				e.Pools[k] = p
			}
			if v, is := was[p.String()]; is {
				e.Was = with(e.Was, p.String(), v)
			}
		}
	}
	if n := len(*all); n > kept {
		*all = slices.Clone((*all)[n-kept:])
	}
}

// tell writes the status of the commit where it says something else now.
func (s *Source) tell(ctx context.Context, e *Entry) (wrote bool) {
	status := forge.CommitStatus{Context: s.Instance + "/revert", State: forge.Success, Description: e.Text}
	switch {
	case s.Statuses == nil || e.Text == "":
		return false
	case e.Phase == ByHand || e.Refused:
		status.State = forge.Failure
	case e.Phase == Wanted:
		return false
	}
	status.Description = s.words().Status(status.Description, s.Statuses.Profile().Limits.Description)
	status.TargetURL = s.PageURL
	if e.URL != "" {
		status.TargetURL = e.URL
	}
	said := string(status.State) + " " + status.Description
	if said == e.Told {
		return false
	}
	if err := s.Statuses.SetStatus(ctx, e.Revision, status); err != nil {
		s.Logger.Warn("cannot write what became of a revert", "source", s.Source, "revision", e.Revision, "error", err)
		return false
	}
	e.Told = said
	return true
}

func (s *Source) words() proposal.Words { return proposal.Words{Redact: s.Redact} }

func short(revision string) string { return revision[:min(7, len(revision))] }

// branchOf is the branch that reverts a commit.
func branchOf(revision string) string { return Branches + revision[:min(12, len(revision))] }

// reverts reports whether an entry is about reverting its commit, and not about pins, and
// may still do so.
func (e *Entry) reverts() bool {
	return !e.Pin && len(e.Was) == 0 && (e.Phase == Wanted || e.Phase == Open)
}

// what is proposed.
func (e *Entry) what() string {
	if e.Pin {
		return "pin"
	}
	return "revert"
}

// own reports whether a commit came by merging a branch of weir's, or is one.
func own(c snapshot.Snapshot, all []Entry) bool {
	return strings.Contains(c.Message, Branches) || strings.Contains(c.Message, PinBranches) ||
		slices.ContainsFunc(snapshot.Trailers(c.Message), func(t snapshot.Trailer) bool {
			return strings.EqualFold(t.Key, Trailer) || strings.EqualFold(t.Key, PinTrailer)
		}) ||
		slices.ContainsFunc(all, func(e Entry) bool { return e.Merge != "" && e.Merge == c.Revision })
}

// Package accepts proposes on a forge to keep what somebody changed in AWS: one pull request
// for one pool, of a branch of weir's own, which writes what AWS has into the manifests.
//
// Somebody asks for it (Ask); a Source is turned again and again by the member that speaks for
// the source. What is asked for is kept before anything is pushed, and the branch is named
// after it, so that a crash or a lost answer leaves nothing that is not found again. A branch
// moves on to descendants alone, and no further once somebody else has pushed to it.
package accepts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
)

// Branches begins the names of the branches, Trailer names in commits the pool that they are
// about.
const (
	Branches = transport.OwnBranches + "accept-"
	Trailer  = "Weir-Accepts"
)

// Forge is where pull requests are, with the token that may push.
type Forge interface {
	Pulls(ctx context.Context, after forge.Cursor) (list []forge.PullRequest, next forge.Cursor, unchanged bool, err error)
	Pull(ctx context.Context, number int64) (forge.PullRequest, error)
	PullOf(ctx context.Context, base, head string) (p forge.PullRequest, found bool, err error)
	OpenPull(ctx context.Context, p forge.Proposal) (forge.PullRequest, error)
	EditPull(ctx context.Context, number int64, title, body string) error
	ClosePull(ctx context.Context, number int64) error
	CreateComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Git is the source's mirror.
type Git interface {
	Changed(ctx context.Context, from, to string) ([]string, error)
	Branch(ctx context.Context, name string, c source.Commit) (transport.Branch, error)
}

// Pusher makes branches, and moves them on.
type Pusher interface {
	At(ctx context.Context, branch string) (string, error)
	Make(ctx context.Context, b transport.Branch) error
}

// Fleet knows what AWS has otherwise, and writes it into files.
type Fleet interface {
	// Find plans a commit, and writes what AWS has otherwise of a pool into its files.
	Find(ctx context.Context, on string, a Asked) (Found, error)
}

// Asked is what somebody wants to keep: of one pool all that has drifted, or fields that they
// name.
type Asked struct {
	Target string   `json:"target"`
	Pool   string   `json:"pool"` // namespace/name
	Fields []string `json:"fields,omitempty"`
	By     string   `json:"by,omitempty"`
}

// Found is what AWS has otherwise, with the files that say so.
type Found struct {
	Fields []accept.Field
	Files  map[string][]byte
	// More are the steps that weir would make then and would not make now.
	More []string
}

// written are the fields that files say.
func (f Found) written() (out []accept.Field) {
	return slices.DeleteFunc(slices.Clone(f.Fields), func(a accept.Field) bool { return a.Left != "" })
}

// print stands for what is written.
func (f Found) print() string {
	of := f.written()
	for i := range of {
		of[i].At = "" // lines move
	}
	text, err := json.Marshal(of)
	if err != nil {
		return "" // values were read from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16]
}

// Options are what the surroundings give.
type Options struct {
	Source          string
	PageURL         string
	Author, Address string
	// Every is how often AWS is asked whether an open pull request is needed still.
	Every  time.Duration
	Forge  Forge
	Git    Git
	Pusher Pusher
	Fleet  Fleet
	Redact func(string) string
	Event  func(events.Event)
	Logger *slog.Logger
}

// Phase is how far a pull request is.
type Phase string

// Phases.
const (
	Wanted Phase = "wanted" // somebody asked for it, and it is not open yet
	Open   Phase = "open"
	Theirs Phase = "theirs" // it is open, and somebody else has pushed to its branch
)

// Entry is a pull request that is wanted or open. One that has ended is kept no more.
type Entry struct {
	Asked
	Phase Phase     `json:"phase"`
	At    time.Time `json:"at"` // when it was asked for
	// Number and URL are the pull request's. Branch is at Commit, which weir pushed, on top of
	// On; it was at Before.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	Branch string `json:"branch"`
	Commit string `json:"commit,omitempty"`
	Before string `json:"before,omitempty"`
	On     string `json:"on,omitempty"`
	// Paths are the files that it changes, Print stands for what they say.
	Paths []string `json:"paths,omitempty"`
	Print string   `json:"print,omitempty"`
	// Said is the commit that its text is of.
	Said string `json:"said,omitempty"`
	// Closing is why weir closes it, noted before it does.
	Closing string `json:"closing,omitempty"`
	// Looked is when AWS was asked last, Head the commit that was followed then.
	Looked time.Time `json:"looked,omitzero"`
	Head   string    `json:"head,omitempty"`
	// After is when something is tried again that failed, Tries times.
	Tries int       `json:"tries,omitempty"`
	After time.Time `json:"after,omitzero"`
	Text  string    `json:"text,omitempty"`
}

type record struct {
	Entries []Entry `json:"entries"`
}

var records = state.Bucket[record]{Name: "accepts"}

// Now is how the source stands.
type Now struct {
	Time time.Time
	// Head is the commit that is followed, Base the branch that it is on.
	Head, Base string
}

// Source proposes for one source.
type Source struct {
	Options
	mu sync.Mutex // of all work: people ask while it turns
}

// New makes one.
func New(o Options) *Source { return &Source{Options: o} }

func (s *Source) words() proposal.Words { return proposal.Words{Redact: s.Redact} }

// branchOf is the branch of what was asked for; all of one pool begin alike.
func branchOf(a Asked, at time.Time) string {
	sum := sha256.Sum256([]byte(at.UTC().Format(time.RFC3339Nano)))
	return branchesOf(a) + hex.EncodeToString(sum[:])[:8]
}

func branchesOf(a Asked) string {
	sum := sha256.Sum256([]byte(a.Target + " " + a.Pool))
	return Branches + hex.EncodeToString(sum[:])[:12] + "-"
}

func (s *Source) read(store state.Store) ([]Entry, error) {
	var had record
	err := store.View(func(tx *state.Tx) (err error) {
		had, _, err = records.Get(tx, s.Source)
		return err
	})
	return slices.Clone(had.Entries), err
}

// keep keeps an entry in the place of the pool's, or none.
func (s *Source) keep(store state.Store, e *Entry, ended bool) error {
	all, err := s.read(store)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(o Entry) bool { return o.Target == e.Target && o.Pool == e.Pool })
	switch {
	case i < 0 && ended, i >= 0 && !ended && reflect.DeepEqual(all[i], *e):
		return nil
	case i < 0:
		all = append(all, *e)
	case ended:
		all = slices.Delete(all, i, i+1)
	default:
		all[i] = *e
	}
	return store.Update(func(tx *state.Tx) error { return records.Put(tx, s.Source, record{all}) })
}

// Turn does what is missing, and says when to turn again without news.
func (s *Source) Turn(ctx context.Context, store state.Store, now Now) (again time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read(store)
	for i := range all {
		e := &all[i]
		if ctx.Err() != nil {
			return again, ctx.Err()
		}
		if !now.Time.Before(e.After) {
			ended, failed := s.step(ctx, store, e, now)
			if failed != nil {
				s.later(ctx, e, now, failed)
			} else {
				e.Tries, e.After, e.Text = 0, time.Time{}, ""
			}
			if err := s.keep(store, e, ended); err != nil {
				return again, err
			}
		}
		at := now.Time.Add(s.Every)
		if e.After.After(now.Time) && e.After.Before(at) {
			at = e.After
		}
		if again.IsZero() || at.Before(again) {
			again = at
		}
	}
	return again, err
}

// later notes when to try again.
func (s *Source) later(ctx context.Context, e *Entry, now Now, err error) {
	if ctx.Err() != nil {
		return
	}
	e.Tries++
	wait, mayNot := proposal.Wait(err, e.Tries)
	text := s.Redact(err.Error())
	if mayNot && e.Text != text {
		s.tell(e, "accept-refused", "weir may not propose to keep what AWS has: "+text)
	}
	e.Text, e.After = text, now.Time.Add(wait)
	s.Logger.Warn("a pull request that keeps what AWS has waits", "source", s.Source, "target", e.Target, "pool", e.Pool, "error", text, "until", e.After)
}

func (s *Source) tell(e *Entry, kind, text string) {
	ev := events.Event{Kind: kind, Target: e.Target, Pool: e.Pool, Text: text, Facts: map[string]string{"source": s.Source}}
	if e.URL != "" {
		ev.Facts["url"] = e.URL
	}
	s.Event(ev)
}

func pathsOf(f Found) []string { return slices.Sorted(maps.Keys(f.Files)) }

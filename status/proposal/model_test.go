package proposal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
)

// thing is the entry of a kind for tests.
type thing struct {
	State
	Declined []string `json:"declined,omitempty"`
}

const (
	daily = 24 * time.Hour
	own   = "weir/thing-1"
	by    = "weir <weir@localhost>"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// commit is a commit of a model of Git: its parents, who made it, and what it says.
type commit struct {
	parents []string
	by      string
	message string
}

// model is a forge, a repository and a kind in memory. The next call that is named in fails does
// not answer; lost says that it takes effect all the same.
type model struct {
	fatal   func(string, ...any)
	commits map[string]commit
	branch  string // what the one branch is at
	pulls   []forge.PullRequest
	want    string // what is to be proposed; empty for nothing
	unknown bool
	moved   bool        // the followed branch changed the same files
	writes  []time.Time // of texts
	shown   string      // the text of the pull request
	events  []string
	fails   string
	lost    bool
	store   state.Store
	source  string
	now     Now
	m       *Machine[thing, *thing]
}

// newModel makes a model that keeps its record under the name of a source.
func newModel(fatal func(string, ...any), store state.Store, source string) *model {
	w := &model{fatal: fatal, commits: map[string]commit{}, store: store, source: source, now: Now{Time: noon, Head: "head", Base: "main"}}
	w.restart()
	return w
}

func newStore(t *testing.T) state.Store {
	t.Helper()
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// restart is another process: what is in memory is lost.
func (w *model) restart() {
	w.m = New(Options{
		Record: "things", Source: w.source, Author: "weir", Address: "weir@localhost", Every: daily, Forge: host{w}, Git: w, Pusher: pusher{w},
		Redact: func(s string) string { return s }, Event: func(e events.Event) { w.events = append(w.events, e.Kind) }, Logger: slog.New(slog.DiscardHandler),
	}, Kind[thing](w))
}

// turn turns, and returns what is kept.
func (w *model) turn() thing {
	if _, err := w.m.Turn(context.Background(), w.store, w.now); err != nil {
		w.fatal("%v", err)
	}
	all, err := w.m.Read(w.store)
	if err != nil || len(all) != 1 {
		w.fatal("%v, %v", all, err)
	}
	return all[0]
}

var errGone = errors.New("the connection is gone")

// failing reports whether a call has no answer, and whether it has no effect either.
func (w *model) failing(call string) (none bool, err error) {
	if w.fails != call {
		return false, nil
	}
	w.fails = ""
	return !w.lost, errGone
}

func (w *model) Entries(_ context.Context, all []thing, _ Now) ([]thing, time.Time, error) {
	if len(all) == 0 {
		all = append(all, thing{})
	}
	return all, time.Time{}, nil
}

func (w *model) Want(_ context.Context, e *thing, _ Now) (out Want, err error) {
	switch {
	case e.IsOpen() && w.unknown:
		return out, nil
	case w.want == "" || slices.Contains(e.Declined, w.want):
		if e.IsOpen() {
			out.Gone = "nobody needs it"
		}
		return out, nil
	}
	want := w.want
	return Want{Print: want, Branches: []string{own}, Draft: func(context.Context) (Draft, error) {
		return Draft{Branch: own, Title: "title", Body: want, Paths: []string{"file"}, Opened: "has " + want, Updated: "has " + want + " now", Commit: source.Commit{On: w.now.Head, At: w.now.Time, Message: want}}, nil
	}}, nil
}

func (w *model) Owns(_ *thing, branch string) bool { return branch == own }

func (w *model) Made(_ *thing, _ []snapshot.Trailer) (Made, bool) { return Made{}, true }

func (w *model) Ended(e *thing) bool {
	if e.Phase == Closed {
		e.Declined = append(slices.Clone(e.Declined), e.Print)
	}
	last := e.Number
	*e = thing{State: State{Phase: e.Phase, Changed: e.Changed, Text: e.Text, Last: last}, Declined: e.Declined}
	return true
}

func (w *model) Texts(*thing) Texts {
	return Texts{Merged: "was merged", Closed: "was closed", Left: "is somebody else's", LeftComment: "it is yours", Refused: "weir may not", ByHand: "weir cannot"}
}

func (w *model) Event(_ *thing, what What, text string) events.Event {
	return events.Event{Kind: string(what), Text: text}
}

func (w *model) Finish(context.Context, []thing) {}

// The repository.

func (w *model) By(_ context.Context, revision string) (author, committer string, err error) {
	return w.commits[revision].by, w.commits[revision].by, nil
}

func (w *model) Changed(_ context.Context, from, to string) ([]string, error) {
	if w.moved && from != to {
		return []string{"file"}, nil
	}
	return []string{"other"}, nil
}

func (w *model) Pull(_ context.Context, p source.PullRef) (source.Merge, error) {
	if p.HeadSHA != w.branch {
		return source.Merge{}, errors.New("the branch has moved")
	}
	return source.Merge{Snapshot: snapshot.Snapshot{Message: w.commits[p.HeadSHA].message}}, nil
}

func (w *model) Forget(string) error { return nil }

func (w *model) Branch(_ context.Context, branch string, c source.Commit) (transport.Branch, error) {
	return w.commit(branch, commit{[]string{c.On, c.After}, c.Author + " <" + c.Address + ">", fmt.Sprint(c.Message, c.At)}, c.After), nil
}

func (w *model) commit(branch string, c commit, after string) transport.Branch {
	sha := fmt.Sprint(c)
	w.commits[sha] = c
	return transport.Branch{Name: branch, Commit: sha, After: after}
}

// push is somebody else's.
func (w *model) push() { w.branch = w.commit(own, commit{by: "ann", message: "mine"}, "").Commit }

type pusher struct{ *model }

func (w pusher) At(context.Context, string) (string, error) { return w.branch, nil }

func (w pusher) Make(_ context.Context, b transport.Branch) error {
	none, err := w.failing("push")
	switch {
	case none:
		return err
	case w.branch != b.After && w.branch != b.Commit:
		return &transport.TakenError{Name: b.Name, At: w.branch}
	case w.branch != "" && w.commits[w.branch].by != by:
		w.fatal("pushed over somebody else's commit")
	}
	w.branch = b.Commit
	return err
}

// The forge.

type host struct{ *model }

func (w *model) show(p forge.PullRequest) forge.PullRequest {
	if p.State == forge.Open {
		p.HeadSHA = w.branch
	}
	return p
}

func (w *model) Pulls(context.Context, forge.Cursor) (list []forge.PullRequest, next forge.Cursor, same bool, err error) {
	for _, p := range w.pulls {
		if p.State == forge.Open {
			list = append(list, w.show(p))
		}
	}
	return list, "", false, nil
}

func (w *model) PullOf(_ context.Context, _, head string) (forge.PullRequest, bool, error) {
	for _, p := range slices.Backward(w.pulls) {
		if p.HeadRef == head {
			return w.show(p), true, nil
		}
	}
	return forge.PullRequest{}, false, nil
}

func (w *model) OpenPull(_ context.Context, p forge.Proposal) (out forge.PullRequest, err error) {
	none, err := w.failing("open")
	if none {
		return out, err
	}
	if slices.ContainsFunc(w.pulls, func(p forge.PullRequest) bool { return p.State == forge.Open }) {
		w.fatal("a second pull request is opened")
	}
	w.wrote(err)
	w.pulls, w.shown = append(w.pulls, forge.PullRequest{Number: int64(len(w.pulls) + 1), State: forge.Open, HeadRef: p.Head, BaseRef: p.Base, Title: p.Title, UpdatedAt: w.now.Time}), p.Body
	return w.show(w.pulls[len(w.pulls)-1]), err
}

func (w *model) EditPull(_ context.Context, _ int64, _, body string) error {
	none, err := w.failing("edit")
	if !none {
		w.wrote(err)
		w.shown = body
	}
	return err
}

// wrote notes a write that is known to have been done.
func (w *model) wrote(err error) {
	if err == nil {
		w.writes = append(w.writes, w.now.Time)
	}
}

func (w *model) ClosePull(_ context.Context, n int64) error {
	none, err := w.failing("close")
	if none {
		return err
	}
	if w.commits[w.branch].by != by {
		w.fatal("somebody else's is closed")
	}
	w.pulls[n-1].State = forge.Closed
	return err
}

func (w *model) CreateComment(context.Context, int64, string) (forge.Comment, error) {
	return forge.Comment{}, nil
}

// Pull of the forge and of the mirror have one name.
func (w host) Pull(_ context.Context, n int64) (forge.PullRequest, error) {
	return w.show(w.pulls[n-1]), nil
}

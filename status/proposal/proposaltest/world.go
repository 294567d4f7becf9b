// Package proposaltest contains the contract test for every kind of proposal, and the simulated world of
// these tests: a repository over HTTP, and a forge in memory that knows its branches.
package proposaltest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
)

// World is a repository, a forge, and a store.
type World struct {
	T     *testing.T
	Repo  *sourcetest.Repo
	Git   *source.Git
	Store state.Store
	Now   proposal.Now
	// Pulls are the pull requests, the oldest first. Bodies are their texts and Said the comments, in the
	// order in which they were written.
	Pulls        []*forge.PullRequest
	Bodies, Said []string
	// Events are the kinds of events, and Told their texts.
	Events, Told []string
	// Calls counts requests to the forge, and pushes.
	Calls map[string]int
	// Fails contains the errors of the next calls by name. Lost says that these calls still take effect.
	Fails map[string]error
	Lost  bool
	// Crash names the call after which the process ends. The call takes effect, and nothing is stored until
	// Revive.
	Crash   string
	crashed bool
	// Oldest says that the forge returns the first of several pull requests of a branch.
	Oldest bool
	push   *transport.Pusher
}

// NewWorld returns a new world.
func NewWorld(t *testing.T) *World {
	t.Helper()
	w := &World{T: t, Repo: sourcetest.New(t), Fails: map[string]error{}, Calls: map[string]int{}}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("any\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Store = w.NewStore()
	var err error
	if w.Git, err = source.New(source.Config{Name: "s", URL: w.Repo.URL(), Ref: source.Ref{Branch: "main"}, Dir: t.TempDir()}, source.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Git.Close)
	if w.push, err = transport.NewPusher(w.Repo.URL(), transport.Settings{Auth: transport.Auth{TokenFile: file}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.push.Close)
	w.Now = proposal.Now{Time: sourcetest.Epoch.Add(time.Hour), Base: "main"}
	return w
}

// NewStore returns a separate store, as another member has.
func (w *World) NewStore() state.Store {
	w.T.Helper()
	db, err := state.Open(w.T.TempDir())
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = db.Close() })
	return mortal{db, w}
}

// mortal is a store that rejects writes after the process has ended.
type mortal struct {
	state.Store
	w *World
}

var errEnded = errors.New("the process has ended")

func (s mortal) Update(fn func(*state.Tx) error) error {
	if s.w.crashed {
		return errEnded
	}
	return s.Store.Update(fn)
}

// Revive allows the next process to write.
func (w *World) Revive() { w.crashed = false }

// Options returns the options of a process in this world. They redact the word hunter2.
func (w *World) Options(every time.Duration) proposal.Options {
	return proposal.Options{
		Source: "s", PageURL: "https://weir.example.com", Author: "weir", Address: "weir@localhost", Every: every, Forge: host{w}, Git: w.Git, Pusher: pusher{w},
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
		Event:  func(e events.Event) { w.Events, w.Told = append(w.Events, e.Kind), append(w.Told, e.Text) },
		Logger: slog.New(slog.DiscardHandler),
	}
}

// Commit commits files, given as names and contents, and follows the commit.
func (w *World) Commit(message string, files ...string) string {
	w.T.Helper()
	in := map[string]string{}
	for i := 0; i < len(files); i += 2 {
		in[files[i]] = files[i+1]
	}
	w.Repo.Write(in)
	sha := w.Repo.Commit(message)
	w.Follow()
	return sha
}

// Follow follows the current commit of the branch.
func (w *World) Follow() {
	w.T.Helper()
	s, err := w.Git.Latest(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	w.Now.Head = s.Revision
}

// Last returns the last pull request, or nil.
func (w *World) Last() *forge.PullRequest {
	if len(w.Pulls) == 0 {
		return nil
	}
	return w.Pulls[len(w.Pulls)-1]
}

// Changes lists the files that the last pull request would change, with their contents.
func (w *World) Changes() string {
	branch := w.Last().HeadRef
	var out []string
	for name := range strings.FieldsSeq(w.Repo.Git("diff", "--name-only", "main..."+branch)) {
		out = append(out, name+"="+w.Repo.Git("show", branch+":"+name))
	}
	return strings.Join(out, " ")
}

// Branches lists weir's branches on the server, with their commits.
func (w *World) Branches() string {
	return w.Repo.Git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/weir")
}

// Push makes somebody else push to a branch, with a message that looks like weir's.
func (w *World) Push(branch string) (sha string) {
	message := w.Repo.Git("log", "-1", "--format=%B", branch)
	sha = w.Repo.Git("commit-tree", "-m", message, "-p", branch, branch+"^{tree}")
	w.Repo.Git("update-ref", "refs/heads/"+branch, sha)
	return sha
}

// Merge merges the last pull request, like a forge.
func (w *World) Merge(method string) {
	w.T.Helper()
	p := w.Last()
	args := []string{"commit-tree", "-m", "merged", "-p", "main"}
	if method == "merge" {
		args = append(args, "-p", p.HeadRef)
	}
	// The tree of a merge without conflicts contains main with the changes of the branch.
	tree := strings.Fields(w.Repo.Git("merge-tree", "--write-tree", "main", p.HeadRef))[0]
	sha := w.Repo.Git(append(args, tree)...)
	w.Repo.Git("update-ref", "refs/heads/main", sha)
	p.State, p.MergeSHA = forge.Merged, sha
}

// failing counts a call, and returns its configured error.
func (w *World) failing(call string) (none bool, err error) {
	w.Calls[call]++
	if w.Crash == call {
		w.Crash, w.crashed = "", true
		return false, errEnded
	}
	err = w.Fails[call]
	delete(w.Fails, call)
	return err != nil && !w.Lost, err
}

// show returns a pull request as the forge currently shows it.
func (w *World) show(p *forge.PullRequest) forge.PullRequest {
	if at := w.Repo.Git("for-each-ref", "--format=%(objectname)", "refs/heads/"+p.HeadRef); at != "" && p.State == forge.Open && !p.Fork {
		p.HeadSHA = at
	}
	return *p
}

// host implements the forge.
type host struct{ *World }

func (w host) Pulls(context.Context, forge.Cursor) (list []forge.PullRequest, next forge.Cursor, same bool, err error) {
	for _, p := range w.World.Pulls {
		if p.State == forge.Open {
			list = append(list, w.show(p))
		}
	}
	_, err = w.failing("list")
	return list, "", false, err
}

func (w host) Pull(_ context.Context, n int64) (forge.PullRequest, error) {
	w.Calls["pull"]++
	return w.show(w.World.Pulls[n-1]), nil
}

func (w host) PullOf(_ context.Context, base, head string) (forge.PullRequest, bool, error) {
	list := slices.Clone(w.World.Pulls)
	if !w.Oldest {
		slices.Reverse(list)
	}
	for _, p := range list {
		if p.HeadRef == head && p.BaseRef == base && !p.Fork {
			return w.show(p), true, nil
		}
	}
	return forge.PullRequest{}, false, nil
}

func (w host) OpenPull(_ context.Context, p forge.Proposal) (forge.PullRequest, error) {
	none, err := w.failing("open")
	if none {
		return forge.PullRequest{}, err
	}
	for _, o := range w.World.Pulls {
		if o.State == forge.Open && o.HeadRef == p.Head && o.BaseRef == p.Base && !o.Fork {
			w.T.Errorf("%s is opened while it is", p.Head)
		}
	}
	n := int64(len(w.World.Pulls) + 1)
	w.World.Pulls = append(w.World.Pulls, &forge.PullRequest{Number: n, State: forge.Open, HeadRef: p.Head, BaseRef: p.Base, Title: p.Title, WebURL: "https://git.example.com/" + strconv.FormatInt(n, 10), UpdatedAt: w.Now.Time})
	w.Bodies = append(w.Bodies, p.Body)
	return w.show(w.Last()), err
}

func (w host) EditPull(_ context.Context, n int64, title, body string) error {
	none, err := w.failing("edit")
	if none {
		return err
	}
	if title != "" {
		w.World.Pulls[n-1].Title = title
	}
	w.Bodies = append(w.Bodies, body)
	return err
}

func (w host) ClosePull(_ context.Context, n int64) error {
	none, err := w.failing("close")
	if !none {
		w.World.Pulls[n-1].State = forge.Closed
	}
	return err
}

func (w host) CreateComment(_ context.Context, _ int64, body string) (forge.Comment, error) {
	w.Said = append(w.Said, body)
	_, err := w.failing("comment")
	return forge.Comment{ID: 1}, err
}

// pusher creates branches.
type pusher struct{ *World }

func (w pusher) At(ctx context.Context, branch string) (string, error) {
	return w.push.At(ctx, branch)
}

func (w pusher) Make(ctx context.Context, b transport.Branch) error {
	none, err := w.failing("push")
	if none {
		return err
	}
	return errors.Join(w.push.Make(ctx, b), err)
}

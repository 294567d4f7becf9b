package accepts

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
)

// world is a repository over HTTP, a forge in memory that knows its branches, and a Source
// between them. The file web holds what Git wants, and aws is what AWS has.
type world struct {
	t      *testing.T
	repo   *sourcetest.Repo
	git    *source.Git
	store  state.Store
	pulls  []*forge.PullRequest
	bodies []string
	said   []string
	events []string
	pushes int
	aws    string
	left   string // why what AWS has cannot be written
	// fails is the error of the next write of a kind, lost says that the write is done all the
	// same.
	fails  map[string]error
	lost   bool
	pusher *transport.Pusher
	now    proposal.Now
	s      *Source
}

var records = state.Bucket[struct{}]{Name: "accepts"}

var web = Asked{Target: "prod", Pool: "default/web", By: "ann"}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, repo: sourcetest.New(t), fails: map[string]error{}, aws: "3"}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("any\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w.store = db
	if w.git, err = source.New(source.Config{Name: "s", URL: w.repo.URL(), Ref: source.Ref{Branch: "main"}, Dir: t.TempDir()}, source.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.git.Close)
	if w.pusher, err = transport.NewPusher(w.repo.URL(), transport.Settings{Auth: transport.Auth{TokenFile: file}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pusher.Close)
	w.now.Time = sourcetest.Epoch.Add(time.Hour)
	w.restart()
	w.commit("web", "3")
	return w
}

// restart is another process: what is in memory is lost.
func (w *world) restart() {
	w.s = New(Options{
		Options: proposal.Options{
			Source: "s", PageURL: "https://weir.example.com", Author: "weir", Address: "weir@localhost", Every: 5 * time.Minute, Forge: w, Git: w.git, Pusher: w,
			Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }, Event: func(e events.Event) { w.events = append(w.events, e.Kind) },
			Logger: slog.New(slog.DiscardHandler),
		},
		Fleet: w,
	})
}

// commit follows a commit with another content of a file.
func (w *world) commit(name, content string) {
	w.t.Helper()
	w.repo.Write(map[string]string{name: content})
	w.repo.Commit(name)
	w.follow()
}

func (w *world) follow() {
	w.t.Helper()
	s, err := w.git.Latest(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.now.Head, w.now.Base = s.Revision, "main"
}

// turn turns after what was tried before may be tried again, and gives what is kept.
func (w *world) turn() (e Entry) {
	w.t.Helper()
	w.now.Time = w.now.Time.Add(time.Hour)
	if _, err := w.s.Turn(w.t.Context(), w.store, w.now); err != nil {
		w.t.Fatal(err)
	}
	all, err := w.s.Read(w.store)
	if err != nil || len(all) > 1 {
		w.t.Fatal(all, err)
	}
	if len(all) == 1 {
		e = all[0]
	}
	return e
}

// ask asks, and gives the number or why there is none.
func (w *world) ask() (int64, string) {
	w.t.Helper()
	w.now.Time = w.now.Time.Add(time.Second)
	e, _, err := w.s.Ask(w.t.Context(), w.store, w.now, web)
	var wrong *gates.Fault
	switch {
	case errors.As(err, &wrong):
		return 0, wrong.Message
	case err != nil:
		w.t.Fatal(err)
	}
	return e.Number, ""
}

func (w *world) Find(ctx context.Context, on string, a Asked) (out Found, err error) {
	s, err := w.git.At(ctx, on)
	if err != nil {
		return out, err
	}
	text, err := s.Tree.ReadFile("web")
	if err != nil || string(text) == w.aws || a.Target != web.Target || len(a.Fields) > 0 && !slices.Contains(a.Fields, "size") {
		return out, err
	}
	out.Fields = []accept.Field{{Target: a.Target, Pool: a.Pool, Field: "size", Value: w.aws, At: "web:1", Left: w.left}}
	if w.left == "" {
		out.Files, out.More = map[string][]byte{"web": []byte(w.aws)}, []string{"rollout of hunter2"}
	}
	return out, nil
}

func (w *world) failing(what string) error {
	err := w.fails[what]
	delete(w.fails, what)
	return err
}

func (w *world) At(ctx context.Context, branch string) (string, error) {
	return w.pusher.At(ctx, branch)
}

func (w *world) Make(ctx context.Context, b transport.Branch) error {
	err := w.failing("push")
	if err != nil && !w.lost {
		return err
	}
	w.pushes++
	return errors.Join(w.pusher.Make(ctx, b), err)
}

// show is a pull request as the forge shows it now.
func (w *world) show(p *forge.PullRequest) forge.PullRequest {
	if at := w.repo.Git("for-each-ref", "--format=%(objectname)", "refs/heads/"+p.HeadRef); at != "" && p.State == forge.Open {
		p.HeadSHA = at
	}
	return *p
}

func (w *world) Pulls(context.Context, forge.Cursor) (list []forge.PullRequest, next forge.Cursor, same bool, err error) {
	for _, p := range w.pulls {
		if p.State == forge.Open {
			list = append(list, w.show(p))
		}
	}
	return list, "", false, w.failing("list")
}

func (w *world) Pull(_ context.Context, n int64) (forge.PullRequest, error) {
	return w.show(w.pulls[n-1]), nil
}

func (w *world) PullOf(_ context.Context, base, head string) (forge.PullRequest, bool, error) {
	for _, p := range slices.Backward(w.pulls) {
		if p.HeadRef == head && p.BaseRef == base {
			return w.show(p), true, nil
		}
	}
	return forge.PullRequest{}, false, nil
}

func (w *world) OpenPull(_ context.Context, p forge.Proposal) (forge.PullRequest, error) {
	err := w.failing("open")
	if err != nil && !w.lost {
		return forge.PullRequest{}, err
	}
	for _, o := range w.pulls {
		if o.State == forge.Open {
			w.t.Errorf("%s is opened while %s is", p.Head, o.HeadRef)
		}
	}
	w.pulls = append(w.pulls, &forge.PullRequest{Number: int64(len(w.pulls) + 1), State: forge.Open, HeadRef: p.Head, BaseRef: p.Base, Title: p.Title, UpdatedAt: w.now.Time})
	w.bodies = append(w.bodies, p.Body)
	return w.show(w.pulls[len(w.pulls)-1]), err
}

func (w *world) EditPull(_ context.Context, _ int64, _, body string) error {
	err := w.failing("edit")
	if err == nil || w.lost {
		w.bodies = append(w.bodies, body)
	}
	return err
}

func (w *world) ClosePull(_ context.Context, n int64) error {
	err := w.failing("close")
	if err == nil || w.lost {
		w.pulls[n-1].State = forge.Closed
	}
	return err
}

func (w *world) CreateComment(_ context.Context, _ int64, body string) (forge.Comment, error) {
	w.said = append(w.said, body)
	return forge.Comment{ID: 1}, w.failing("comment")
}

// proposes checks the last pull request: what its branch has, and what was told so far.
func (w *world) proposes(n int, content, told string) {
	w.t.Helper()
	if len(w.pulls) != n {
		w.t.Fatalf("%d pull requests, want %d", len(w.pulls), n)
	}
	p := w.pulls[n-1]
	if got := w.repo.Git("show", p.HeadRef+":web"); got != content {
		w.t.Errorf("the branch has %s, want %s", got, content)
	}
	if got := strings.Join(w.events, " "); got != told {
		w.t.Errorf("told %q, want %q", got, told)
	}
}

package comments

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/outbox"
	"github.com/weir-gitops/weir/status/report"
)

// writer writes the comments on the pull requests of one source. Only its worker sends requests to the
// forge.
type writer struct {
	source, instance string
	forge            PullForge
	box              *outbox.Outbox
	log              *slog.Logger
	wrote            func(forge, result string)
	redact           report.Redact
	// speaks reports whether this weir owns the source. store then contains the record of written comments.
	speaks func() bool
	store  func() state.Store
	// login is the token's user, once it was read. Only the worker uses it.
	login string

	mu    sync.Mutex
	pulls map[int64]*pullComment
	// records contains the written comments whose records were read so far.
	records map[int64]written
	// longest is the maximum length of a comment. It starts at the forge's documented limit, and shrinks if
	// the forge refuses a comment for its length.
	longest int
	turn    int
}

// pullComment is the comment of a pull request.
type pullComment struct {
	pull report.Pull
	// turn is the number of its last change. The comments that wait longest are written first.
	turn int
	// open says that the comment may not be up to date.
	open  bool
	entry outbox.Entry
	// again makes the next write read the comment, and write it even if it has the wanted text, because
	// somebody may have edited or deleted it.
	again bool
	// Only the worker uses these fields. read says that the worker searched for the comment. id is 0 if
	// there is no comment, and text is its content. gone says that the comment was deleted, and foreign
	// that another user edited it.
	read          bool
	id            int64
	text          string
	gone, foreign bool
}

// mostEnded bounds the ended pull requests that wait for their last comment, with their plans. Otherwise,
// their number would grow without limit while the forge accepts no comments.
const mostEnded = 50

// errNotOurs means that another weir now owns the source.
var errNotOurs = errors.New("another weir speaks for the source")

// leastComment is the minimum limit that weir tries if a forge refuses a text for its length.
const leastComment = 4000

// errTooLong means that the comment must be shortened and written again.
var errTooLong = errors.New("comment is too long")

// enqueue sets the next report to write.
func (w *writer) enqueue(p report.Pull) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.pulls[p.Number]
	if t == nil {
		t = &pullComment{}
		w.pulls[p.Number] = t
	}
	w.turn++
	t.pull, t.turn, t.open, t.entry = p, w.turn, true, outbox.Entry{}
	if p.Ended() {
		w.bound()
	}
	w.box.Nudge()
}

// bound forgets the oldest ended pull requests, if there are more than mostEnded.
func (w *writer) bound() {
	ended := 0
	var oldest *pullComment
	for _, t := range w.pulls {
		if t.pull.Ended() {
			ended++
			if oldest == nil || t.turn < oldest.turn {
				oldest = t
			}
		}
	}
	if ended > mostEnded {
		w.log.Warn("comment on a pull request that ended is given up: too many wait", "pull", oldest.pull.Number)
		delete(w.pulls, oldest.pull.Number)
	}
}

func (w *writer) left() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.pulls {
		if t.open && !t.entry.GaveUp() {
			n++
		}
	}
	return n
}

func (w *writer) retry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.pulls {
		t.entry.Reset()
	}
	w.box.TryToken()
}

// draft is a comment to write, as it was when its write started.
type draft struct {
	*pullComment
	pull report.Pull
	turn int
}

// work writes until ctx ends; when draining, until nothing is left.
func (w *writer) work(ctx context.Context, drain bool) {
	outbox.Work(ctx, w.box, drain, w.next, func(ctx context.Context, c draft) {
		if result, err := w.write(ctx, c.pullComment, c.pull); (err == nil || ctx.Err() == nil) && !errors.Is(err, errNotOurs) {
			w.done(c, result, err)
		}
	})
}

// next returns the comment to write now. If nothing is due, wait is the time until there may be one, 0 if
// there is nothing to write.
func (w *writer) next() (found draft, wait time.Duration, ok bool) {
	if !w.speaks() {
		return draft{}, 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return outbox.Pick(w.box, func(yield func(*outbox.Entry, draft) bool) {
		for _, t := range w.pulls {
			if t.open && !yield(&t.entry, draft{t, t.pull, t.turn}) {
				return
			}
		}
	}, func(a, b draft) bool { return a.turn < b.turn })
}

// find searches for the comment, by marker and author. It deletes duplicates that a crash left behind, and
// keeps the oldest.
func (w *writer) find(ctx context.Context, t *pullComment, p report.Pull) error {
	if w.login == "" {
		err := w.call(ctx, func(ctx context.Context) (err error) {
			w.login, err = w.forge.Self(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if w.login == "" {
			return &forgehttp.Error{Forge: w.forge.Profile().Label, Fault: forgehttp.FaultDenied, Message: "the forge does not say whose token it is, and comments cannot be told from others'"}
		}
	}
	var list []forge.Comment
	err := w.call(ctx, func(ctx context.Context) (err error) {
		list, err = w.forge.Comments(ctx, p.Number, time.Time{})
		return err
	})
	if err != nil {
		return err
	}
	last, err := w.last(p.Number)
	if err != nil {
		return err
	}
	marker := report.PullMarker(w.instance, w.source)
	list = slices.DeleteFunc(list, func(c forge.Comment) bool {
		marked := c.ID == last.ID || strings.HasPrefix(strings.TrimSpace(c.Body), marker) // an editor of the comment may have removed the marker
		return !marked || !strings.EqualFold(c.Author, w.login)
	})
	slices.SortFunc(list, func(a, b forge.Comment) int { return int(min(max(a.ID-b.ID, -1), 1)) })
	t.read, t.id, t.text, t.gone, t.foreign = true, 0, "", last.ID != 0, false
	for i, c := range list {
		if i == 0 {
			t.id, t.text, t.gone = c.ID, c.Body, false
			if err := w.recognize(t, p.Number, last, c); err != nil {
				return err
			}
			continue
		}
		err := w.call(ctx, func(ctx context.Context) error { return w.forge.DeleteComment(ctx, p.Number, c.ID) })
		if err != nil && !forge.Gone(err) {
			t.read = false
			return err
		}
	}
	return nil
}

// call makes one request within the rate limit.
func (w *writer) call(ctx context.Context, do func(context.Context) error) error {
	if err := w.box.Wait(ctx); err != nil {
		return err
	}
	if !w.speaks() { // the wait may have taken long
		return errNotOurs
	}
	ctx, cancel := context.WithTimeout(ctx, commits.RequestTimeout)
	defer cancel()
	return do(ctx)
}

// done records the result of a write.
func (w *writer) done(c draft, result string, err error) {
	if errors.Is(err, errTooLong) {
		return // the comment stays open, and the next text is shorter
	}
	var refusal *forgehttp.Error
	if err != nil && !errors.As(err, &refusal) {
		refusal = &forgehttp.Error{Forge: w.forge.Profile().Label, Fault: forgehttp.FaultBusy, Message: err.Error(), Err: err}
	}
	if refusal != nil {
		result = string(refusal.Fault)
	}
	if w.wrote != nil {
		w.wrote(w.forge.Profile().Label, result)
	}
	ended := false
	defer func() {
		if ended {
			w.unnote(c.pull.Number) // it may wait, so do not call it under the lock
		}
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.log.With("pull", c.pull.Number)
	current := c.pullComment.turn == c.turn // no newer state must be reported
	forget := func() {
		if c.pull.Ended() && w.pulls[c.pull.Number] == c.pullComment { // otherwise it was opened again
			delete(w.pulls, c.pull.Number)
			ended = true
		}
	}
	if refusal == nil {
		if w.box.Succeeded() {
			log.Info("comments on pull requests are accepted again")
		}
		if current {
			c.open, c.pullComment.pull = false, report.Pull{} // its reports may be large
			forget()
		}
		return
	}
	failure, entry := commits.FailureOf(refusal), (*outbox.Entry)(nil)
	if current {
		entry = &c.entry
	}
	if failure.Most = commits.LastingTries; refusal.Fault == forgehttp.FaultMissing {
		failure.Most = commits.MissingTries
	}
	log = log.With("error", w.redact.Text(refusal.Error()))
	switch w.box.Failed(entry, failure) {
	case outbox.FirstDenied:
		log.Error("comments on pull requests are refused; they are tried again until the token is accepted")
	case outbox.GivenUp:
		forget()
		log.Error("comment on a pull request is given up")
	case outbox.FirstAgain:
		log.Warn("comment on a pull request is tried again")
	case outbox.Denied, outbox.Again, outbox.Superseded:
	}
}

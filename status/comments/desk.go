package comments

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
)

// desk writes the comments on the pull requests of one source. Only its worker calls
// the forge.
type desk struct {
	source, instance string
	forge            PullForge
	limit            *rate.Limiter
	wake             chan struct{}
	log              *slog.Logger
	wrote            func(forge, result string)
	now              func() time.Time
	redact           report.Redact
	// login is the token's, once it was read. Only the worker uses it.
	login string

	mu   sync.Mutex
	told map[int64]*told
	// longest is the longest comment that the forge takes, less than its usual one
	// once it refused one.
	longest int
	// notBefore is when the forge, by its own word, may be asked again. denied counts
	// the refusals of the token in a row, and deniedUntil is when it is tried again.
	notBefore, deniedUntil time.Time
	denied                 int
	turn                   int
}

// told is the comment of a pull request.
type told struct {
	pull report.Pull
	// turn is when it was shown last: the ones that wait longest go first.
	turn int
	// open says that the comment may not be as it should be.
	open      bool
	tries     int
	notBefore time.Time
	gaveUp    bool
	// Only the worker uses these. read says that the comment was looked for; id is 0
	// if there is none, and text is what it says.
	read bool
	id   int64
	text string
}

// commentTries bounds how often a comment is tried that fails for what may pass:
// about a day.
const commentTries = 15 + 96

// mostEnded is how many pull requests that ended may wait for their last word, the
// plans of each with it: where no comment is taken, more would come for ever.
const mostEnded = 50

// leastComment is the shortest limit that is tried where a forge refuses a text for
// its length.
const leastComment = 4000

// errTooLong says that a comment is to be tried again, shorter.
var errTooLong = errors.New("comment is too long")

// take notes what is to be told.
func (d *desk) take(p report.Pull) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.told[p.Number]
	if t == nil {
		t = &told{}
		d.told[p.Number] = t
	}
	d.turn++
	t.pull, t.turn, t.open, t.gaveUp, t.tries, t.notBefore = p, d.turn, true, false, 0, time.Time{}
	if p.Ended() {
		d.bound()
	}
	d.nudge()
}

// bound forgets the pull requests that ended the longest ago of more than mostEnded.
func (d *desk) bound() {
	ended := 0
	var oldest *told
	for _, t := range d.told {
		if t.pull.Ended() {
			ended++
			if oldest == nil || t.turn < oldest.turn {
				oldest = t
			}
		}
	}
	if ended > mostEnded {
		d.log.Warn("comment on a pull request that ended is given up: too many wait", "pull", oldest.pull.Number)
		delete(d.told, oldest.pull.Number)
	}
}

func (d *desk) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *desk) left() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.told {
		if t.open && !t.gaveUp {
			n++
		}
	}
	return n
}

func (d *desk) retry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.denied, d.deniedUntil = 0, time.Time{}
	for _, t := range d.told {
		t.gaveUp, t.tries, t.notBefore = false, 0, time.Time{}
	}
	d.nudge()
}

// work writes until ctx ends; when draining, until nothing is left.
func (d *desk) work(ctx context.Context, drain bool) {
	for ctx.Err() == nil {
		t, p, turn, wait := d.next()
		if t == nil {
			if deadline, bound := ctx.Deadline(); drain && (wait == 0 || bound && wait > time.Until(deadline)) {
				return
			}
			if !commits.Pause(ctx, wait, d.wake) {
				return
			}
			continue
		}
		result, err := d.write(ctx, t, p)
		if ctx.Err() != nil && err != nil {
			return
		}
		d.done(t, p, turn, result, err)
	}
}

// next is the comment to write now. Where there is none, wait says when there will
// be, 0 if nothing is to be written.
func (d *desk) next() (found *told, p report.Pull, turn int, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	for _, t := range d.told {
		if !t.open || t.gaveUp {
			continue
		}
		if delay := commits.Latest(t.notBefore, d.notBefore, d.deniedUntil).Sub(now); delay > 0 {
			if wait == 0 || delay < wait {
				wait = delay
			}
			continue
		}
		if found == nil || t.turn < found.turn {
			found = t
		}
	}
	if found == nil {
		return nil, report.Pull{}, 0, wait
	}
	return found, found.pull, found.turn, 0
}

// write brings the comment of a pull request to what it should say.
func (d *desk) write(ctx context.Context, t *told, p report.Pull) (result string, err error) {
	d.mu.Lock()
	longest := d.longest
	d.mu.Unlock()
	text := Text(p, TextOptions{Instance: d.instance, Forge: d.forge.Kind(), Limit: longest})
	if !t.read {
		if err := d.find(ctx, t, p); err != nil {
			return "", err
		}
	}
	if t.id != 0 && same(t.text, text) {
		return "unchanged", nil
	}
	if t.id != 0 {
		err := d.call(ctx, func(ctx context.Context) error { return d.forge.EditComment(ctx, p.Number, t.id, text) })
		switch {
		case err == nil:
			t.text = text
			return "written", nil
		case forge.TooLong(err) && d.shorten(longest):
			return "", errTooLong
		case !forge.Gone(err):
			return "", err
		}
		// A person deleted it, or the token cannot see it any more: looking tells.
		if err := d.find(ctx, t, p); err != nil {
			return "", err
		}
		if t.id != 0 {
			return "", err
		}
	}
	if !getsComment(p) {
		return "unchanged", nil
	}
	var id int64
	err = d.call(ctx, func(ctx context.Context) (err error) {
		id, err = d.forge.CreateComment(ctx, p.Number, text)
		return err
	})
	switch {
	case err == nil:
		t.id, t.text = id, text
		return "written", nil
	case forge.TooLong(err) && d.shorten(longest):
		return "", errTooLong
	case commits.Unclear(err):
		t.read = false // it may be there
	}
	return "", err
}

// same reports whether a comment says a text already. Forges may store line ends and
// the end of a text in their own way.
func same(a, b string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(a) == plain(b)
}

// find looks for the comment, by marker and author. Others that a crash left behind
// are deleted: the oldest stays.
func (d *desk) find(ctx context.Context, t *told, p report.Pull) error {
	if d.login == "" {
		err := d.call(ctx, func(ctx context.Context) (err error) {
			d.login, err = d.forge.Self(ctx)
			return err
		})
		if err != nil {
			return err
		}
		if d.login == "" {
			return &forgehttp.Error{Forge: string(d.forge.Kind()), Fault: forgehttp.FaultDenied, Message: "the forge does not say whose token it is, and comments cannot be told from others'"}
		}
	}
	var list []forge.Comment
	err := d.call(ctx, func(ctx context.Context) (err error) {
		list, err = d.forge.Comments(ctx, p.Number, time.Time{})
		return err
	})
	if err != nil {
		return err
	}
	marker := report.PullMarker(d.instance, d.source)
	list = slices.DeleteFunc(list, func(c forge.Comment) bool {
		return !strings.EqualFold(c.Author, d.login) || !strings.HasPrefix(strings.TrimSpace(c.Body), marker)
	})
	slices.SortFunc(list, func(a, b forge.Comment) int { return int(min(max(a.ID-b.ID, -1), 1)) })
	t.read, t.id, t.text = true, 0, ""
	for i, c := range list {
		if i == 0 {
			t.id, t.text = c.ID, c.Body
			continue
		}
		err := d.call(ctx, func(ctx context.Context) error { return d.forge.DeleteComment(ctx, p.Number, c.ID) })
		if err != nil && !forge.Gone(err) {
			t.read = false
			return err
		}
	}
	return nil
}

// call makes one request, in its turn.
func (d *desk) call(ctx context.Context, do func(context.Context) error) error {
	if err := d.limit.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commits.RequestTimeout)
	defer cancel()
	return do(ctx)
}

// shorten has comments be shorter from now on, if they are not short already.
func (d *desk) shorten(was int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if was/2 < leastComment {
		return false
	}
	d.longest = min(d.longest, was/2)
	return true
}

// done notes how a write ended.
func (d *desk) done(t *told, p report.Pull, turn int, result string, err error) {
	if errors.Is(err, errTooLong) {
		return // it is still open, and the next text is shorter
	}
	var refusal *forgehttp.Error
	if err != nil && !errors.As(err, &refusal) {
		refusal = &forgehttp.Error{Forge: string(d.forge.Kind()), Fault: forgehttp.FaultBusy, Message: err.Error(), Err: err}
	}
	if refusal != nil {
		result = string(refusal.Fault)
	}
	if d.wrote != nil {
		d.wrote(string(d.forge.Kind()), result)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	log := d.log.With("pull", p.Number)
	if refusal == nil {
		if d.denied > 0 {
			log.Info("comments on pull requests are accepted again")
		}
		d.denied, d.deniedUntil = 0, time.Time{}
		if t.turn == turn {
			t.open, t.pull = false, report.Pull{} // its reports may be large
			if p.Ended() {
				delete(d.told, p.Number)
			}
		}
		return
	}
	if refusal.After > 0 {
		d.notBefore = d.now().Add(refusal.After)
	}
	log = log.With("error", d.redact.Text(refusal.Error()))
	if refusal.Fault == forgehttp.FaultDenied {
		d.denied++
		d.deniedUntil = d.now().Add(commits.Doubled(commits.FirstDenied, d.denied, commits.SlowDelay))
		if d.denied == 1 {
			log.Error("comments on pull requests are refused; they are tried again until the token is accepted")
		}
		return
	}
	if t.turn != turn {
		return // something else is to be told by now
	}
	t.tries++
	if refusal.Fault == forgehttp.FaultRefused || t.tries >= commentTries || refusal.Fault == forgehttp.FaultMissing && t.tries >= commits.MissingTries {
		t.gaveUp = true
		if p.Ended() {
			delete(d.told, p.Number)
		}
		log.Error("comment on a pull request is given up")
		return
	}
	t.notBefore = d.now().Add(commits.Backoff(t.tries))
	if t.tries == 1 {
		log.Warn("comment on a pull request is tried again")
	}
}

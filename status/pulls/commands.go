package pulls

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

const (
	// overlap is the period of comments that is read again, because the clocks and lists of forges are not
	// exact. Each comment is still handled only once.
	overlap = 2 * time.Minute
	// between is the minimum time between two replies on one pull request.
	between = time.Minute
	// holdUp is the maximum time that a comment with missing data on the forge delays later comments. Its
	// author may have been deleted, and the forge may never return the data.
	holdUp = 30 * time.Minute
	// fullList is the maximum number of comments that a forge lists. mostMarks is the maximum number of
	// comments by users without permission that get a reaction per poll, so that outsiders cannot use up
	// the forge's hourly rate limit.
	fullList, mostMarks = 1000, 20
)

const helpText = "Commands are the first line of a comment:\n\n" +
	"- `weir plan` plans this pull request again; on a fork's pull request or a draft, it permits a plan of this commit if the configuration allows that\n" +
	"- `weir approve` approves the plan that is shown, for targets that hold until they are approved; `weir approve DIGEST` names the plan or one target's plan\n" +
	"- `weir unapprove` withdraws the approvals that were given here, `weir unapprove DIGEST` the approval of one plan; no further step starts\n" +
	"- `weir help` shows this\n\n" +
	"All commands except `weir help` need write access to this repository."

// comments reads the comments on open pull requests, and executes the commands in them. Only Run uses it.
type comments struct {
	records
	log     *slog.Logger
	self    *login
	pulls   *pullRequests
	listing *listing

	// levels contains the permissions of users that were read during this poll. marks is the number of
	// comments by users without permission that got a reaction during this poll.
	levels map[string]forge.Level
	marks  int
}

// read reads the comments since the last poll, and executes their commands.
func (l *comments) read(ctx context.Context) error {
	l.levels, l.marks = map[string]forge.Level{}, 0
	since, err := l.since()
	if err != nil {
		return err
	}
	from := since.Add(-overlap)
	list, err := l.Forge.CommentsSince(ctx, from)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b forge.Comment) int { return cmp.Compare(a.ID, b.ID) })
	l.pulls.forgetComments(list)
	for _, c := range list {
		k := l.pulls.open[c.Number]
		switch {
		case k == nil || k.merged():
			continue
		case strings.EqualFold(c.Author, l.self.get()):
			l.guard(k, c)
			continue
		}
		if again, err := l.act(ctx, k, c, from); again {
			return err // the next poll reads this comment and later ones again
		}
	}
	if len(list) < fullList {
		l.pulls.readAll()
	}
	newest := newestOf(list, since)
	// Repeat the same request while there are no new comments, so that the forge can answer "not modified".
	if newest.Equal(since) {
		return nil
	}
	return l.DB.Update(func(tx *state.Tx) error { return readTo.Put(tx, l.Source, newest) })
}

// newestOf returns the time from which the next read starts: the last change of a comment in list, but not
// before since. For a full list it is later, because the next read starts before it by the overlap.
func newestOf(list []forge.Comment, since time.Time) time.Time {
	newest, last := since, time.Time{}
	for _, c := range list {
		if c.UpdatedAt.After(last) {
			last = c.UpdatedAt
		}
		if c.UpdatedAt.After(newest) {
			newest = c.UpdatedAt
		}
	}
	if len(list) >= fullList {
		// There are more. If there are many in a short time, reading with overlap would never get past
		// them.
		if last = last.Add(overlap); last.After(newest) {
			newest = last
		}
	}
	return newest
}

// act handles a comment by a user. again says that the comment must be read again.
func (l *comments) act(ctx context.Context, k *openPull, c forge.Comment, from time.Time) (again bool, err error) {
	handle := l.obey
	if c.ID <= k.Comment || c.CreatedAt.Before(from) {
		handle = l.answerEdited // it is listed because something happened to it later
	}
	if err := handle(ctx, k, c); ctx.Err() != nil || passing(err) && l.Now().Before(c.CreatedAt.Add(holdUp)) {
		return true, err
	} else if err != nil {
		l.log.Error("comment is not acted on", "pull", c.Number, "by", c.Author, "error", err)
	}
	if c.ID > k.Comment {
		k.Comment = c.ID
		l.save(k)
	}
	return false, nil
}

// passing reports whether an error from a forge is temporary.
func passing(err error) bool {
	var e *forgehttp.Error
	return errors.As(err, &e) && e.Fault == forgehttp.FaultBusy || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// obey executes the command in a comment, if it contains one. After an error, which comes from the forge,
// the comment is read again.
func (l *comments) obey(ctx context.Context, k *openPull, c forge.Comment) error {
	command, ok := forge.ParseCommand(c.Body)
	if !ok {
		return nil
	}
	level, err := l.level(ctx, c.Author)
	if err != nil {
		return l.answerDenied(ctx, k, c, err)
	}
	log := l.log.With("command", command.Name, "by", c.Author, "pull", k.Number)
	need := forge.Write
	if command.Name == forge.Help || command.Name == forge.Unknown {
		need = forge.Read
	}
	if level < need {
		log.Warn("comment is not acted on: its author has no write access")
		if l.marks++; l.marks > mostMarks {
			return nil
		}
		return l.answer(ctx, k, c, forge.Refused, "", false)
	}
	if need == forge.Write {
		doubt, err := l.doubt(ctx, c)
		if err != nil {
			return l.answerDenied(ctx, k, c, err)
		}
		if doubt != "" {
			log.Warn("comment is ignored: its text may differ from what its author wrote", "why", doubt)
			return l.recordCommand(k, c, command, l.answer(ctx, k, c, forge.Refused, doubt, false))
		}
	}
	log.Info("comment")
	return l.recordCommand(k, c, command, l.do(ctx, k, c, command))
}

// do executes a command in a comment, or answers it with a help text.
func (l *comments) do(ctx context.Context, k *openPull, c forge.Comment, command forge.Command) error {
	switch command.Name {
	case forge.Plan:
		return l.obeyPlan(ctx, k, c)
	case forge.Approve:
		return l.obeyApprove(ctx, k, c, command.Digest)
	case forge.Unapprove:
		return l.obeyUnapprove(ctx, k, c, command.Digest)
	case forge.Unknown:
		said := "weir has no such command."
		if command.Meant != "" {
			said = "weir did nothing. Write `" + command.Meant + "` alone on the first line, without other text on that line."
		}
		return l.answer(ctx, k, c, forge.Refused, said+"\n\n"+helpText, true)
	default:
		return l.answer(ctx, k, c, forge.Eyes, helpText, true)
	}
}

// answer adds a reaction to a comment, and replies if text is not empty. With seldom, it replies at most
// once a minute on a pull request.
func (l *comments) answer(ctx context.Context, k *openPull, c forge.Comment, r forge.Reaction, text string, seldom bool) error {
	if err := l.Forge.React(ctx, k.Number, c.ID, r); err != nil {
		l.log.Warn("comment is not acknowledged", "error", err)
	}
	if text == "" || seldom && l.Now().Before(k.replied.Add(between)) {
		return nil
	}
	k.replied = l.Now()
	if _, err := l.Forge.CreateComment(ctx, k.Number, text); err != nil {
		l.log.Warn("comment is not answered", "error", err)
	}
	return nil
}

// current reads a pull request when a command is executed. It reports whether weir had read its head before
// the comment was written. This is based on the order of weir's reads and on the forge's clock, because the
// forge may report a comment late.
func (l *comments) current(ctx context.Context, k *openPull, c forge.Comment) (bool, error) {
	pr, err := l.Forge.Pull(ctx, k.Number)
	if err != nil {
		return false, err
	}
	if pr.State != forge.Open || !l.Follows("refs/heads/"+pr.BaseRef) {
		l.listing.again() // the next poll then reads the whole list
		return false, nil
	}
	known := pr.HeadSHA == k.Seen && k.ReadAt == k.Seen && !c.CreatedAt.Before(k.SeenAt)
	l.pulls.update(pr)
	return known, nil
}

// obeyPlan handles the command plan: it requests a plan of the pull request, and if a fork needs the
// permission, allows its head. It refuses if the commenter must not allow it, or had not seen the head.
func (l *comments) obeyPlan(ctx context.Context, k *openPull, c forge.Comment) error {
	known, err := l.current(ctx, k, c)
	if err != nil {
		return err
	}
	if k.Reported {
		l.Display.Again(l.Source, k.Number) // the plan may be unchanged, but its comment deleted
	}
	waits := k.wait(l.Policy) != ""
	switch {
	case waits && !k.allows(l.Policy):
		return l.once(ctx, k, c, forksText(l.Policy))
	case waits && !known:
		return l.answer(ctx, k, c, forge.Refused, "Somebody pushed to the branch at the same time. Check the new commits, and comment again.", false)
	case waits:
		k.Allowed = k.Seen
		l.save(k)
	}
	k.asked = true
	return l.answer(ctx, k, c, forge.Eyes, "", false)
}

package pulls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
)

const (
	// overlap is how far back comments are read again: forges' clocks and lists
	// are not exact, and each comment is acted on once.
	overlap = 2 * time.Minute
	// between is the least time between two replies on one pull request.
	between = time.Minute
	// holdUp is how long a comment that the forge cannot tell enough of holds up
	// the ones after it: its author may be gone, of whom a forge may fail to tell for
	// ever.
	holdUp = 30 * time.Minute
	// fullList is how many comments a forge lists at most, mostMarks how many of
	// those whose authors may not give commands are marked at one poll: strangers
	// must not use up what the forge answers in an hour.
	fullList, mostMarks = 1000, 20
)

const helpText = "Commands are the first line of a comment:\n\n" +
	"- `weir plan` plans this pull request anew; on one from a fork, or on a draft, it lets this commit be planned where the configuration allows it\n" +
	"- `weir approve` lets the plan that is shown run where targets hold until they are approved; `weir approve DIGEST` names the plan or one target's\n" +
	"- `weir unapprove` takes back what was approved here, or `weir unapprove DIGEST` one plan's; nothing more of it begins\n" +
	"- `weir help` shows this\n\n" +
	"Planning and approving need write access to this repository."

// comments are those of one poll. Rights are read at their first use, once for all
// comments of the poll.
type comments struct {
	*Watcher
	levels map[string]forge.Level
	marks  int
}

// readComments reads the comments since the last poll, and does what they ask for.
func readComments(ctx context.Context, w *Watcher) error {
	since, err := w.records.since()
	if err != nil {
		return err
	}
	from := since.Add(-overlap)
	list, err := w.o.Forge.CommentsSince(ctx, from)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b forge.Comment) int { return cmp.Compare(a.ID, b.ID) })
	w.forgetComments(list)
	newest, last := since, time.Time{}
	l := &comments{Watcher: w, levels: map[string]forge.Level{}}
	for _, c := range list {
		if c.UpdatedAt.After(last) {
			last = c.UpdatedAt
		}
		if c.UpdatedAt.After(newest) {
			newest = c.UpdatedAt
		}
		k := w.open[c.Number]
		// One from before is an old one that was edited.
		if k == nil || k.merged() || c.ID <= k.Comment || c.Author == w.Self() || c.CreatedAt.Before(from) {
			continue
		}
		if err := l.obey(ctx, k, c); ctx.Err() != nil || passing(err) && w.o.Now().Before(c.CreatedAt.Add(holdUp)) {
			return err // it is read again, and those after it
		} else if err != nil {
			w.log.Error("comment is not acted on", "pull", c.Number, "by", c.Author, "error", err)
		}
		k.Comment = c.ID
		w.records.save(k)
	}
	if len(list) >= fullList {
		// There are more. Where so many were made in a short time, reading them once
		// more would never come to an end.
		if last = last.Add(overlap); last.After(newest) {
			newest = last
		}
	} else {
		for _, k := range w.open {
			if k.Heeded != k.Seen {
				k.Heeded = k.Seen
				w.records.save(k)
			}
		}
	}
	// While nothing is said, the question stays the same, and so does its answer.
	if newest.Equal(since) {
		return nil
	}
	return w.o.DB.Update(func(tx *state.Tx) error { return readTo.Put(tx, w.o.Source, newest) })
}

// forgetComments lets go of pull requests that are not open, once the forge lists none of
// their comments that was read.
func (w *Watcher) forgetComments(list []forge.Comment) {
	for number, l := range w.left {
		if l.Comment != 0 && !slices.ContainsFunc(list, func(c forge.Comment) bool { return c.Number == number && c.ID <= l.Comment }) {
			l.Comment = 0
			w.remember(l)
			w.records.write(func(tx *state.Tx) error { return w.records.leave(tx, l) })
		}
	}
}

// passing reports whether a forge may answer otherwise in a moment.
func passing(err error) bool {
	var e *forgehttp.Error
	return errors.As(err, &e) && e.Fault == forgehttp.FaultBusy || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// obey does what a comment asks for, if anything. An error is one of the forge:
// the comment is read again.
func (l *comments) obey(ctx context.Context, k *work, c forge.Comment) error {
	command, ok := forge.ParseCommand(c.Body)
	if !ok {
		return nil
	}
	level, known := l.levels[c.Author]
	if !known {
		var err error
		if level, err = l.o.Forge.Permission(ctx, c.Author); err != nil {
			return err
		}
		l.levels[c.Author] = level
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
	log.Info("comment")
	switch command.Name {
	case forge.Plan:
		return l.obeyPlan(ctx, k, c)
	case forge.Approve:
		return l.obeyApprove(ctx, k, c, command.Digest)
	case forge.Unapprove:
		return l.obeyUnapprove(ctx, k, c, command.Digest)
	case forge.Unknown:
		return l.answer(ctx, k, c, forge.Refused, "weir has no such command.\n\n"+helpText, true)
	default:
		return l.answer(ctx, k, c, forge.Eyes, helpText, true)
	}
}

// answer acknowledges a comment, with a reply where there is something to say: on
// one pull request not more often than once a minute, unless a person waits for it.
func (l *comments) answer(ctx context.Context, k *work, c forge.Comment, r forge.Reaction, text string, seldom bool) error {
	if err := l.o.Forge.React(ctx, k.Number, c.ID, r); err != nil {
		l.log.Warn("comment is not acknowledged", "error", err)
	}
	if text == "" || seldom && l.o.Now().Before(k.replied.Add(between)) {
		return nil
	}
	k.replied = l.o.Now()
	if _, err := l.o.Forge.CreateComment(ctx, k.Number, text); err != nil {
		l.log.Warn("comment is not answered", "error", err)
	}
	return nil
}

// current reads a pull request at the moment of a command, and reports whether its
// head is one that weir had seen before the comment: by the order of what it read,
// and by the forge's clock, as the forge may tell of a comment late.
func (l *comments) current(ctx context.Context, k *work, c forge.Comment) (bool, error) {
	pr, err := l.o.Forge.Pull(ctx, k.Number)
	if err != nil {
		return false, err
	}
	if pr.State != forge.Open || !l.o.Follows("refs/heads/"+pr.BaseRef) {
		l.listing.again() // and the next poll sees it to its end
		return false, nil
	}
	known := pr.HeadSHA == k.Seen && k.Heeded == k.Seen && !c.CreatedAt.Before(k.SeenAt)
	l.take(pr)
	return known, nil
}

func (l *comments) obeyPlan(ctx context.Context, k *work, c forge.Comment) error {
	known, err := l.current(ctx, k, c)
	if err != nil {
		return err
	}
	waits := k.wait(l.o.Policy) != ""
	switch {
	case waits && !k.allows(l.o.Policy):
		return l.answer(ctx, k, c, forge.Refused, "Pull requests from forks are not planned for a comment here: the configuration does not allow it.", true)
	case waits && !known:
		return l.answer(ctx, k, c, forge.Refused, "The branch was pushed to at the same time. Look at it as it is now, and comment again.", false)
	case waits:
		k.Allowed = k.Seen
		l.records.save(k)
	}
	k.asked = true
	return l.answer(ctx, k, c, forge.Eyes, "", false)
}

// obeyApprove lets the plans run that the comment on the forge showed when its
// reader approved them.
func (l *comments) obeyApprove(ctx context.Context, k *work, c forge.Comment, digest string) error {
	refuse := func(format string, args ...any) error {
		return l.answer(ctx, k, c, forge.Refused, fmt.Sprintf(format, args...), false)
	}
	known, err := l.current(ctx, k, c)
	if err != nil {
		return err
	}
	p, all := k.shown, digestsOf(k.shown)
	earlier := p.State == "" && k.Reported
	if p.Unkept {
		all = slices.Sorted(maps.Values(k.Digests))
	}
	if earlier { // what an earlier process showed stands on the forge
		p = report.Pull{State: k.State, Stale: k.Stale, HeadSHA: k.Head, Digest: k.Digest}
		all = slices.Sorted(maps.Values(k.Digests))
	}
	switch {
	case p.State != report.PullPlanned || p.HeadSHA != k.pr.HeadSHA || !known:
		return refuse("There is no plan of this commit to approve.")
	case p.Digest == "":
		return refuse("Something of the plan was made without secrets, so that it cannot be approved here.")
	case p.Stale != "":
		return refuse("The plan may no longer hold: %s. Wait for the next one.", p.Stale)
	}
	chosen := chosenBy(p.Digest, all, digest)
	if len(chosen) == 0 {
		return refuse("No plan of this pull request has the digest `%s`.", strings.Map(hexOnly, digest))
	}
	read, err := l.shownBefore(ctx, k, c, p.Digest)
	if err != nil {
		return err
	}
	if !read {
		return refuse("The plan changed at the time of your comment. Read it as it is now, and approve again.")
	}
	who := c.Author + " on " + string(l.o.Forge.Kind())
	plans := map[string]string{}
	for _, of := range []map[string]string{k.Digests, p.Digests} {
		for target, d := range of {
			if slices.Contains(chosen, d) {
				plans[d] = target
			}
		}
	}
	if err := l.o.Approver.ApproveFrom(l.from(k), plans, who); err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	l.o.Approved()
	l.o.Event(events.Event{Kind: "plan-approved", Source: l.o.Source, Text: fmt.Sprintf("pull request %d: its plan was approved by %s", k.Number, who)})
	if len(chosen) == len(all) {
		k.Approved = c.Author
		l.told(k)
	}
	return l.answer(ctx, k, c, forge.Done, "", false)
}

// from names a pull request in approvals.
func (l *comments) from(k *work) string { return fmt.Sprintf("%s#%d", l.o.Source, k.Number) }

// told keeps who approved the plan, and shows it.
func (l *comments) told(k *work) {
	switch p := k.shown; {
	case p.State != report.PullPlanned:
		l.records.save(k) // and it is shown with the plan
	case p.Unkept:
		l.records.save(k)
		k.asked = true // to be shown
	default:
		l.show(k, p)
	}
}

// obeyUnapprove takes back what comments on the pull request approved, of the commits before
// this one too.
func (l *comments) obeyUnapprove(ctx context.Context, k *work, c forge.Comment, digest string) error {
	unused, begun, err := l.o.Approver.Withdraw(digest, l.from(k))
	if err != nil {
		return fmt.Errorf("take an approval back: %w", err)
	}
	if len(unused)+len(begun) == 0 {
		return l.answer(ctx, k, c, forge.Refused, "Nothing that was approved here is in force: it is done, has ended, or was approved elsewhere.", false)
	}
	who := c.Author + " on " + string(l.o.Forge.Kind())
	l.o.Event(events.Event{Kind: "approval-withdrawn", Source: l.o.Source, Text: fmt.Sprintf("pull request %d: its approval was taken back by %s", k.Number, who)})
	var targets []string
	for _, g := range begun {
		targets = append(targets, g.Target)
	}
	l.o.Withdrawn(targets)
	if k.Approved != "" {
		k.Approved = ""
		l.told(k)
	}
	text := ""
	if len(targets) > 0 {
		text = "Nothing more of the plan begins in " + strings.Join(targets, ", ") + ". What AWS has begun goes on there: `weir status` names it."
	}
	return l.answer(ctx, k, c, forge.Done, text, false)
}

// digestsOf are the digests of the targets' plans with something to do.
func digestsOf(p report.Pull) []string {
	var all []string
	for _, r := range p.Reports {
		if d := p.Digests[r.Target]; r.Plan != nil && !r.Plan.Empty() && d != "" {
			all = append(all, d)
		}
	}
	return all
}

// chosenBy are those of all digests that one, or its beginning, stands for: every
// one if it is the combined one, or empty, and else the one that it begins.
func chosenBy(combined string, all []string, digest string) []string {
	var one []string
	for _, d := range all {
		if strings.HasPrefix(d, digest) {
			one = append(one, d)
		}
	}
	switch {
	case strings.HasPrefix(combined, digest):
		return all
	case len(one) == 1:
		return one
	default:
		return nil
	}
}

// shownBefore reports whether weir's comment showed the digest before c was
// written, by the forge's own clock.
func (l *comments) shownBefore(ctx context.Context, k *work, c forge.Comment, digest string) (bool, error) {
	list, err := l.o.Forge.Comments(ctx, k.Number, time.Time{})
	if err != nil {
		return false, err
	}
	for _, own := range list {
		if own.Author == l.Self() && strings.Contains(own.Body, l.o.Marker) && strings.Contains(own.Body, report.DigestMarker(digest)) && !own.UpdatedAt.After(c.CreatedAt) {
			return true, nil
		}
	}
	return false, nil
}

func hexOnly(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'f' {
		return r
	}
	return -1
}

package pulls

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// obeyApprove executes the command weir approve: it approves the plans that weir's comment showed when
// the user approved them.
func (l *comments) obeyApprove(ctx context.Context, k *openPull, c forge.Comment, digest string) error {
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
	if earlier { // the forge still shows what an earlier process wrote
		p = report.Pull{State: k.State, Stale: k.Stale, HeadSHA: k.Head, Digest: k.Digest}
		all = slices.Sorted(maps.Values(k.Digests))
	}
	switch {
	case p.State != report.PullPlanned || p.HeadSHA != k.pr.HeadSHA || !known:
		return refuse("This commit has no plan to approve.")
	case p.Digest == "":
		return refuse("A part of the plan was made without secrets, so it cannot be approved here.")
	case p.Stale != "":
		return refuse("The plan may be out of date: %s. Wait for the next one.", p.Stale)
	}
	chosen := chosenBy(p.Digest, all, digest)
	if len(chosen) == 0 {
		return refuse("No plan of this pull request has the digest `%s`.", strings.Map(hexOnly, digest))
	}
	unread, err := l.unread(ctx, k, c, p.Digest)
	if err != nil {
		return err
	}
	if unread != "" {
		return refuse("%s", unread)
	}
	who := c.Author + " on " + l.Forge.Profile().Label
	plans := map[string]string{}
	for _, of := range []map[string]string{k.Digests, p.Digests} {
		for target, d := range of {
			if slices.Contains(chosen, d) {
				plans[d] = target
			}
		}
	}
	if err := l.Approver.ApproveFrom(l.from(k), plans, who); err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	l.Approved()
	l.Event(events.Event{Kind: "plan-approved", Source: l.Source, Text: fmt.Sprintf("pull request %d: its plan was approved by %s", k.Number, who)})
	if len(chosen) == len(all) {
		k.Approved = c.Author
		l.showApproval(k)
	}
	return l.answer(ctx, k, c, forge.Done, "", false)
}

// from returns the identifier of a pull request in approvals.
func (l *comments) from(k *openPull) string { return fmt.Sprintf("%s#%d", l.Source, k.Number) }

// showApproval records and shows that the plan was approved, or that its approval was withdrawn.
func (l *comments) showApproval(k *openPull) {
	switch p := k.shown; {
	case p.State != report.PullPlanned:
		l.save(k) // the next plan shows it
	case p.Unkept:
		l.save(k)
		k.asked = true // so that it is shown
	default:
		l.pulls.show(k, p)
	}
}

// obeyUnapprove executes the command weir unapprove: it withdraws the approvals that comments on the
// pull request gave, including approvals of earlier commits.
func (l *comments) obeyUnapprove(ctx context.Context, k *openPull, c forge.Comment, digest string) error {
	unused, begun, err := l.Approver.Withdraw(digest, l.from(k))
	if err != nil {
		return fmt.Errorf("withdraw an approval: %w", err)
	}
	if len(unused)+len(begun) == 0 {
		return l.answer(ctx, k, c, forge.Refused, "No approval given here is in force: it was used, has ended, or was given elsewhere.", false)
	}
	who := c.Author + " on " + l.Forge.Profile().Label
	l.Event(events.Event{Kind: "approval-withdrawn", Source: l.Source, Text: fmt.Sprintf("pull request %d: its approval was withdrawn by %s", k.Number, who)})
	var targets []string
	for _, g := range begun {
		targets = append(targets, g.Target)
	}
	l.Withdrawn(targets)
	if k.Approved != "" {
		k.Approved = ""
		l.showApproval(k)
	}
	text := ""
	if len(targets) > 0 {
		text = "No further step of the plan starts in " + strings.Join(targets, ", ") + ". What AWS has started continues there: `weir status` lists it."
	}
	return l.answer(ctx, k, c, forge.Done, text, false)
}

// digestsOf returns the digests of the plans with at least one step.
func digestsOf(p report.Pull) []string {
	var all []string
	for _, r := range p.Reports {
		if d := p.Digests[r.Target]; r.Plan != nil && !r.Plan.Empty() && d != "" {
			all = append(all, d)
		}
	}
	return all
}

// chosenBy returns the digests that a digest, or its beginning, selects. The combined digest and an
// empty one select all digests. Any other selects the only digest that starts with it.
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

// unread explains why the author of c cannot have read the plan with a digest in weir's comment, or
// returns "" if they can. It compares the times of the forge's clock, and the text with what weir
// wrote. It rewrites a comment that was deleted, or that somebody else edited.
func (l *comments) unread(ctx context.Context, k *openPull, c forge.Comment, digest string) (string, error) {
	list, err := l.Forge.Comments(ctx, k.Number, time.Time{})
	if err != nil {
		return "", err
	}
	found := false
	for _, own := range list {
		if !strings.EqualFold(own.Author, l.self.get()) {
			continue
		}
		intact, edited := l.Display.Written(l.Source, own, true)
		if edited {
			l.restore(k)
			l.Event(events.Event{Kind: "comment-edited", Source: l.Source, Text: fmt.Sprintf("pull request %d: somebody edited the comment with weir's plan; weir writes it again, and an approval does not count until then", k.Number)})
			return "Somebody edited the comment with the plan. weir writes it again. Read it then, and approve again.", nil
		}
		if !strings.Contains(own.Body, l.Marker) {
			continue
		}
		found = true
		// Forges store whole seconds, so the order of two texts from the same second is unknown.
		if intact && strings.Contains(own.Body, report.DigestMarker(digest)) && own.UpdatedAt.Before(c.CreatedAt) {
			return "", nil
		}
	}
	switch {
	case found:
		return "The plan changed at the time of your comment. Read the new plan, and approve again.", nil
	case l.Display.Owes(l.Source, k.Number):
		return "The plan is not shown on this pull request yet. Wait for it, read it, and approve again.", nil
	default:
		l.restore(k)
		return "The comment with the plan was deleted. weir writes it again. Read it then, and approve again.", nil
	}
}

// hexOnly drops all characters that cannot be in a digest.
func hexOnly(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'f' {
		return r
	}
	return -1
}

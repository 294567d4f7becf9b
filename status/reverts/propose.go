package reverts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/wording"
)

// propose opens the pull request of an entry, or says why there is none. Each write is
// looked up before: the branch is made once, and whatever pull request it ever had is the
// entry's.
func (s *Source) propose(ctx context.Context, e *Entry, all []Entry, now Now) {
	name := branchOf(e.Revision)
	switch p, found, err := s.Forge.PullOf(ctx, now.Base, name); {
	case err != nil:
		s.later(ctx, e, now, err)
		return
	case found:
		s.adopt(e, p)
		return
	}
	if why := s.obsolete(e, now); why != "" {
		s.end(e, Obsolete, "no revert is needed: "+why)
		return
	}
	f, err := s.find(ctx, e, all, now.Head)
	var hand *byHand
	switch {
	case errors.Is(err, errGone):
		s.end(e, Obsolete, "no revert is needed: "+err.Error())
		return
	case errors.As(err, &hand):
		s.end(e, ByHand, "weir proposes no revert: "+hand.text)
		return
	case err != nil:
		s.later(ctx, e, now, err)
		return
	}
	title := "Revert \"" + visible.Clip(s.text(f.Commits[0].Subject), 150) + "\""
	if len(f.Commits) > 1 {
		title = fmt.Sprintf("Revert %d commits up to %s", len(f.Commits), short(e.Revision))
	}
	branch, err := s.Git.Branch(ctx, name, source.Commit{
		On: e.Revision, From: f.From, Paths: f.Paths, Author: s.Author, Address: s.Address, At: e.At,
		Message: title + "\n\nThe rollout of this change was stopped. These paths are as they were in " + f.From + ":\n\n" + s.list(f.Paths) + "\n" + Trailer + ": " + e.Revision + "\n",
	})
	if err != nil {
		s.later(ctx, e, now, err)
		return
	}
	var taken *transport.TakenError
	switch err := s.Pusher.Make(ctx, branch); {
	case errors.As(err, &taken):
		s.end(e, ByHand, "weir proposes no revert: "+taken.Error()+": revert the commit by hand")
		return
	case err != nil:
		s.later(ctx, e, now, err)
		return
	}
	p, err := s.Forge.OpenPull(ctx, forge.Proposal{Title: title, Body: s.body(e, f, now), Head: name, Base: now.Base})
	if err != nil {
		s.later(ctx, e, now, err) // if it was opened after all, it is found
		return
	}
	s.adopt(e, p)
}

// patience is how often what a forge refuses is tried before it is said.
const patience = 3

// later notes when to try again: soon, or where weir was told that it may not, seldom and
// said.
func (s *Source) later(ctx context.Context, e *Entry, now Now, err error) {
	if ctx.Err() != nil {
		return
	}
	e.Tries++
	wait, text := hurdle, s.Redact(err.Error())
	var refusal *forgehttp.Error
	var refused *transport.RefusedError
	may := errors.As(err, &refused) || fault.ReasonOf(err) == fault.AuthFailed
	if errors.As(err, &refusal) {
		// A forge may not know a branch yet that was pushed a moment ago.
		may = refusal.Fault == forgehttp.FaultDenied || refusal.Fault == forgehttp.FaultRefused && e.Tries >= patience
		wait = max(wait, refusal.After)
	}
	if may {
		wait = denied
		if say := "weir may not propose the revert: " + text; e.Phase == Wanted && e.Text != say {
			e.Text, e.Refused = say, true
			s.event("revert-refused", e)
		}
	}
	e.After = now.Time.Add(wait)
	s.Logger.Warn("a revert waits", "source", s.Source, "revision", e.Revision, "error", text, "until", e.After)
}

// evidence is how many pools, paths and commits are listed.
const evidence = 50

// body is the text of the pull request.
func (s *Source) body(e *Entry, f Found, now Now) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("A FleetRollout stopped what %s began: weir rolls it out no further. Merging this takes the stopped pools back.\n", code(short(e.Revision), s.Redact))
	for _, name := range e.Rollouts {
		i := slices.IndexFunc(now.Record.Runs, func(r rollout.Run) bool { return r.Name == name && r.Revision == e.Revision })
		if i < 0 || now.Record.Runs[i].Stopped == nil {
			continue
		}
		r := now.Record.Runs[i]
		say("**%s** was stopped at %s: %s\n", code(name, s.Redact), r.Stopped.At.UTC().Format("2006-01-02 15:04:05 MST"), code(r.Stopped.Why, s.Redact))
		if len(r.Gates) > 0 {
			say("Its gates said last:\n")
			for _, g := range r.Gates {
				say("- %s: %s, %s", code(g.Name, s.Redact), g.Verdict, code(g.What, s.Redact))
			}
			say("\nIts pools:\n")
		}
		for k, m := range r.Members {
			if k == evidence {
				say("- and %d more", len(r.Members)-k)
				break
			}
			state := "not begun"
			if m.Granted > 0 {
				state = fmt.Sprintf("begun, up to %d %% of its machines", m.Granted)
			}
			say("- %s: %s, %s", code(m.String(), s.Redact), wording.Count(int(m.Machines), "machine"), state)
		}
		say("")
	}
	if len(f.Left) > 0 {
		var names []string
		for _, id := range f.Left {
			names = append(names, code(id.String(), s.Redact))
		}
		say("It does not take back %s: these pools changed by something else.\n", strings.Join(names[:min(len(names), evidence)], ", "))
	}
	say("The fewest paths are reverted that do so. They are as in %s:\n\n%s", code(short(f.From), s.Redact), s.list(f.Paths))
	if len(f.Commits) > 1 {
		say("This undoes, for these paths, what these commits did:\n")
		for _, c := range f.Commits {
			say("- %s %s", code(short(c.Revision), s.Redact), code(c.Subject, s.Redact))
		}
		say("")
	}
	say("weir opens no other pull request for this commit, whatever becomes of this one, and closes it once another commit has changed what these pools launch.")
	if s.PageURL != "" {
		say("\n[weir's page](%s)", strings.TrimSuffix(s.PageURL, "/")+"/")
	}
	return b.String()
}

// list names paths, one a line.
func (s *Source) list(paths []string) string {
	var b strings.Builder
	for i, p := range paths {
		if i == evidence {
			fmt.Fprintf(&b, "- and %d more\n", len(paths)-i)
			break
		}
		fmt.Fprintf(&b, "- %s\n", code(p, s.Redact))
	}
	return b.String()
}

// text is one line without secrets and without hidden characters.
func (s *Source) text(said string) string { return visible.Line(s.Redact(said)) }

// code is a text in Markdown that stands for nothing but itself.
func code(said string, redact func(string) string) string {
	return wording.Code(visible.Clip(visible.Line(redact(said)), 500))
}

// line is a text for a status.
func line(said string, redact func(string) string, limit int) string {
	return visible.Clip(visible.Line(redact(said)), limit)
}

func number(n int64) string { return "#" + strconv.FormatInt(n, 10) }

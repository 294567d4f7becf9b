package reverts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// draft is a pull request that is yet to be opened.
type draft struct {
	branch, title, body string
	commit              source.Commit
}

// propose opens the pull request of an entry, or says why there is none. Each write is
// looked up before: the branch is made once, and whatever pull request it ever had is the
// entry's.
func (s *Source) propose(ctx context.Context, e *Entry, all []Entry, now Now, keep func() error) {
	var other forge.PullRequest // what was stopped before at the same commit had its revert
	for _, pin := range []bool{false, true} {
		name := branchOf(e.Revision)
		if pin {
			name = pinBranchOf(e)
		}
		p, found, err := s.Forge.PullOf(ctx, now.Base, name)
		if err != nil {
			s.later(ctx, e, now, err)
			return
		}
		switch {
		case found && !slices.ContainsFunc(all, func(o Entry) bool { return o.Number == p.Number }):
			e.Pin = pin
			s.adopt(e, p)
			return
		case found && !pin:
			other = p
		}
	}
	if why := s.obsolete(e, now); why != "" {
		s.end(e, Obsolete, "no "+e.what()+" is needed: "+why)
		return
	}
	d, err := s.draft(ctx, e, all, now)
	if err == nil && !e.Pin && other.Number != 0 {
		err = refuse("pull request %s reverted this commit already, and there is one for each: take back by hand what %s still launches by it", proposal.Number(other.Number), e.Pools[0])
	}
	var hand *byHand
	switch {
	case errors.Is(err, errGone):
		s.end(e, Obsolete, "no "+e.what()+" is needed: "+err.Error())
		return
	case errors.As(err, &hand):
		s.end(e, ByHand, "weir proposes no "+e.what()+": "+hand.text)
		return
	case err != nil:
		s.later(ctx, e, now, err)
		return
	}
	var taken *transport.TakenError
	switch err := s.push(ctx, e, d, keep); {
	case errors.As(err, &taken):
		s.end(e, ByHand, "weir proposes no "+e.what()+": "+taken.Error()+": change it by hand")
		return
	case err != nil:
		s.later(ctx, e, now, err)
		return
	}
	p, err := s.Forge.OpenPull(ctx, forge.Proposal{Title: d.title, Body: d.body, Head: d.branch, Base: now.Base})
	if err != nil {
		s.later(ctx, e, now, err) // if it was opened after all, it is found
		return
	}
	s.adopt(e, p)
}

// push makes the branch, once. One that weir made before, and whose pull request could not be
// opened, moves on to what is to be proposed by now.
func (s *Source) push(ctx context.Context, e *Entry, d draft, keep func() error) error {
	b, err := s.Git.Branch(ctx, d.branch, d.commit)
	if err != nil {
		return err
	}
	wanted := b.Commit
	for range 2 {
		if e.Made[b.Commit] != wanted {
			e.Made = with(maps.Clone(e.Made), b.Commit, wanted)
			if err := keep(); err != nil { // so that the commit is known to be weir's
				return err
			}
		}
		err = s.Pusher.Make(ctx, b)
		var taken *transport.TakenError
		if !errors.As(err, &taken) || e.Made[taken.At] == "" {
			return err
		}
		if e.Made[taken.At] == wanted {
			return nil
		}
		d.commit.After = taken.At
		if b, err = s.Git.Branch(ctx, d.branch, d.commit); err != nil {
			return err
		}
	}
	return fmt.Errorf("the branch %s is moved on by another right now", d.branch)
}

// draft is what takes the stopped pools back: the revert of commits, or where none changed
// what they launch, a pin of what they ran before.
func (s *Source) draft(ctx context.Context, e *Entry, all []Entry, now Now) (draft, error) {
	if e.Pin = len(e.Was) > 0 && len(e.Was) == len(e.Pools); e.Pin {
		return s.pin(ctx, e, now)
	}
	f, err := s.find(ctx, e, all, now.Head)
	if errors.Is(err, errUnchanged) && len(e.Was) > 0 {
		e.Pin = true
		return s.pin(ctx, e, now)
	}
	if errors.Is(err, errUnchanged) {
		return draft{}, refuse("%v; write in Git what is to run; %s", err, earlier(e))
	}
	if err != nil {
		return draft{}, err
	}
	title := "Revert \"" + visible.Clip(s.words().Line(f.Commits[0].Subject), 150) + "\""
	if len(f.Commits) > 1 {
		title = fmt.Sprintf("Revert %d commits up to %s", len(f.Commits), short(e.Revision))
	}
	return draft{branch: branchOf(e.Revision), title: title, body: s.body(e, f, now), commit: source.Commit{
		On: e.Revision, From: f.From, Paths: f.Paths, Author: s.Author, Address: s.Address, At: e.At,
		Message: title + "\n\nThe rollout of this change was stopped. These paths are as they were in " + f.From + ":\n\n" + s.words().List(f.Paths) + "\n" + Trailer + ": " + e.Revision + "\n",
	}}, nil
}

// later notes when to try again: soon, or where weir was told that it may not, seldom and
// said.
func (s *Source) later(ctx context.Context, e *Entry, now Now, err error) {
	if ctx.Err() != nil {
		return
	}
	e.Tries++
	wait, mayNot := proposal.Wait(err, e.Tries)
	text := s.Redact(err.Error())
	if mayNot {
		if say := "weir may not propose the " + e.what() + ": " + text; e.Phase == Wanted && e.Text != say {
			e.Text, e.Refused = say, true
			s.event("revert-refused", e)
		}
	}
	e.After = now.Time.Add(wait)
	s.Logger.Warn("a revert waits", "source", s.Source, "revision", e.Revision, "error", text, "until", e.After)
}

// body is the text of the pull request.
func (s *Source) body(e *Entry, f Found, now Now) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("A FleetRollout stopped what %s began: weir rolls it out no further. Merging this takes the stopped pools back.\n", s.words().Code(short(e.Revision)))
	s.evidence(&b, e, now)
	if len(f.Left) > 0 {
		var names []string
		for _, id := range f.Left {
			names = append(names, s.words().Code(id.String()))
		}
		say("It does not take back %s: these pools changed by something else.\n", strings.Join(names[:min(len(names), proposal.Evidence)], ", "))
	}
	say("The fewest paths are reverted that do so. They are as in %s:\n\n%s", s.words().Code(short(f.From)), s.words().List(f.Paths))
	if len(f.Commits) > 1 {
		say("This undoes, for these paths, what these commits did:\n")
		for _, c := range f.Commits {
			say("- %s %s", s.words().Code(short(c.Revision)), s.words().Code(c.Subject))
		}
		say("")
	}
	say("weir opens no other pull request for this commit, whatever becomes of this one, and closes it once another commit has changed what these pools launch.")
	return b.String() + proposal.Page(s.PageURL)
}

// evidence says what was stopped, why, and where it stands.
func (s *Source) evidence(b *strings.Builder, e *Entry, now Now) {
	say := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	for _, name := range e.Rollouts {
		i := slices.IndexFunc(now.Record.Runs, func(r rollout.Run) bool { return r.Name == name && r.Revision == e.Revision })
		if i < 0 || now.Record.Runs[i].Stopped == nil {
			continue
		}
		r := now.Record.Runs[i]
		say("**%s** was stopped at %s: %s\n", s.words().Code(name), r.Stopped.At.UTC().Format("2006-01-02 15:04:05 MST"), s.words().Code(r.Stopped.Why))
		if len(r.Gates) > 0 {
			say("Its gates said last:\n")
			for _, g := range r.Gates {
				say("- %s: %s, %s", s.words().Code(g.Name), g.Verdict, s.words().Code(g.What))
			}
			say("\nIts pools:\n")
		}
		for k, m := range r.Members {
			if k == proposal.Evidence {
				say("- and %d more", len(r.Members)-k)
				break
			}
			state := "not begun"
			if m.Granted > 0 {
				state = fmt.Sprintf("begun, up to %d %% of its machines", m.Granted)
			}
			say("- %s: %s, %s", s.words().Code(m.String()), wording.Count(int(m.Machines), "machine"), state)
		}
		say("")
	}
}

package reverts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// draft returns the change that restores the stopped pools: a revert of commits, or, if no commit changed
// what they launch, a pin of the previous version.
func (k *kind) draft(ctx context.Context, e *Entry, now proposal.Now) (proposal.Draft, error) {
	if e.Pin = len(e.Was) > 0 && len(e.Was) == len(e.Pools); e.Pin {
		return k.pin(ctx, e, now)
	}
	f, err := k.find(ctx, e, now.Head)
	switch {
	case errors.Is(err, errUnchanged) && len(e.Was) > 0:
		e.Pin = true
		return k.pin(ctx, e, now)
	case errors.Is(err, errUnchanged):
		return proposal.Draft{}, proposal.Refuse("%v; write in Git what must run; %s", err, earlier(e))
	case err != nil:
		return proposal.Draft{}, err
	}
	// Pools that were stopped before at the same commit already had their revert.
	i := slices.IndexFunc(k.all, func(o Entry) bool { return o.Number != 0 && o.Revision == e.Revision && o.what() == "revert" })
	if i >= 0 {
		return proposal.Draft{}, proposal.Refuse("pull request %s already reverted this commit, and weir opens only one for each commit: revert by hand what %s still launches from it", proposal.Number(k.all[i].Number), e.Pools[0])
	}
	title := "Revert \"" + visible.Clip(k.Words().Line(f.Commits[0].Subject), 150) + "\""
	if len(f.Commits) > 1 {
		title = fmt.Sprintf("Revert %d commits up to %s", len(f.Commits), wording.Short(e.Revision))
	}
	return k.drafted(e, branchOf(e.Revision), title, k.body(e, f), source.Commit{
		On: e.Revision, From: f.From, Paths: f.Paths,
		Message: title + "\n\nThe rollout of this change was stopped. These paths are as they were in " + f.From + ":\n\n" + k.Words().List(f.Paths) + "\n" + Trailer + ": " + e.Revision + "\n",
	}), nil
}

// drafted returns the draft for a commit. Every member creates the same commit from it, with the same time.
func (k *kind) drafted(e *Entry, branch, title, body string, c source.Commit) proposal.Draft {
	c.At = e.At
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %q", c.On, c.From, c.Paths)
	paths := slices.Sorted(maps.Keys(c.Files))
	for _, p := range paths {
		fmt.Fprintf(h, " %q %q", p, c.Files[p])
	}
	return proposal.Draft{
		Branch: branch, Title: title, Body: body, Commit: c, Paths: append(paths, c.Paths...), Print: hex.EncodeToString(h.Sum(nil))[:16], Opened: "proposes the " + e.what(),
	}
}

// body returns the text of the pull request.
func (k *kind) body(e *Entry, f Found) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("A FleetRollout stopped the rollout of %s, and weir does not roll it out further. Merging this reverts the stopped pools.\n", k.Words().Code(wording.Short(e.Revision)))
	k.evidence(&b, e)
	if len(f.Left) > 0 {
		var names []string
		for _, id := range f.Left {
			names = append(names, k.Words().Code(id.String()))
		}
		say("It does not revert %s: something else changed these pools.\n", strings.Join(names[:min(len(names), proposal.Evidence)], ", "))
	}
	say("It reverts as few paths as possible. They are as in %s:\n\n%s", k.Words().Code(wording.Short(f.From)), k.Words().List(f.Paths))
	if len(f.Commits) > 1 {
		say("For these paths, it undoes these commits:\n")
		for _, c := range f.Commits {
			say("- %s %s", k.Words().Code(wording.Short(c.Revision)), k.Words().Code(c.Subject))
		}
		say("")
	}
	say("weir opens only one pull request for this commit. It closes this one once another commit has changed what these pools launch.")
	return b.String() + proposal.Page(k.PageURL)
}

// evidence describes the stopped change, the reason, and its progress.
func (k *kind) evidence(b *strings.Builder, e *Entry) {
	say := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	for _, name := range e.Rollouts {
		i := slices.IndexFunc(k.now.Record.Runs, func(r rollout.Run) bool { return r.Name == name && r.Revision == e.Revision })
		if i < 0 || k.now.Record.Runs[i].Stopped == nil {
			continue
		}
		r := k.now.Record.Runs[i]
		say("**%s** was stopped at %s: %s\n", k.Words().Code(name), r.Stopped.At.UTC().Format("2006-01-02 15:04:05 MST"), k.Words().Code(r.Stopped.Why))
		if len(r.Gates) > 0 {
			say("The last results of its gates:\n")
			for _, g := range r.Gates {
				say("- %s: %s, %s", k.Words().Code(g.Name), g.Verdict, k.Words().Code(g.What))
			}
			say("\nIts pools:\n")
		}
		for i, m := range r.Members {
			if i == proposal.Evidence {
				say("- and %d more", len(r.Members)-i)
				break
			}
			state := "not begun"
			if m.Granted > 0 {
				state = fmt.Sprintf("started, up to %d %% of its machines", m.Granted)
			}
			say("- %s: %s, %s", k.Words().Code(m.String()), wording.Count(int(m.Machines), "machine"), state)
		}
		say("")
	}
}

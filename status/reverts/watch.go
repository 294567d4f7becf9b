package reverts

import (
	"context"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
)

// watch looks at a pull request that is open, and closes it once nobody needs it.
func (s *Source) watch(ctx context.Context, e *Entry, now Now, keep func() error) {
	p, err := s.Forge.Pull(ctx, e.Number)
	if err != nil {
		s.later(ctx, e, now, err)
		return
	}
	s.adopt(e, p)
	if e.Phase != Open || e.theirs(p) {
		return
	}
	why := s.obsolete(e, now)
	if why == "" {
		return
	}
	e.Closing = why
	if err := keep(); err != nil { // else it would look like closed by somebody
		s.later(ctx, e, now, err)
		return
	}
	if err := s.Forge.ClosePull(ctx, e.Number); err != nil {
		s.later(ctx, e, now, err)
		return
	}
	s.closed(e, why)
	if _, err := s.Forge.CreateComment(ctx, e.Number, "weir closed this: "+s.words().Code(why)); err != nil {
		s.Logger.Warn("cannot say why a pull request was closed", "source", s.Source, "number", e.Number, "error", err)
	}
}

// closed says that weir closed it itself.
func (s *Source) closed(e *Entry, why string) {
	s.end(e, Obsolete, "pull request "+proposal.Number(e.Number)+" was closed: "+why)
}

// adopt takes over how the forge says that a pull request stands.
func (s *Source) adopt(e *Entry, p forge.PullRequest) {
	e.Number, e.URL, e.After, e.Refused = p.Number, p.WebURL, time.Time{}, false
	switch {
	case p.State == forge.Merged:
		e.Merge = p.MergeSHA
		s.end(e, Merged, "pull request "+proposal.Number(p.Number)+" was merged")
	case p.State == forge.Closed && e.Closing != "":
		s.closed(e, e.Closing)
	case p.State == forge.Closed:
		s.end(e, Closed, "pull request "+proposal.Number(p.Number)+" was closed: weir opens no other one")
	default:
		e.Closing = ""
		text := "pull request " + proposal.Number(p.Number) + " proposes the " + e.what()
		if e.theirs(p) {
			text += ", with commits of somebody else on its branch: merge or close it, weir leaves it alone"
		}
		if e.Phase != Open {
			s.end(e, Open, text)
		}
		e.Text = text
	}
}

// theirs reports whether somebody else has pushed to the branch of an open pull request.
func (e *Entry) theirs(p forge.PullRequest) bool {
	return p.HeadSHA != "" && len(e.Made) > 0 && e.Made[p.HeadSHA] == ""
}

// kindOf are the events of phases.
var kindOf = map[Phase]string{
	Open: "revert-opened", Merged: "revert-closed", Closed: "revert-closed", Obsolete: "revert-closed", ByHand: "revert-refused",
}

// end moves an entry to a phase, once.
func (s *Source) end(e *Entry, p Phase, text string) {
	if e.Phase == p && e.Text == text {
		return
	}
	e.Phase, e.Text, e.Refused, e.After = p, text, false, time.Time{}
	if kind := kindOf[p]; kind != "" {
		s.event(kind, e)
	}
}

func (s *Source) event(kind string, e *Entry) {
	s.Event(events.Event{Kind: kind, Source: s.Source, Revision: e.Revision, Text: e.what() + " of " + short(e.Revision) + ": " + s.words().Line(e.Text)})
}

// obsolete says why nobody needs a revert any more: no pool still asks for what was
// stopped, or all of it was rolled out after all.
func (s *Source) obsolete(e *Entry, now Now) string {
	moved, done := true, true
	for _, of := range e.Pools {
		if _, missing := now.Missing[of.Target]; missing {
			return ""
		}
		i := slices.IndexFunc(now.Pools, func(p rollout.Pool) bool { return p.ID == of.ID })
		if i < 0 || now.Pools[i].Hash != of.Hash && now.Pools[i].Hash != "" {
			continue
		}
		moved = false
		if p := now.Pools[i]; p.Hash == "" || p.Pending || p.Moving != nil || p.Failed != "" || now.Record.BadOf(of.ID, of.Hash) != nil {
			done = false
		}
	}
	switch {
	case moved:
		if e.Pin {
			return "its pools launch something else by now"
		}
		return "another commit changed what its pools launch, at " + short(now.Head)
	case done:
		return "the change was rolled out after all"
	}
	return ""
}

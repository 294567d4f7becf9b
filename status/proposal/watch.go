package proposal

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/forge"
)

// pulls lists the open pull requests, once per turn.
func (t *turn[E, P]) pulls(ctx context.Context) ([]forge.PullRequest, error) {
	if t.listed {
		return t.list, t.unlisted
	}
	list, next, same, err := t.Forge.Pulls(ctx, t.cursor)
	t.listed, t.unlisted = true, err
	if err == nil {
		t.cursor = next
	}
	if err == nil && !same {
		t.list = list
	}
	return t.list, err
}

// watch checks the state of a pull request that was open. A listed one needs no separate request.
func (t *turn[E, P]) watch(ctx context.Context, e P) error {
	list, err := t.pulls(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(p forge.PullRequest) bool { return p.Number == e.state().Number })
	if i >= 0 {
		return t.updateFrom(ctx, e, list[i])
	}
	p, err := t.Forge.Pull(ctx, e.state().Number)
	if err != nil {
		return err
	}
	return t.updateFrom(ctx, e, p)
}

// updateFrom updates an entry from its pull request on the forge: whether it was merged or closed, and
// whether somebody else has pushed to its branch. In that case weir leaves it alone from then on.
func (t *turn[E, P]) updateFrom(ctx context.Context, e P, p forge.PullRequest) error {
	s := e.state()
	number := "pull request " + Number(p.Number)
	switch {
	case p.State == forge.Merged:
		s.Merge = p.MergeSHA
		t.end(e, Merged, number+" "+t.kind.Texts(e).Merged)
		return nil
	case p.State == forge.Closed && s.Closing != "":
		t.end(e, Obsolete, number+" was closed: "+s.Closing)
		return nil
	case p.State == forge.Closed:
		t.end(e, Closed, number+" "+t.kind.Texts(e).Closed)
		return nil
	case s.Phase == Theirs:
		return nil
	}
	head := p.HeadSHA
	if head == "" { // the forge does not know it yet
		var err error
		if head, err = t.Pusher.At(ctx, p.HeadRef); err != nil {
			return err
		}
	}
	ours, err := t.ours(ctx, e, p.HeadRef, head)
	if err != nil {
		return err
	}
	// It is still open, so weir could not close it, and it may be needed again.
	s.Phase, s.Closing, s.Refused = Open, "", false
	s.URL, s.Branch = cmp.Or(p.WebURL, s.URL), cmp.Or(p.HeadRef, s.Branch)
	if ours {
		return nil
	}
	s.Phase, s.Foreign = Theirs, head
	texts := t.kind.Texts(e)
	if texts.Left != "" {
		t.say(e, WasLeft, number+" "+texts.Left)
	}
	if texts.LeftComment != "" && s.Commit != "" {
		t.comment(ctx, p.Number, texts.LeftComment)
	}
	return nil
}

// ours reports whether weir made the current commit of a branch. If the commit has no record, its content
// is checked, because another member may have pushed it, or the record may be lost.
func (t *turn[E, P]) ours(ctx context.Context, e P, branch, head string) (bool, error) {
	s := e.state()
	if head == "" || s.noted(head) {
		return true, nil
	}
	ref := "refs/heads/" + branch
	c, err := t.Git.Pull(ctx, source.PullRef{Head: ref, HeadSHA: head, Base: t.now.Head})
	if err != nil {
		return false, err
	}
	if err := t.Git.Forget(ref); err != nil {
		return false, err
	}
	author, committer, err := t.Git.By(ctx, head)
	if err != nil {
		return false, err
	}
	if by := t.Author + " <" + t.Address + ">"; author != by || committer != by {
		return false, nil
	}
	made, ours := t.kind.Made(e, snapshot.Trailers(c.Snapshot.Message))
	if !ours {
		return false, nil
	}
	s.Made = with(s.Made, head, made.Print)
	s.Before, s.Commit = s.Commit, head
	if made.On != "" {
		s.On = made.On
		s.Paths, err = t.Git.Changed(ctx, s.On, head)
	}
	return true, err
}

// adoptLost searches for the pull request of an entry that has none, because its response or its record was
// lost, and assigns it to the entry.
func (t *turn[E, P]) adoptLost(ctx context.Context, e P, branches []string) (found bool, err error) {
	s := e.state()
	list, err := t.pulls(ctx)
	if err != nil {
		return false, err
	}
	held := func(number int64) bool { // does another entry have it?
		return slices.ContainsFunc(t.all, func(o E) bool { return P(&o).state().Number == number })
	}
	for _, p := range list {
		mine := slices.Contains(branches, p.HeadRef) || s.fresh() && t.kind.Owns(e, p.HeadRef)
		if mine && !p.Fork && p.BaseRef == t.now.Base && !held(p.Number) {
			return true, t.adopt(ctx, e, p)
		}
	}
	for _, branch := range branches {
		p, found, err := t.Forge.PullOf(ctx, t.now.Base, branch)
		if err != nil {
			return false, err
		}
		closed := s.Phase == Obsolete && p.Number == s.Last // was it closed by weir itself?
		if found && !held(p.Number) && !closed {
			return true, t.adopt(ctx, e, p)
		}
	}
	return false, nil
}

// adopt assigns a found pull request to the entry. Its text may be about another commit.
func (t *turn[E, P]) adopt(ctx context.Context, e P, p forge.PullRequest) error {
	s := e.state()
	was := *s
	s.Number, s.URL, s.Title, s.Branch = p.Number, p.WebURL, p.Title, p.HeadRef
	s.Print, s.Said, s.Changed = "", "", p.UpdatedAt
	if err := t.updateFrom(ctx, e, p); err != nil {
		*s = was
		return err
	}
	return nil
}

// close closes a pull request that is no longer needed.
func (t *turn[E, P]) close(ctx context.Context, e P, why string) error {
	s := e.state()
	s.Closing = why
	if err := t.save(); err != nil {
		return err
	}
	if err := t.Forge.ClosePull(ctx, s.Number); err != nil {
		return err
	}
	number := s.Number
	t.end(e, Obsolete, "pull request "+Number(number)+" was closed: "+why)
	t.comment(ctx, number, "weir closed this: "+t.Words().Line(why)+".")
	return nil
}

// end moves an entry to a phase without a pull request.
func (t *turn[E, P]) end(e P, to Phase, text string) {
	s := e.state()
	s.Phase, s.Changed, s.Refused, s.Tries, s.After = to, t.now.Time, false, 0, time.Time{}
	what := WasClosed
	if to == ByHand {
		what = WasRefused
	}
	if text != "" {
		t.say(e, what, text)
	}
	s.drop = !t.kind.Ended(e)
}

func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

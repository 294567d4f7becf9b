package images

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/newer"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// act does what there is to do for a family now, and says when there is more to do.
func (s *Source) act(ctx context.Context, e *Entry, f newer.Family, now Now, keep func(*Entry) error) (again time.Time) {
	w, pins, err := s.want(ctx, e, f, now)
	if err != nil {
		s.fail(ctx, e, now, err)
		return again
	}
	act, at := e.Next(w, now.Time, s.Every)
	switch act {
	case Propose, Update:
		err = s.propose(ctx, e, w, pins, now, keep)
	case Close:
		err = s.close(ctx, e, now, keep)
	case Later:
		return at
	case Nothing:
		return again
	}
	var byHand *handError
	switch {
	case errors.As(err, &byHand):
		if e.Number == 0 {
			e.Phase = ByHand
		}
		e.Changed = now.Time
		s.tell(e, "images-refused", "weir proposes nothing: "+byHand.text)
	case err != nil:
		s.fail(ctx, e, now, err)
	default:
		e.Tries, e.After = 0, time.Time{}
	}
	return again
}

// handError says why weir cannot propose something, and what to do.
type handError struct{ text string }

func (e *handError) Error() string { return e.text }

// close closes a pull request that nobody needs. Why is noted first: else it would look like
// closed by somebody.
func (s *Source) close(ctx context.Context, e *Entry, now Now, keep func(*Entry) error) error {
	e.Closing = "no pool needs it any more at " + wording.Short(now.Head) + ": each has these images or newer ones, looks for others, or AWS has these no more"
	if err := keep(e); err != nil {
		return err
	}
	if err := s.Forge.ClosePull(ctx, e.Number); err != nil {
		return err
	}
	number, why := e.Number, e.Closing
	*e = e.ended(Obsolete, now.Time)
	s.tell(e, "images-closed", "pull request "+proposal.Number(number)+" was closed: "+why)
	s.comment(ctx, number, "weir closed this: "+s.words().Line(why)+".")
	return nil
}

// propose opens the pull request of a family, or changes the one that is open.
func (s *Source) propose(ctx context.Context, e *Entry, w Want, pins []newer.Pin, now Now, keep func(*Entry) error) error {
	if e.Number == 0 {
		e.Branch = branchOf(e.Family, w.Images)
		switch p, found, err := s.pullOf(ctx, e, now); {
		case err != nil:
			return err
		case found && p.State != forge.Open && e.Phase == Obsolete && p.Number == e.Last:
			// weir closed it itself.
		case found && p.State != forge.Open: // of what is kept no more: these images had theirs
			*e = e.decline(w.Images).ended(Closed, now.Time)
			s.tell(e, "images-closed", "pull request "+proposal.Number(p.Number)+" proposed these images already: weir opens no other one for them")
			return nil
		case found:
			if err := s.take(ctx, e, p, now); err != nil {
				return err
			}
			if e.Phase == Theirs {
				return nil
			}
		}
	}
	pinned, err := s.Fleet.Pin(ctx, now.Head, pins)
	if err != nil {
		return err
	}
	if len(pinned.Files) == 0 {
		return &handError{refusals(pinned.Refused)}
	}
	before := e.Commit
	if err := s.push(ctx, e, w, pinned, now); err != nil {
		return err
	}
	e.Images, e.Targets = newer.Images(pinned.Pins), targetsOf(pinned.Pins)
	e.Paths = slices.Sorted(maps.Keys(pinned.Files))
	if err := keep(e); err != nil { // so that a pull request of this commit is known to be weir's
		return err
	}
	title, body := s.title(e.Family, pinned.Pins), s.body(e, pinned, now)
	if e.Number == 0 {
		p, err := s.Forge.OpenPull(ctx, forge.Proposal{Title: title, Body: body, Head: e.Branch, Base: now.Base})
		if err != nil {
			return err // if it was opened after all, it is found
		}
		e.Number, e.URL, e.Title, e.Phase, e.Print, e.Changed = p.Number, p.WebURL, title, Open, w.Print, now.Time
		s.tell(e, "images-opened", fmt.Sprintf("pull request %s pins newer images of %s", proposal.Number(p.Number), wording.Count(len(pinned.Pins), "pool")))
		return nil
	}
	p, err := s.Forge.Pull(ctx, e.Number)
	if err != nil {
		return err
	}
	if p.Title != e.Title {
		title = "" // somebody gave it another one
	}
	if err := s.Forge.EditPull(ctx, e.Number, title, body); err != nil {
		return err
	}
	if title != "" {
		e.Title = title
	}
	e.Print, e.Changed = w.Print, now.Time
	s.tell(e, "images-updated", fmt.Sprintf("pull request %s pins newer images of %s now, at %s", proposal.Number(e.Number), wording.Count(len(pinned.Pins), "pool"), wording.Short(e.Commit)))
	if e.Commit == before {
		return nil // a crash came between the branch and the text
	}
	s.comment(ctx, e.Number, "weir moved this on: "+s.words().Line(strings.Join(e.Images, ", "))+". The text above is of now.")
	return nil
}

// pullOf is the pull request of an entry's branch: the open one where there were several, of
// which a forge may name any.
func (s *Source) pullOf(ctx context.Context, e *Entry, now Now) (forge.PullRequest, bool, error) {
	i := slices.IndexFunc(s.list, func(p forge.PullRequest) bool { return !p.Fork && p.BaseRef == now.Base && p.HeadRef == e.Branch })
	if i >= 0 && s.listed.Equal(now.Time) {
		return s.list[i], true, nil
	}
	return s.Forge.PullOf(ctx, now.Base, e.Branch)
}

// push brings the branch of an entry to what pins the images.
func (s *Source) push(ctx context.Context, e *Entry, w Want, pinned Pinned, now Now) error {
	at, err := s.Pusher.At(ctx, e.Branch)
	if err != nil {
		return err
	}
	if at != "" {
		made, err := s.made(ctx, e.Branch, at, now)
		switch {
		case errors.Is(err, errForeign) || err == nil && made.family != e.Family:
			return &handError{"the branch " + e.Branch + " has commits that weir did not make: delete it"}
		case err != nil:
			return err
		case made.print == w.Print && (made.on == now.Head || e.On == made.on && !w.Moved): // before a crash
			e.Commit, e.On = at, made.on
			return nil
		}
	}
	name := s.title(e.Family, pinned.Pins)
	b, err := s.Git.Branch(ctx, e.Branch, source.Commit{
		On: now.Head, After: at, Files: pinned.Files, Author: s.Author, Address: s.Address, At: now.Time,
		Message: name + "\n\nThe pools roll to these images once this is merged.\n\n" + trailers(e.Family, w.Print, now.Head, newer.Images(pinned.Pins)),
	})
	if err != nil {
		return err
	}
	var taken *transport.TakenError
	if err := s.Pusher.Make(ctx, b); errors.As(err, &taken) {
		return fmt.Errorf("push: %s, and is looked at again", taken.Error())
	} else if err != nil {
		return err
	}
	e.Before, e.Commit, e.On = at, b.Commit, now.Head
	return nil
}

func trailers(family, print, on string, images []string) string {
	var b strings.Builder
	for _, im := range images[:min(len(images), 200)] {
		fmt.Fprintf(&b, "%s: %s\n", TrailerImage, im)
	}
	fmt.Fprintf(&b, "%s: %s\n%s: %s %s\n", TrailerFamily, visible.Line(family), TrailerPins, print, on)
	return b.String()
}

// commit is what a commit of weir's says of itself.
type commit struct {
	family, print, on string
	images            []string
}

// made reads the commit that a branch is at; errForeign says that weir did not make it.
func (s *Source) made(ctx context.Context, branch, at string, now Now) (c commit, err error) {
	ref := "refs/heads/" + branch
	m, err := s.Git.Pull(ctx, source.PullRef{Head: ref, HeadSHA: at, Base: now.Head})
	if err != nil {
		return c, err
	}
	if err := s.Git.Forget(ref); err != nil {
		return c, err
	}
	author, committer, err := s.Git.By(ctx, at)
	if err != nil {
		return c, err
	}
	for _, t := range snapshot.Trailers(m.Snapshot.Message) {
		switch {
		case strings.EqualFold(t.Key, TrailerFamily):
			c.family = t.Value
		case strings.EqualFold(t.Key, TrailerPins):
			c.print, c.on, _ = strings.Cut(t.Value, " ")
		case strings.EqualFold(t.Key, TrailerImage):
			c.images = append(c.images, t.Value)
		}
	}
	if by := s.Author + " <" + s.Address + ">"; author != by || committer != by || c.family == "" || c.print == "" {
		return c, errForeign
	}
	return c, nil
}

// adoptOpen takes over open pull requests of families of which none is known: what was kept is
// lost, or was not kept yet.
func (s *Source) adoptOpen(ctx context.Context, all []Entry, now Now, keep func(*Entry) error) {
	for _, f := range s.survey.Families {
		e := Entry{Family: f.Name}
		if i := slices.IndexFunc(all, func(o Entry) bool { return o.Family == f.Name }); i >= 0 {
			e = all[i]
		}
		if e.Number != 0 || e.Phase != Idle || now.Time.Before(e.After) {
			continue
		}
		for _, p := range s.list {
			if p.Fork || p.BaseRef != now.Base || !ofFamily(p.HeadRef, f.Name) {
				continue
			}
			if err := s.take(ctx, &e, p, now); err != nil {
				s.fail(ctx, &e, now, err)
			}
			if err := keep(&e); err != nil || e.Number != 0 || e.Tries > 0 {
				break
			}
		}
	}
}

// take takes over an open pull request, unless it is of another family.
func (s *Source) take(ctx context.Context, e *Entry, p forge.PullRequest, now Now) error {
	made, err := s.made(ctx, p.HeadRef, p.HeadSHA, now)
	if err != nil && !errors.Is(err, errForeign) {
		return err
	}
	if err == nil && made.family != e.Family {
		return nil
	}
	e.Number, e.URL, e.Title, e.Branch = p.Number, p.WebURL, p.Title, p.HeadRef
	e.Changed = p.UpdatedAt
	if err != nil { // Look says that it is somebody else's
		e.Phase = Theirs
		return nil
	}
	// Whether the text is of this commit is not known: so it is written anew.
	e.Phase, e.Commit, e.On, e.Images = Open, p.HeadSHA, made.on, made.images
	if e.Paths, err = s.Git.Changed(ctx, e.On, e.Commit); err != nil {
		return err
	}
	for name := range s.survey.Unread { // which of them it is about is not known any more
		e.Targets = append(e.Targets, name)
	}
	slices.Sort(e.Targets)
	return nil
}

func targetsOf(pins []newer.Pin) (out []string) {
	for _, p := range pins {
		out = append(out, p.Target)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

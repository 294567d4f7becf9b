package proposal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/wording"
)

// todo is the next action for an entry.
type todo string

const (
	nothing  todo = ""
	closing  todo = "close"    // the open pull request is no longer needed
	ending   todo = "end"      // the proposal is no longer needed, and was not opened yet
	announce todo = "announce" // it is open, and is never updated
	waiting  todo = "wait"     // it was changed a moment ago
	writing  todo = "write"    // open it, or update it to the wanted content
)

// next determines the next action. moved says that the followed branch changed files of the pull request.
// waits says that the pull request must not be changed yet.
func (s *State) next(w Want, moved, waits bool) todo {
	switch {
	case w.Gone != "" && s.IsOpen():
		return closing
	case w.Gone != "":
		return ending
	case w.Draft == nil:
		return nothing
	case w.Fixed != "" && s.IsOpen():
		return announce
	case s.IsOpen() && !moved && s.Print == w.Print && (s.Said == "" || s.Said == s.Commit):
		return nothing
	case waits:
		return waiting
	}
	return writing
}

// act executes the next action for an entry. at is the time of the following action, if known. asked says
// that a user waits for it.
func (t *turn[E, P]) act(ctx context.Context, e P, asked bool) (at time.Time, err error) {
	s := e.state()
	w, err := t.kind.Want(ctx, e, t.now)
	if err == nil && !s.IsOpen() && s.next(w, false, t.waits(s, asked)) != waiting {
		w, err = t.adoptPull(ctx, e, w)
	}
	if err != nil || s.Phase == Theirs {
		return at, err
	}
	moved := false
	if s.IsOpen() && w.Draft != nil && w.Fixed == "" {
		if moved, err = t.moved(ctx, s, t.now.Head); err != nil {
			return at, err
		}
	}
	switch s.next(w, moved, t.waits(s, asked)) {
	case closing:
		return at, t.close(ctx, e, w.Gone)
	case ending:
		return at, &NotNeeded{w.Gone}
	case announce:
		t.say(e, WasOpened, "pull request "+Number(s.Number)+" "+w.Fixed)
	case waiting:
		return s.Changed.Add(t.Every), nil
	case writing:
		err = t.propose(ctx, e, w)
		if gone := (*NotNeeded)(nil); errors.As(err, &gone) && s.IsOpen() {
			err = t.close(ctx, e, gone.Why)
		}
	case nothing:
	}
	return at, err
}

// waits reports whether a pull request was changed a moment ago. Actions that a user waits for are not
// delayed.
func (t *turn[E, P]) waits(s *State, asked bool) bool {
	return !asked && !s.Changed.IsZero() && t.now.Time.Before(s.Changed.Add(t.Every))
}

// adoptPull searches the forge for the pull request of an entry that has none recorded, because the response or
// the record was lost, and records it. It returns w if it finds none, and a new Want if the pull request is
// open. Otherwise it returns the zero Want, which changes nothing.
func (t *turn[E, P]) adoptPull(ctx context.Context, e P, w Want) (Want, error) {
	if w.Gone == "" && w.Draft == nil {
		return w, nil
	}
	found, err := t.adoptLost(ctx, e, w.Branches)
	switch {
	case err != nil || !found:
		return w, err
	case e.state().Phase == Open: // an open one may have another Want
		return t.kind.Want(ctx, e, t.now)
	}
	return Want{}, nil
}

// moved reports whether the followed branch has changed files of a proposal since its last commit.
func (t *turn[E, P]) moved(ctx context.Context, s *State, head string) (bool, error) {
	if s.On == "" || s.On == head {
		return false, nil
	}
	since, err := t.Git.Changed(ctx, s.On, head)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(s.Paths, func(p string) bool { _, is := slices.BinarySearch(since, p); return is }), nil
}

// propose opens the pull request of an entry, or updates the open one.
func (t *turn[E, P]) propose(ctx context.Context, e P, w Want) error {
	s := e.state()
	d, err := w.Draft(ctx)
	if err != nil {
		return err
	}
	if s.IsOpen() {
		d.Branch = s.Branch
	}
	before, print := s.Commit, cmp.Or(d.Print, w.Print)
	if err := t.push(ctx, e, d, print); err != nil {
		return err
	}
	if d.Pushed != nil {
		d.Pushed()
	}
	if err := t.save(); err != nil {
		return err
	}
	if !s.IsOpen() {
		p, err := t.Forge.OpenPull(ctx, forge.Proposal{Title: d.Title, Body: d.Body, Head: d.Branch, Base: t.now.Base})
		if err != nil {
			return err // if it was opened in spite of the error, it will be found
		}
		s.Phase, s.Number, s.URL, s.Title = Open, p.Number, p.WebURL, d.Title
		s.Closing, s.Foreign, s.Refused = "", "", false
		t.done(s, print)
		t.say(e, WasOpened, "pull request "+Number(s.Number)+" "+d.Opened)
		return nil
	}
	return t.edit(ctx, e, d, print, before)
}

// edit updates the text of an open pull request to the content of its branch.
func (t *turn[E, P]) edit(ctx context.Context, e P, d Draft, print, before string) error {
	s := e.state()
	p, err := t.Forge.Pull(ctx, s.Number)
	if err != nil {
		return err
	}
	title := ""
	if p.Title == s.Title && d.Title != s.Title { // otherwise somebody has changed the title
		title = d.Title
	}
	if err := t.Forge.EditPull(ctx, s.Number, title, d.Body); err != nil {
		return err
	}
	if title != "" {
		s.Title = title
	}
	first := s.Print == ""
	t.done(s, print)
	if first {
		t.say(e, WasOpened, "pull request "+Number(s.Number)+" "+d.Opened)
	} else {
		t.say(e, WasUpdated, "pull request "+Number(s.Number)+" "+d.Updated+", at "+wording.Short(s.Commit))
	}
	if d.Comment != "" && s.Commit != before { // otherwise a crash happened between the push and the edit
		t.comment(ctx, s.Number, d.Comment)
	}
	return nil
}

// done records that branch and text match a fingerprint.
func (t *turn[E, P]) done(s *State, print string) {
	s.Print, s.Said, s.Changed = print, s.Commit, t.now.Time
}

// push makes the branch of an entry have the draft, unless it already has it. It stores the commit before
// the push, so that a member recognizes the commit as weir's after a crash.
func (t *turn[E, P]) push(ctx context.Context, e P, d Draft, print string) error {
	s := e.state()
	c := d.Commit
	c.Author, c.Address = t.Author, t.Address
	at, err := t.Pusher.At(ctx, d.Branch)
	if err != nil {
		return err
	}
	if at != "" {
		there, err := t.there(ctx, e, d, at, print)
		if err != nil {
			return err
		}
		if there {
			s.Branch, s.Commit = d.Branch, at
			return nil
		}
	}
	c.After = at
	b, err := t.Git.Branch(ctx, d.Branch, c)
	if err != nil {
		return err
	}
	// Record the commit first, so that it is recognized as weir's even after a crash.
	s.Made = with(s.Made, b.Commit, print)
	s.Branch, s.Before, s.Commit, s.On, s.Paths = d.Branch, at, b.Commit, c.On, d.Paths
	if err := t.save(); err != nil {
		return err
	}
	var taken *transport.TakenError
	if err := t.Pusher.Make(ctx, b); errors.As(err, &taken) {
		return fmt.Errorf("push: %s; weir checks it again", taken.Error())
	} else if err != nil {
		return err
	}
	s.Made = map[string]string{b.Commit: print}
	if at != "" {
		s.Made[at] = ""
	}
	return nil
}

// there reports whether a commit of a branch already has the content of a draft. It returns an error if
// somebody else made the commit.
func (t *turn[E, P]) there(ctx context.Context, e P, d Draft, at, print string) (bool, error) {
	s := e.state()
	if !s.noted(at) {
		c := d.Commit
		c.Author, c.Address = t.Author, t.Address
		b, err := t.Git.Branch(ctx, d.Branch, c)
		if err != nil {
			return false, err
		}
		if b.Commit == at { // another member made the same commit
			s.Made, s.On, s.Paths = with(s.Made, at, print), c.On, d.Paths
			return true, nil
		}
		ours, err := t.ours(ctx, e, d.Branch, at)
		if err != nil {
			return false, err
		}
		if !ours {
			return false, Refuse("%v: delete it, or change it by hand", &transport.TakenError{Name: d.Branch, At: at})
		}
	}
	if s.Made[at] != print {
		return false, nil
	}
	moved, err := t.moved(ctx, s, d.Commit.On)
	return !moved, err
}

// later sets the time of the next attempt: soon, or after a long time if the forge does not permit the
// action. The latter is reported.
func (t *turn[E, P]) later(ctx context.Context, e P, err error) {
	if ctx.Err() != nil {
		return
	}
	s := e.state()
	s.Tries++
	wait, mayNot := Wait(err, s.Tries)
	s.After = t.now.Time.Add(wait)
	if refused := t.kind.Texts(e).Refused; mayNot && refused != "" {
		s.Refused = true
		t.say(e, WasRefused, refused+": "+err.Error())
	}
	t.Logger.Warn("a pull request of weir's own waits", "kind", t.Record, "source", t.Source, "branch", s.Branch, "error", t.Redact(err.Error()), "until", s.After)
}

// say reports a text once.
func (t *turn[E, P]) say(e P, what What, text string) {
	s := e.state()
	text = t.Words().Line(text)
	if s.Text == text {
		return
	}
	s.Text = text
	if ev := t.kind.Event(e, what, text); ev.Kind != "" {
		t.Event(ev)
	}
}

func (t *turn[E, P]) comment(ctx context.Context, number int64, text string) {
	if _, err := t.Forge.CreateComment(ctx, number, text); err != nil && ctx.Err() == nil {
		t.Logger.Warn("cannot comment on a pull request", "source", t.Source, "number", number, "error", t.Redact(err.Error()))
	}
}

// join appends a reason to a text. The result is empty if the kind has no text.
func join(text, why string) string {
	if text == "" {
		return ""
	}
	return text + ": " + why
}

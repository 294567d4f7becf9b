package accepts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// Ask opens the pull request of a pool, or brings the one that is open to what AWS has now. A
// *gates.Fault says why there is none.
func (s *Source) Ask(ctx context.Context, store state.Store, now Now, a Asked) (e Entry, f Found, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read(store)
	if err != nil {
		return e, f, err
	}
	e = Entry{Asked: a, Phase: Wanted, At: now.Time, Branch: branchOf(a, now.Time)}
	if i := slices.IndexFunc(all, func(o Entry) bool { return o.Target == a.Target && o.Pool == a.Pool }); i >= 0 {
		fresh := e
		e = all[i]
		e.By, e.After = a.By, time.Time{}
		if e.Phase != Wanted {
			ended, err := s.watch(ctx, &e)
			if err != nil {
				return e, f, &gates.Fault{Message: "the forge does not say what became of pull request " + proposal.Number(e.Number) + ": " + s.Redact(err.Error()), Hint: "ask again in a while"}
			}
			if err := s.keep(store, &e, ended); err != nil {
				return e, f, err
			}
			if ended {
				e = fresh
			}
		}
	}
	if e.Phase == Theirs {
		return e, f, &gates.Fault{Message: "pull request " + proposal.Number(e.Number) + " has commits of somebody else on its branch, and weir leaves it alone", Hint: "merge it or close it: " + e.URL}
	}
	if f, err = s.Fleet.Find(ctx, now.Head, a); err != nil {
		return e, f, err
	}
	if len(f.Files) == 0 {
		return e, f, nothing(f)
	}
	// What has drifted is known to this process alone: from here on it is these fields.
	asked := fieldsOf(a, f)
	e.Fields = union(e.Fields, asked)
	if len(e.Fields) > len(asked) {
		if f, err = s.Fleet.Find(ctx, now.Head, e.Asked); err != nil {
			return e, f, err
		}
	}
	if err := s.keep(store, &e, false); err != nil {
		return e, f, err
	}
	if e.Phase == Wanted {
		err = s.open(ctx, store, &e, f, now)
	} else {
		err = s.move(ctx, store, &e, f, now)
	}
	var wrong *gates.Fault
	switch {
	case errors.As(err, &wrong):
	case err != nil:
		s.later(ctx, &e, now, err)
		err = &gates.Fault{Message: "the pull request is not there yet: " + s.Redact(err.Error()), Hint: "weir tries again by itself; weir history tells how it goes"}
	}
	return e, f, errors.Join(err, s.keep(store, &e, false))
}

// fieldsOf are the fields that were asked for, or else that were found: of a list the whole.
func fieldsOf(a Asked, f Found) []string {
	out := a.Fields
	for _, x := range f.Fields {
		if name, _, _ := strings.Cut(x.Field, "["); len(a.Fields) == 0 {
			out = append(out, name)
		}
	}
	return union(nil, out)
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// nothing says why nothing is written.
func nothing(f Found) error {
	if len(f.Fields) == 0 {
		return &gates.Fault{Message: "AWS has nothing otherwise of the pool that was asked for", Hint: "weir status and the page show what differs; name a FIELD to keep what a commit has changed since, too"}
	}
	var why []string
	for _, l := range f.Fields[:min(len(f.Fields), 5)] {
		why = append(why, l.Field+": "+l.Left)
	}
	return &gates.Fault{Message: "nothing of it can be written: " + strings.Join(why, "; "), Hint: "write it into the manifests by hand"}
}

// step does what is missing of one entry, and says whether it has ended.
func (s *Source) step(ctx context.Context, store state.Store, e *Entry, now Now) (ended bool, err error) {
	if e.Phase == Wanted && e.Commit != "" { // it may be open all the same: an answer was lost
		p, found, err := s.Forge.PullOf(ctx, now.Base, e.Branch)
		if err != nil {
			return false, err
		}
		if found {
			e.Number, e.URL, e.Phase = p.Number, p.WebURL, Open
		}
	}
	if e.Phase != Wanted {
		if ended, err = s.watch(ctx, e); ended || err != nil || e.Phase == Theirs {
			return ended, err
		}
		if now.Head == e.Head && now.Time.Before(e.Looked.Add(s.Every)) {
			return false, nil
		}
	}
	f, err := s.Fleet.Find(ctx, now.Head, e.Asked)
	if err != nil {
		return false, err
	}
	switch {
	case e.Phase == Wanted && len(f.Files) == 0:
		s.tell(e, "accept-closed", "no pull request is needed any more: "+nothing(f).Error())
		return true, nil
	case e.Phase == Wanted:
		err = s.open(ctx, store, e, f, now)
	case len(f.Fields) == 0:
		return s.close(ctx, store, e, now)
	case len(f.Files) == 0: // somebody has to write it by hand
	default:
		err = s.move(ctx, store, e, f, now)
	}
	if err == nil {
		e.Looked, e.Head = now.Time, now.Head
	}
	return false, err
}

// watch looks at a pull request that was open.
func (s *Source) watch(ctx context.Context, e *Entry) (ended bool, err error) {
	p, err := s.Forge.Pull(ctx, e.Number)
	if err != nil {
		return false, err
	}
	what := "pull request " + proposal.Number(e.Number)
	if p.State == forge.Open {
		e.Closing = "" // it could not be closed, and may be needed by now
	}
	switch {
	case p.State == forge.Merged:
		s.tell(e, "accept-closed", what+" was merged: Git says what AWS has")
		return true, nil
	case p.State == forge.Closed && e.Closing != "":
		s.tell(e, "accept-closed", what+" was closed: "+e.Closing)
		return true, nil
	case p.State == forge.Closed:
		s.tell(e, "accept-closed", what+" was closed by somebody")
		return true, nil
	case p.HeadSHA != e.Commit && p.HeadSHA != e.Before && e.Phase != Theirs:
		e.Phase = Theirs
		s.tell(e, "accept-left", what+" has commits of somebody else on its branch: weir leaves it alone; merge or close it")
		s.comment(ctx, e.Number, "This branch has commits that weir did not make: weir leaves it alone from now on, also once AWS has something else. Merge it or close it.")
	}
	return false, nil
}

// close closes a pull request that nobody needs. Why is noted first: else it would look like
// closed by somebody.
func (s *Source) close(ctx context.Context, store state.Store, e *Entry, now Now) (ended bool, err error) {
	e.Closing = "AWS and Git say the same at " + wording.Short(now.Head) + ", so there is nothing to keep"
	if err := s.keep(store, e, false); err != nil {
		return false, err
	}
	if err := s.Forge.ClosePull(ctx, e.Number); err != nil {
		return false, err
	}
	s.tell(e, "accept-closed", "pull request "+proposal.Number(e.Number)+" was closed: "+e.Closing)
	s.comment(ctx, e.Number, "weir closed this: "+e.Closing+".")
	return true, nil
}

// open pushes the branch and opens the pull request. Each write is looked up before.
func (s *Source) open(ctx context.Context, store state.Store, e *Entry, f Found, now Now) error {
	list, _, _, err := s.Forge.Pulls(ctx, "")
	if err != nil {
		return err
	}
	for _, p := range list { // of one that is kept no more, too
		if p.Fork || p.BaseRef != now.Base || !strings.HasPrefix(p.HeadRef, branchesOf(e.Asked)) {
			continue
		}
		e.Number, e.URL, e.Phase = p.Number, p.WebURL, Open
		if p.HeadRef != e.Branch || p.HeadSHA != e.Commit && p.HeadSHA != e.Before {
			e.Branch, e.Phase = p.HeadRef, Theirs // what weir pushed there is not known any more
			return &gates.Fault{Message: "pull request " + proposal.Number(p.Number) + " is open for this pool already, and weir does not know any more what it pushed there", Hint: "merge it or close it: " + p.WebURL}
		}
		return s.move(ctx, store, e, f, now)
	}
	if p, found, err := s.Forge.PullOf(ctx, now.Base, e.Branch); err != nil {
		return err
	} else if found && p.State != forge.Open { // opened before a crash, and ended since
		e.Number, e.URL, e.Commit, e.Phase = p.Number, p.WebURL, p.HeadSHA, Open
		return nil
	}
	if err := s.push(ctx, store, e, f, now); err != nil {
		return err
	}
	p, err := s.Forge.OpenPull(ctx, forge.Proposal{Title: s.title(e), Body: s.body(e, f), Head: e.Branch, Base: now.Base})
	if err != nil {
		return err // if it was opened after all, it is found
	}
	e.Number, e.URL, e.Phase, e.Said = p.Number, p.WebURL, Open, e.Commit
	s.opened(e, f)
	return nil
}

func (s *Source) opened(e *Entry, f Found) {
	s.tell(e, "accept-opened", fmt.Sprintf("pull request %s keeps what AWS has of %s, as %s asked", proposal.Number(e.Number), wording.Count(len(f.written()), "field"), gates.Who(e.By)))
}

// move brings an open pull request to what AWS has now.
func (s *Source) move(ctx context.Context, store state.Store, e *Entry, f Found, now Now) error {
	same := e.Print == f.print()
	if same && e.Said != e.Commit { // it may not have been pushed after all
		at, err := s.Pusher.At(ctx, e.Branch)
		if err != nil {
			return err
		}
		same = at == e.Commit
	}
	if same && e.On != now.Head {
		since, err := s.Git.Changed(ctx, e.On, now.Head)
		if err != nil {
			return err
		}
		same = !slices.ContainsFunc(since, func(p string) bool { return slices.Contains(e.Paths, p) })
	}
	if !same {
		if err := s.push(ctx, store, e, f, now); err != nil {
			return err
		}
	}
	if e.Said == e.Commit {
		return nil
	}
	if err := s.Forge.EditPull(ctx, e.Number, "", s.body(e, f)); err != nil {
		return err
	}
	first := e.Said == ""
	if e.Said = e.Commit; first {
		s.opened(e, f)
		return nil
	}
	s.tell(e, "accept-updated", "pull request "+proposal.Number(e.Number)+" keeps what AWS has now, at "+wording.Short(e.Commit))
	return nil
}

// push brings the branch of an entry to what the files say.
func (s *Source) push(ctx context.Context, store state.Store, e *Entry, f Found, now Now) error {
	at, err := s.Pusher.At(ctx, e.Branch)
	if err != nil {
		return err
	}
	if at != "" && at != e.Commit && at != e.Before {
		return &gates.Fault{Message: "the branch " + e.Branch + " has commits that weir did not make", Hint: "delete it, or merge or close its pull request"}
	}
	title := s.title(e)
	b, err := s.Git.Branch(ctx, e.Branch, source.Commit{
		On: now.Head, After: at, Files: f.Files, Author: s.Author, Address: s.Address, At: now.Time,
		Message: title + "\n\nSomebody changed this in AWS, and it is to stay.\n\n" + Trailer + ": " + e.Target + " " + e.Pool + "\n",
	})
	if err != nil {
		return err
	}
	e.Before, e.Commit, e.On, e.Paths, e.Print = at, b.Commit, now.Head, pathsOf(f), f.print()
	if err := s.keep(store, e, false); err != nil { // so that the commit is known to be weir's
		return err
	}
	var taken *transport.TakenError
	if err := s.Pusher.Make(ctx, b); errors.As(err, &taken) {
		return fmt.Errorf("push: %s, and is looked at again", taken.Error())
	} else if err != nil {
		return err
	}
	return nil
}

func (s *Source) comment(ctx context.Context, number int64, text string) {
	if _, err := s.Forge.CreateComment(ctx, number, text); err != nil && ctx.Err() == nil {
		s.Logger.Warn("a comment could not be written", "source", s.Source, "number", number, "error", s.Redact(err.Error()))
	}
}

func (s *Source) title(e *Entry) string {
	return "Keep what AWS has of pool " + s.words().Line(e.Pool) + " of " + s.words().Line(e.Target)
}

// body is the text of the pull request.
func (s *Source) body(e *Entry, f Found) string {
	var b strings.Builder
	w := s.words()
	fmt.Fprintf(&b, "Somebody changed the pool %s of the target %s in AWS, and %s asked weir to keep that. Merging this makes Git say what AWS has.\n\n", w.Code(e.Pool), w.Code(e.Target), w.Code(gates.Who(e.By)))
	list := func(head string, lines []string) {
		if len(lines) == 0 {
			return
		}
		b.WriteString(head + "\n\n")
		for _, line := range lines[:min(len(lines), proposal.Evidence)] {
			b.WriteString("- " + line + "\n")
		}
		if n := len(lines) - proposal.Evidence; n > 0 {
			fmt.Fprintf(&b, "- and %d more\n", n)
		}
		b.WriteString("\n")
	}
	var written, left []string
	for _, x := range f.Fields {
		switch {
		case x.Left != "":
			left = append(left, w.Code(x.Field)+": "+w.Code(x.Left))
		case x.Value == nil:
			written = append(written, w.Code(x.Field)+" is taken out")
		default:
			written = append(written, w.Code(x.Field)+" is "+w.Code(wording.Value(x.Value))+", at "+w.Code(x.At))
		}
	}
	list("What is written:", written)
	list("What weir cannot write:", left)
	var more []string
	for _, text := range f.More {
		more = append(more, w.Code(text))
	}
	list("Applied, this does more than leave these fields as they are:", more)
	b.WriteString("weir moves this on while it is open, and closes it once AWS and Git say the same. Until it is merged, weir puts the pool right by what Git says now as soon as nothing holds it: end a suspension after the merge.\n")
	return b.String() + proposal.Page(s.PageURL)
}

// Package accepts proposes to keep changes that somebody made in AWS. Each pull request is for one pool,
// and writes AWS's values into the manifests.
//
// A user requests it (Ask). The request is stored before anything is pushed, and the branch is named after
// it. So weir finds both again after a crash or a lost response.
package accepts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// Branches is the prefix of the branches' names. Trailer names the pool in weir's commits.
const (
	Branches = transport.OwnBranches + "accept-"
	Trailer  = "Weir-Accepts"
)

// Fleet finds the differences between AWS and Git, and writes them into files.
type Fleet interface {
	// Find plans a commit, and writes AWS's values of a pool into the commit's files.
	Find(ctx context.Context, on string, a Asked) (Found, error)
}

// Asked is a request to keep values of AWS: all drifted fields of a pool, or named fields.
type Asked struct {
	Target string   `json:"target"`
	Pool   string   `json:"pool"` // namespace/name
	Fields []string `json:"fields,omitempty"`
	By     string   `json:"by,omitempty"`
}

// Found contains the fields in which AWS differs from Git, and files with AWS's values.
type Found struct {
	Fields []accept.Field
	Files  map[string][]byte
	// More lists the additional steps that weir would make with these files.
	More []string
}

// written returns the fields that Files contain.
func (f Found) written() (out []accept.Field) {
	return slices.DeleteFunc(slices.Clone(f.Fields), func(a accept.Field) bool { return a.Left != "" })
}

// print returns a fingerprint of the content to write.
func (f Found) print() string {
	of := f.written()
	for i := range of {
		of[i].At = "" // line numbers change
	}
	text, err := json.Marshal(of)
	if err != nil {
		return "" // cannot fail for values read from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16]
}

// Entry is a requested or open pull request. It is deleted when the pull request has ended.
type Entry struct {
	proposal.State
	Asked
	At time.Time `json:"at"` // the time of the request
	// Looked is the time of the last read of AWS. Head is the commit that was followed then.
	Looked time.Time `json:"looked,omitzero"`
	Head   string    `json:"head,omitempty"`
}

// Options configures a Source. Every is also the time between two reads of AWS for an open pull request.
type Options struct {
	proposal.Options
	Fleet Fleet
}

// Source opens the pull requests of one source.
type Source struct {
	*proposal.Machine[Entry, *Entry]
	kind *kind
}

// kind implements proposal.Kind for one source.
type kind struct {
	Options
	// found is the last result in this turn, for the request in of, at its commit.
	found *Found
	of    Asked
	at    string
}

// New returns a Source.
func New(o Options) *Source {
	o.Record = "accepts"
	k := &kind{Options: o}
	return &Source{proposal.New(o.Options, proposal.Kind[Entry](k)), k}
}

// branchOf returns the branch of a request. All branches of one pool have the same prefix.
func branchOf(a Asked, at time.Time) string {
	sum := sha256.Sum256([]byte(at.UTC().Format(time.RFC3339Nano)))
	return branchesOf(a) + hex.EncodeToString(sum[:])[:8]
}

func branchesOf(a Asked) string {
	sum := sha256.Sum256([]byte(a.Target + " " + a.Pool))
	return Branches + hex.EncodeToString(sum[:])[:12] + "-"
}

// Ask opens the pull request of a pool, or updates the open one to AWS's current values. If the request is
// invalid, it returns a *gates.Fault.
func (s *Source) Ask(ctx context.Context, store state.Store, now proposal.Now, a Asked) (e Entry, f Found, err error) {
	fresh := Entry{Asked: a, At: now.Time}
	fresh.Phase, fresh.Branch = proposal.Asked, branchOf(a, now.Time)
	began := false
	var wrong error // about the request
	e, err = s.Machine.Ask(ctx, store, now, fresh, func(o *Entry) bool { return o.Target == a.Target && o.Pool == a.Pool }, func(e *Entry) error {
		began, e.By, e.After = true, a.By, time.Time{}
		f, wrong = s.kind.ask(ctx, e, now, a)
		return wrong
	})
	var fault *gates.Fault
	var engine *state.EngineError
	var hand *proposal.Refusal
	number := "pull request " + proposal.Number(e.Number)
	switch {
	case wrong != nil, errors.As(err, &fault), errors.As(err, &engine):
	case err != nil && !began:
		err = &gates.Fault{Message: "the forge does not report the state of " + number + ": " + s.Redact(err.Error()), Hint: "try again later"}
	case errors.As(err, &hand):
		err = &gates.Fault{Message: s.Redact(hand.Text), Hint: "delete the branch, or merge or close its pull request"}
	case err != nil:
		err = &gates.Fault{Message: "the pull request does not exist yet: " + s.Redact(err.Error()), Hint: "weir retries by itself; weir history shows the result"}
	case e.Phase == proposal.Theirs:
		err = &gates.Fault{Message: number + " is already open for this pool, and weir no longer knows what it pushed to it", Hint: "merge it or close it: " + e.URL}
	}
	return e, f, err
}

// ask finds the values in AWS that a user wants to keep, and adds their fields to the entry. The result has
// the values of earlier requests too. It fails if nothing would change.
func (k *kind) ask(ctx context.Context, e *Entry, now proposal.Now, a Asked) (f Found, err error) {
	k.found = nil
	if e.Phase == proposal.Theirs {
		return f, &gates.Fault{Message: "pull request " + proposal.Number(e.Number) + " has commits by somebody else on its branch, so weir does not change it", Hint: "merge it or close it: " + e.URL}
	}
	if f, err = k.Fleet.Find(ctx, now.Head, a); err != nil {
		return f, err
	}
	if len(f.Files) == 0 {
		return f, nothing(f)
	}
	// Only this process knows the drift, so the entry stores the fields themselves.
	asked := fieldsOf(a, f)
	e.Fields = union(e.Fields, asked)
	if len(e.Fields) > len(asked) {
		if f, err = k.Fleet.Find(ctx, now.Head, e.Asked); err != nil {
			return f, err
		}
	}
	k.found, k.of, k.at = &f, e.Asked, now.Head
	return f, nil
}

// fieldsOf returns the requested fields, or by default the found fields. It names lists as a whole.
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

// nothing returns the reason why nothing is written.
func nothing(f Found) error {
	if len(f.Fields) == 0 {
		return &gates.Fault{Message: "AWS has no other value for the requested fields of the pool", Hint: "weir status and the page show what differs; name a FIELD to keep what a commit has changed since, too"}
	}
	var why []string
	for _, l := range f.Fields[:min(len(f.Fields), 5)] {
		why = append(why, l.Field+": "+l.Left)
	}
	return &gates.Fault{Message: "none of the values can be written: " + strings.Join(why, "; "), Hint: "write it into the manifests by hand"}
}

// Entries implements proposal.Kind. It adds no entries, because users request them.
func (k *kind) Entries(_ context.Context, all []Entry, now proposal.Now) ([]Entry, time.Time, error) {
	if k.found = nil; len(all) == 0 {
		return all, time.Time{}, nil
	}
	return all, now.Time.Add(k.Every), nil
}

// Want proposes AWS's current values. It reads them at most every Options.Every, and at each new commit.
func (k *kind) Want(ctx context.Context, e *Entry, now proposal.Now) (w proposal.Want, err error) {
	if k.found == nil || k.at != now.Head || !reflect.DeepEqual(k.of, e.Asked) {
		if e.IsOpen() && e.Tries == 0 && now.Head == e.Head && now.Time.Before(e.Looked.Add(k.Every)) {
			return w, nil
		}
		found, err := k.Fleet.Find(ctx, now.Head, e.Asked)
		if err != nil {
			return w, err
		}
		k.found, k.of, k.at = &found, e.Asked, now.Head
	}
	f := k.found
	e.Looked, e.Head = now.Time, now.Head
	switch {
	case len(f.Files) > 0:
		w.Branches, w.Print = []string{e.Branch}, f.print()
		w.Draft = func(context.Context) (proposal.Draft, error) { return k.draft(e, *f, now), nil }
	case !e.IsOpen():
		w.Branches, w.Gone = []string{e.Branch}, nothing(*f).Error()
	case len(f.Fields) == 0: // otherwise a person must write it
		w.Gone = "AWS and Git agree at " + wording.Short(now.Head) + ", so there is nothing to keep"
	}
	return w, nil
}

func (k *kind) draft(e *Entry, f Found, now proposal.Now) proposal.Draft {
	title := "Keep AWS's values of pool " + k.Words().Line(e.Pool) + " of " + k.Words().Line(e.Target)
	return proposal.Draft{
		Branch: e.Branch, Title: title, Body: k.body(e, f), Paths: slices.Sorted(maps.Keys(f.Files)),
		Opened:  fmt.Sprintf("keeps AWS's values of %s, as %s requested", wording.Count(len(f.written()), "field"), gates.Who(e.By)),
		Updated: "keeps AWS's current values",
		Commit: source.Commit{
			On: now.Head, Files: f.Files, At: now.Time,
			Message: title + "\n\nSomebody changed these values in AWS, and they must stay.\n\n" + Trailer + ": " + e.Target + " " + e.Pool + "\n",
		},
	}
}

// Owns reports whether a branch belongs to an entry's pool.
func (k *kind) Owns(e *Entry, branch string) bool {
	return strings.HasPrefix(branch, branchesOf(e.Asked))
}

// Made reads the trailer of a commit. Without a record the requested fields are unknown, so weir does not
// continue from the commit.
func (k *kind) Made(e *Entry, of []snapshot.Trailer) (m proposal.Made, ours bool) {
	return m, e.Commit != "" && slices.ContainsFunc(of, func(t snapshot.Trailer) bool {
		return strings.EqualFold(t.Key, Trailer) && t.Value == e.Target+" "+e.Pool
	})
}

// Ended deletes the entry, so that users can request it again.
func (k *kind) Ended(*Entry) bool { return false }

// Texts implements proposal.Kind.
func (k *kind) Texts(e *Entry) proposal.Texts {
	t := proposal.Texts{
		Merged: "was merged: Git now has AWS's values", Closed: "was closed by somebody",
		Unneeded: "no pull request is needed any more", Refused: "weir has no permission to propose AWS's values", ByHand: "weir proposes nothing",
	}
	if e.Commit != "" {
		t.Left = "has commits by somebody else on its branch: weir does not change it; merge or close it"
		t.LeftComment = "This branch has commits that weir did not make. weir no longer updates it, even if AWS changes. Merge it or close it."
	}
	return t
}

// Event implements proposal.Kind.
func (k *kind) Event(e *Entry, what proposal.What, text string) events.Event {
	ev := events.Event{Kind: "accept-" + string(what), Target: e.Target, Pool: e.Pool, Text: text, Facts: map[string]string{"source": k.Source}}
	if e.URL != "" {
		ev.Facts["url"] = e.URL
	}
	return ev
}

// Finish does nothing.
func (k *kind) Finish(context.Context, []Entry) {}

// body returns the text of the pull request.
func (k *kind) body(e *Entry, f Found) string {
	var b strings.Builder
	w := k.Words()
	fmt.Fprintf(&b, "Somebody changed the pool %s of the target %s in AWS, and %s requested that weir keeps the change. Merging this writes AWS's values to Git.\n\n", w.Code(e.Pool), w.Code(e.Target), w.Code(gates.Who(e.By)))
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
	list("Written values:", written)
	list("Not written:", left)
	var more []string
	for _, text := range f.More {
		more = append(more, w.Code(text))
	}
	list("Applying this also changes other things:", more)
	b.WriteString("weir updates this pull request while it is open, and closes it once AWS and Git agree. Until it is merged, weir corrects the pool to match Git unless the pool is held, so end a suspension only after the merge.\n")
	return b.String() + proposal.Page(k.PageURL)
}

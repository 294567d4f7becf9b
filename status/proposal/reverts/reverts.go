// Package reverts proposes to take back what a FleetRollout stopped: one pull request that reverts the
// commit, or a status on the commit that says what to do by hand. If no commit changed what the pools
// launch, but AWS answered a lookup otherwise, as with a newly published image, the pull request pins
// what they ran before.
//
// The branch weir/revert-COMMIT is the same for every member, and so is its commit. A pull request
// that was ever opened of it, closed by hand or not, is the only one.
//
// It reverts the fewest paths of the commit that take every stopped pool back: find tries them by
// rendering, offline.
package reverts

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// Branches and PinBranches are the prefixes of branches that revert a commit, and that pin what pools ran
// before. Trailer and PinTrailer name the reverted commit in weir's commits.
const (
	Branches    = transport.OwnBranches + "revert-"
	PinBranches = transport.OwnBranches + "pin-"
	Trailer     = "Weir-Reverts"
	PinTrailer  = "Weir-Pins"
)

// Statuses writes commit statuses, with the token for statuses.
type Statuses interface {
	Profile() forge.Profile
	SetStatus(ctx context.Context, sha string, s forge.CommitStatus) error
}

// Git is the source's mirror.
type Git interface {
	proposal.Git
	At(ctx context.Context, revision string) (snapshot.Snapshot, error)
	Descends(ctx context.Context, revision, from string) (bool, error)
	Restored(ctx context.Context, on, from string, paths []string) (snapshot.Snapshot, error)
	Edited(ctx context.Context, on string, files map[string][]byte) (snapshot.Snapshot, error)
}

// Fleet reports the state of rollouts, and renders trees.
type Fleet interface {
	// Standing returns the state of the rollouts and pools at a commit.
	Standing(head string) (Standing, error)
	// Render renders the named targets, or with none those that the tree would change.
	Render(ctx context.Context, s snapshot.Snapshot, only []string) ([]Target, error)
	// Pin finds the files in which pools of a tree get back what they ran.
	Pin(ctx context.Context, s snapshot.Snapshot, was map[rollout.ID]rollout.Version) (Pinned, error)
}

// Standing is the state of a source's rollouts.
type Standing struct {
	Record *rollout.Record
	// Pools holds the last reports of their owners. Missing lists targets without a report.
	Pools   []rollout.Pool
	Missing map[string]string
}

// Target is a rendered target.
type Target struct {
	Name string
	// Fault explains why it does not render whole; empty if it does.
	Fault string
	// Launches identifies, by pool, what Git says its machines are launched from.
	Launches map[string]string
}

// Options configure a Source.
type Options struct {
	proposal.Options
	Instance string
	Statuses Statuses // nil if none are written
	Git      Git
	Fleet    Fleet
}

// Entry is the record of one commit that was stopped.
type Entry struct {
	proposal.State
	Revision string    `json:"revision"`
	At       time.Time `json:"at"`
	Rollouts []string  `json:"rollouts"`
	// Pools are those that were stopped, with what is bad for them.
	Pools []rollout.Subject `json:"pools"`
	// Earlier is the version that one of them ran before.
	Earlier *rollout.Version `json:"earlier,omitempty"`
	// Was holds the earlier versions of pools that could be pinned to them, by pool. Pin says that
	// the pull request does so, and reverts nothing.
	Was map[string]rollout.Version `json:"was,omitempty"`
	Pin bool                       `json:"pin,omitempty"`
	// Told is the status of the commit that was written last.
	Told string `json:"told,omitempty"`
}

// kept is the number of entries that are kept for a source.
const kept = 50

// Source proposes the reverts of one source.
type Source = proposal.Machine[Entry, *Entry]

// kind decides about the reverts of one source.
type kind struct {
	Options
	// all and now are the entries and the rollouts in this turn.
	all []Entry
	now Standing
}

// New makes one.
func New(o Options) *Source {
	o.Record, o.Options.Git = "reverts", o.Git
	return proposal.New(o.Options, proposal.Kind[Entry](&kind{Options: o}))
}

// Entries adds what was stopped since.
func (k *kind) Entries(_ context.Context, all []Entry, now proposal.Now) (out []Entry, next time.Time, err error) {
	if k.now, err = k.Fleet.Standing(now.Head); err != nil {
		return all, next, err
	}
	collect(&all, k.now.Record)
	k.all = all
	return all, next, nil
}

// Want proposes to revert or to pin, once.
func (k *kind) Want(ctx context.Context, e *Entry, now proposal.Now) (w proposal.Want, err error) {
	if e.Phase != proposal.Wanted && !e.IsOpen() {
		return w, nil
	}
	return proposal.Want{
		Gone: k.obsolete(e, now.Head), Branches: []string{branchOf(e.Revision), pinBranchOf(e)}, Fixed: "proposes the " + e.what(),
		Draft: func(ctx context.Context) (proposal.Draft, error) { return k.draft(ctx, e, now) },
	}, nil
}

// Owns reports nothing: the names of the branches are known.
func (k *kind) Owns(*Entry, string) bool { return false }

// Made reads the trailer of a commit.
func (k *kind) Made(e *Entry, of []snapshot.Trailer) (m proposal.Made, ours bool) {
	return m, slices.ContainsFunc(of, func(t snapshot.Trailer) bool {
		return (strings.EqualFold(t.Key, Trailer) || strings.EqualFold(t.Key, PinTrailer)) && t.Value == e.Revision
	})
}

// Ended keeps the entry: weir opens no other pull request for it.
func (k *kind) Ended(*Entry) bool { return true }

// Texts are the words of this kind.
func (k *kind) Texts(e *Entry) proposal.Texts {
	t := proposal.Texts{
		Merged: "was merged", Closed: "was closed: weir opens no further one",
		Left:     "proposes the " + e.what() + ", with commits by somebody else on its branch: merge or close it, weir does not change it",
		Unneeded: "no " + e.what() + " is needed", ByHand: "weir proposes no " + e.what(),
	}
	if !e.IsOpen() {
		t.Refused = "weir must not propose the " + e.what()
	}
	return t
}

// Event reports what happened to a revert. What somebody else pushed is said in the commit's status.
func (k *kind) Event(e *Entry, what proposal.What, text string) events.Event {
	if what == proposal.WasLeft {
		return events.Event{}
	}
	return events.Event{Kind: "revert-" + string(what), Source: k.Source, Revision: e.Revision, Text: e.what() + " of " + wording.Short(e.Revision) + ": " + text}
}

// Finish writes the statuses of the commits.
func (k *kind) Finish(ctx context.Context, all []Entry) {
	for i := range all {
		e := &all[i]
		e.Pin = e.what() == "pin"
		k.tell(ctx, e)
	}
}

// tell writes the status of the commit if it says something else now.
func (k *kind) tell(ctx context.Context, e *Entry) {
	status := forge.CommitStatus{Context: k.Instance + "/revert", State: forge.Success}
	switch {
	case k.Statuses == nil || e.Text == "":
		return
	case e.Phase == proposal.ByHand || e.Refused:
		status.State = forge.Failure
	case e.Phase == proposal.Wanted:
		return
	}
	status.Description = k.Words().Status(e.Text, k.Statuses.Profile().Limits.Description)
	status.TargetURL = cmp.Or(e.URL, k.PageURL)
	said := string(status.State) + " " + status.Description
	if said == e.Told {
		return
	}
	if err := k.Statuses.SetStatus(ctx, e.Revision, status); err != nil {
		k.Logger.Warn("cannot write the state of a revert", "source", k.Source, "revision", e.Revision, "error", err)
		return
	}
	e.Told = said
}

// obsolete explains why nobody needs a revert any more: no pool still asks for what was
// stopped, or all of it was rolled out after all.
func (k *kind) obsolete(e *Entry, head string) string {
	moved, done := true, true
	for _, of := range e.Pools {
		if _, missing := k.now.Missing[of.Target]; missing {
			return ""
		}
		i := slices.IndexFunc(k.now.Pools, func(p rollout.Pool) bool { return p.ID == of.ID })
		if i < 0 || k.now.Pools[i].Hash != of.Hash && k.now.Pools[i].Hash != "" {
			continue
		}
		moved = false
		if p := k.now.Pools[i]; p.Hash == "" || p.Pending || p.Moving != nil || p.Failed != "" || k.now.Record.BadOf(of.ID, of.Hash) != nil {
			done = false
		}
	}
	switch {
	case moved:
		if e.Pin {
			return "its pools now launch something else"
		}
		return "another commit changed what its pools launch, at " + wording.Short(head)
	case done:
		return "the change was rolled out after all"
	}
	return ""
}

// collect adds what was stopped by a bad signal. What a person aborted is for that person to decide.
func collect(all *[]Entry, record *rollout.Record) {
	for i := range record.Runs {
		run := &record.Runs[i]
		if run.Stopped == nil || run.Stopped.By != "weir" || run.Revision == "" {
			continue
		}
		found := stopped(run, record)
		if len(found.Pools) == 0 {
			continue // it is let go again
		}
		if i := slices.IndexFunc(*all, func(e Entry) bool { return e.covers(&found) }); i >= 0 {
			(*all)[i].add(&found)
		} else {
			*all = append(*all, found)
		}
	}
	if n := len(*all); n > kept {
		*all = slices.Clone((*all)[n-kept:])
	}
}

// stopped returns the entry of a run, with the pools that are still marked bad.
func stopped(run *rollout.Run, record *rollout.Record) Entry {
	e := Entry{Revision: run.Revision, At: run.Stopped.At, Rollouts: []string{run.Name}, Was: map[string]rollout.Version{}}
	for _, m := range run.Members {
		if record.BadOf(m.ID, m.Hash) == nil {
			continue
		}
		e.Pools = append(e.Pools, rollout.Subject{ID: m.ID, Hash: m.Hash})
		e.Earlier = cmp.Or(e.Earlier, m.Earlier)
		if m.Earlier != nil && m.Earlier.Pin != "" {
			e.Was[m.String()] = *m.Earlier
		}
	}
	return e
}

// covers reports whether an entry is already about what was found.
//
// A rollout that is let go again, or restarts after an edit, has a later commit as its own: what was
// bad before is not proposed twice. What is bad at the same commit for another reason, such as a second
// image, is another entry, unless the same revert takes it back.
func (e *Entry) covers(found *Entry) bool {
	if slices.ContainsFunc(found.Pools, func(p rollout.Subject) bool { return slices.Contains(e.Pools, p) }) {
		return true
	}
	differs := slices.ContainsFunc(found.Pools, func(p rollout.Subject) bool {
		return slices.ContainsFunc(e.Pools, func(o rollout.Subject) bool { return o.ID == p.ID && o.Hash != p.Hash })
	})
	return e.Revision == found.Revision && (!differs || len(found.Was) == 0 && e.reverts())
}

// add adds pools that were found to an entry.
func (e *Entry) add(found *Entry) {
	if name := found.Rollouts[0]; !slices.Contains(e.Rollouts, name) {
		e.Rollouts = append(slices.Clone(e.Rollouts), name)
	}
	e.Pools, e.Was = slices.Clone(e.Pools), maps.Clone(e.Was)
	for _, p := range found.Pools {
		switch k := slices.IndexFunc(e.Pools, func(o rollout.Subject) bool { return o.ID == p.ID }); {
		case k < 0:
			e.Pools = append(e.Pools, p)
		case e.Pools[k] == p:
			continue
		default:
			e.Pools[k] = p
		}
		if v, is := found.Was[p.String()]; is {
			if e.Was == nil {
				e.Was = map[string]rollout.Version{}
			}
			e.Was[p.String()] = v
		}
	}
}

// branchOf is the branch that reverts a commit.
func branchOf(revision string) string { return Branches + revision[:min(12, len(revision))] }

// reverts reports whether an entry is about reverting its commit, and not about pins, and
// may still do so.
func (e *Entry) reverts() bool {
	return !e.Pin && len(e.Was) == 0 && (e.Phase == proposal.Wanted || e.IsOpen())
}

// what is proposed.
func (e *Entry) what() string {
	pin := e.Pin
	if e.Number != 0 && e.Branch != "" {
		pin = strings.HasPrefix(e.Branch, PinBranches)
	}
	if pin {
		return "pin"
	}
	return "revert"
}

// own reports whether a commit came by merging a branch of weir's, or is one.
func own(c snapshot.Snapshot, all []Entry) bool {
	return strings.Contains(c.Message, Branches) || strings.Contains(c.Message, PinBranches) ||
		slices.ContainsFunc(snapshot.Trailers(c.Message), func(t snapshot.Trailer) bool {
			return strings.EqualFold(t.Key, Trailer) || strings.EqualFold(t.Key, PinTrailer)
		}) ||
		slices.ContainsFunc(all, func(e Entry) bool { return e.Merge != "" && e.Merge == c.Revision })
}

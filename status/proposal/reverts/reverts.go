// Package reverts proposes to undo a change that a FleetRollout stopped: with a pull request that reverts
// the commit, or with a status on the commit that describes the manual steps. If no commit changed what the
// pools launch, but AWS answered a lookup differently, such as after the publication of a new image, the
// pull request pins the version that they ran before.
//
// All members use the same branch weir/revert-COMMIT, with the same commit. There is only one pull request
// for it, even if it was closed.
//
// The pull request reverts the smallest set of the commit's paths that restores every stopped pool. find
// determines it by rendering, offline.
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

// Branches and PinBranches are the prefixes of branches that revert a commit, and of branches that pin the
// previous version of pools. Trailer and PinTrailer name the reverted commit in weir's commits.
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

// Git is the mirror of the source.
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
	// Render renders the named targets. Without names, it renders the targets that the tree would change.
	Render(ctx context.Context, s snapshot.Snapshot, only []string) ([]Target, error)
	// Pin finds the files that pin the previous version of pools in a tree.
	Pin(ctx context.Context, s snapshot.Snapshot, was map[rollout.ID]rollout.Version) (Pinned, error)
}

// Standing is the state of a source's rollouts.
type Standing struct {
	Record *rollout.Record
	// Pools contains the last reports of the pools' owners. Missing lists targets without a report.
	Pools   []rollout.Pool
	Missing map[string]string
}

// Target is a rendered target.
type Target struct {
	Name string
	// Fault is the reason why the target does not render completely; empty if it does.
	Fault string
	// Launches contains, by pool, hashes of the launched configuration in Git.
	Launches map[string]string
}

// Options configures a Source.
type Options struct {
	proposal.Options
	Instance string
	Statuses Statuses // nil to write no statuses
	Git      Git
	Fleet    Fleet
}

// Entry is the record of a stopped commit.
type Entry struct {
	proposal.State
	Revision string    `json:"revision"`
	At       time.Time `json:"at"`
	Rollouts []string  `json:"rollouts"`
	// Pools lists the stopped pools, with the hashes that are bad for them.
	Pools []rollout.Subject `json:"pools"`
	// Earlier is the version that one of the pools ran before.
	Earlier *rollout.Version `json:"earlier,omitempty"`
	// Was contains the earlier versions of pools that could be pinned to them, by pool. Pin says that the
	// pull request pins them, and reverts nothing.
	Was map[string]rollout.Version `json:"was,omitempty"`
	Pin bool                       `json:"pin,omitempty"`
	// Told is the last written status of the commit.
	Told string `json:"told,omitempty"`
}

// kept is the maximum number of stored entries for a source.
const kept = 50

// Source opens the pull requests of one source.
type Source = proposal.Machine[Entry, *Entry]

// kind implements proposal.Kind for one source.
type kind struct {
	Options
	// all contains the entries, and now the rollouts, of this turn.
	all []Entry
	now Standing
}

// New returns a Source.
func New(o Options) *Source {
	o.Record, o.Options.Git = "reverts", o.Git
	return proposal.New(o.Options, proposal.Kind[Entry](&kind{Options: o}))
}

// Entries adds entries for newly stopped rollouts.
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

// Owns returns false, because all branch names are known.
func (k *kind) Owns(*Entry, string) bool { return false }

// Made reads the trailer of a commit.
func (k *kind) Made(e *Entry, of []snapshot.Trailer) (m proposal.Made, ours bool) {
	return m, slices.ContainsFunc(of, func(t snapshot.Trailer) bool {
		return (strings.EqualFold(t.Key, Trailer) || strings.EqualFold(t.Key, PinTrailer)) && t.Value == e.Revision
	})
}

// Ended keeps the entry: weir opens no other pull request for it.
func (k *kind) Ended(*Entry) bool { return true }

// Texts implements proposal.Kind.
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

// Event implements proposal.Kind. The status of the commit reports pushes of others.
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

// tell writes the status of the stopped commit about its revert, if the status has changed. A failed write
// is only logged.
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

// obsolete returns the reason why a revert is no longer needed: no pool still wants the stopped change, or
// all of it was rolled out in the end.
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

// collect adds changes that were stopped by a bad signal. A person who aborts a rollout decides about it.
func collect(all *[]Entry, record *rollout.Record) {
	for i := range record.Runs {
		run := &record.Runs[i]
		if run.Stopped == nil || run.Stopped.By != "weir" || run.Revision == "" {
			continue
		}
		found := stopped(run, record)
		if len(found.Pools) == 0 {
			continue // its stop was lifted
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

// covers reports whether an existing entry already includes a found one.
//
// If the stop of a rollout is lifted, or the rollout restarts after an edit, it has a later commit. The
// earlier bad pools are then not proposed twice. Pools that are bad at the same commit for another reason,
// such as a second image, get another entry, unless the same revert restores them.
func (e *Entry) covers(found *Entry) bool {
	if slices.ContainsFunc(found.Pools, func(p rollout.Subject) bool { return slices.Contains(e.Pools, p) }) {
		return true
	}
	differs := slices.ContainsFunc(found.Pools, func(p rollout.Subject) bool {
		return slices.ContainsFunc(e.Pools, func(o rollout.Subject) bool { return o.ID == p.ID && o.Hash != p.Hash })
	})
	return e.Revision == found.Revision && (!differs || len(found.Was) == 0 && e.reverts())
}

// add adds found pools to an entry.
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

// branchOf returns the branch that reverts a commit.
func branchOf(revision string) string { return Branches + revision[:min(12, len(revision))] }

// reverts reports whether an entry is about a revert of its commit, not about pins, and may still propose
// it.
func (e *Entry) reverts() bool {
	return !e.Pin && len(e.Was) == 0 && (e.Phase == proposal.Wanted || e.IsOpen())
}

// what returns the kind of proposal.
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

// own reports whether a commit is a revert or pin by weir, or merges one.
func own(c snapshot.Snapshot, all []Entry) bool {
	return strings.Contains(c.Message, Branches) || strings.Contains(c.Message, PinBranches) ||
		slices.ContainsFunc(snapshot.Trailers(c.Message), func(t snapshot.Trailer) bool {
			return strings.EqualFold(t.Key, Trailer) || strings.EqualFold(t.Key, PinTrailer)
		}) ||
		slices.ContainsFunc(all, func(e Entry) bool { return e.Merge != "" && e.Merge == c.Revision })
}

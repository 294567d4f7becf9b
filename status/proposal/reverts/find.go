package reverts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

const (
	// farthest is the maximum number of commits that are searched for the cause. Several commits may have
	// been pushed at once.
	farthest = 20
	// tried is the maximum number of paths that are tested individually. If there are more, all are
	// reverted.
	tried = 60
)

// Found is the change to revert.
type Found struct {
	// From is the commit from which the files are restored. Commits lists the commits since then, the
	// newest first.
	From    string
	Commits []snapshot.Snapshot
	Paths   []string
	// Left lists stopped pools that the revert does not restore.
	Left []rollout.ID
}

// errGone means that there is nothing left to revert.
var errGone = &proposal.NotNeeded{Why: "the commit is no longer in the followed branch"}

// errUnchanged means that there is no commit to revert.
var errUnchanged = errors.New("no commit changed what these pools launch: weir's configuration changed, or AWS's answer to a lookup")

// find finds the smallest set of paths that restores the stopped pools to their state before the commit, on
// top of the followed commit.
func (k *kind) find(ctx context.Context, e *Entry, head string) (f Found, err error) {
	if is, err := k.Git.Descends(ctx, head, e.Revision); err != nil {
		return f, err
	} else if !is {
		return f, errGone
	}
	var targets []string
	for _, p := range e.Pools {
		if !slices.Contains(targets, p.Target) {
			targets = append(targets, p.Target)
		}
	}
	followed, err := k.Git.At(ctx, head)
	if err != nil {
		return f, err
	}
	now, err := k.launches(ctx, followed, targets)
	if err != nil {
		return f, err
	}
	back, err := k.cause(ctx, e, &f, head, targets, now)
	if err != nil {
		return f, err
	}
	f.Commits = f.Commits[:slices.IndexFunc(f.Commits, func(c snapshot.Snapshot) bool { return c.Parent == f.From })+1]
	for _, p := range e.Pools {
		if !slices.Contains(back, p.String()) {
			f.Left = append(f.Left, p.ID)
		}
	}
	return f, k.fewest(ctx, e, &f, head, targets, back, now)
}

// cause goes back from the stopped commit until undoing the commits restores the most pools, and returns
// these pools. It sets From, Commits and Paths.
func (k *kind) cause(ctx context.Context, e *Entry, f *Found, head string, targets []string, now map[string]string) (best []string, err error) {
	at, err := k.Git.At(ctx, e.Revision)
	if err != nil {
		return nil, err
	}
	unchanged := errUnchanged
	for n := 0; n < farthest && at.Parent != ""; n++ {
		f.Commits = append(f.Commits, at)
		changed, err := k.Git.Changed(ctx, at.Parent, e.Revision)
		if err != nil {
			return nil, err
		}
		var before map[string]string
		if len(changed) > 0 {
			before, err = k.restored(ctx, head, at.Parent, changed, targets)
		}
		if hand := (*proposal.Refusal)(nil); errors.As(err, &hand) {
			unchanged = proposal.Refuse("with the files of %s %s", wording.Short(at.Parent), hand.Text)
		} else if err != nil {
			return nil, err
		}
		back, mine := differ(e.Pools, now, before), own(at, k.all)
		if mine && len(back) > 0 && len(best) == 0 {
			return nil, proposal.Refuse("%s is itself a revert by weir, which weir does not revert: push a commit that corrects the pools", wording.Short(at.Revision))
		}
		if len(back) > len(best) {
			best, f.From, f.Paths = back, at.Parent, changed
		}
		if len(best) == len(e.Pools) || mine { // a revert by weir is not reverted
			break
		}
		if at, err = k.Git.At(ctx, at.Parent); err != nil {
			return nil, err
		}
	}
	if len(best) == 0 {
		return nil, unchanged
	}
	return best, nil
}

// fewest removes each path that is not needed to restore the pools. It starts with paths that were changed
// again since.
func (k *kind) fewest(ctx context.Context, e *Entry, f *Found, head string, targets, back []string, now map[string]string) error {
	whole, err := k.restored(ctx, head, f.From, f.Paths, targets)
	if err != nil {
		return err
	}
	var again []string
	if head != e.Revision {
		if again, err = k.Git.Changed(ctx, e.Revision, head); err != nil {
			return err
		}
	}
	isAgain := func(p string) bool { _, is := slices.BinarySearch(again, p); return is }
	if len(f.Paths) <= tried {
		order := slices.Clone(f.Paths)
		slices.SortStableFunc(order, func(a, b string) int {
			switch {
			case isAgain(a) == isAgain(b):
				return 0
			case isAgain(a):
				return -1
			}
			return 1
		})
		for _, path := range order {
			without := slices.DeleteFunc(slices.Clone(f.Paths), func(p string) bool { return p == path })
			if len(without) == 0 {
				break
			}
			got, err := k.restored(ctx, head, f.From, without, targets)
			var hand *proposal.Refusal
			if err != nil && !errors.As(err, &hand) {
				return err
			}
			if err == nil && !slices.ContainsFunc(back, func(pool string) bool { return got[pool] != whole[pool] }) {
				f.Paths = without
			}
		}
	}
	if i := slices.IndexFunc(f.Paths, isAgain); i >= 0 {
		return proposal.Refuse("%s was changed again since %s: revert it by hand, as in %s", f.Paths[i], wording.Short(e.Revision), wording.Short(f.From))
	}
	// The result must be complete for every target that it changes.
	result, err := k.Git.Restored(ctx, head, f.From, f.Paths)
	if err != nil {
		return err
	}
	touched, err := k.Fleet.Render(ctx, result, nil)
	if err != nil {
		return err
	}
	for _, t := range touched {
		if t.Fault != "" {
			return proposal.Refuse("the target %s does not render if %s is reverted: %s", t.Name, strings.Join(f.Paths, ", "), t.Fault)
		}
	}
	return nil
}

// restored returns what the targets' pools launch if files are restored.
func (k *kind) restored(ctx context.Context, on, from string, paths, targets []string) (map[string]string, error) {
	result, err := k.Git.Restored(ctx, on, from, paths)
	if err != nil {
		return nil, err
	}
	return k.launches(ctx, result, targets)
}

// launches returns hashes of what pools launch, by target and pool. A target that does not render is a
// refusal.
func (k *kind) launches(ctx context.Context, of snapshot.Snapshot, targets []string) (map[string]string, error) {
	list, err := k.Fleet.Render(ctx, of, targets)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, t := range list {
		if t.Fault != "" {
			return nil, proposal.Refuse("the target %s does not render: %s", t.Name, t.Fault)
		}
		for pool, launch := range t.Launches {
			out[rollout.ID{Target: t.Name, Pool: pool}.String()] = launch
		}
	}
	return out, nil
}

// differ returns the pools that launch something different in b than in a. A pool that is missing in either
// does not count.
func differ(pools []rollout.Subject, a, b map[string]string) (out []string) {
	for _, p := range pools {
		if id := p.String(); a[id] != b[id] && b[id] != "" {
			out = append(out, id)
		}
	}
	return out
}

// earlier describes the version that the pools ran before.
func earlier(e *Entry) string {
	if e.Earlier == nil {
		return "weir rollout show names the pools"
	}
	return fmt.Sprintf("version %d of the launch template %s has it", e.Earlier.Number, e.Earlier.Template)
}

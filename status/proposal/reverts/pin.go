package reverts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// Pinned is a change that pins pools to the version that they ran before.
type Pinned struct {
	// Files contains the changed files.
	Files map[string][]byte
	// Places lists the pinned pools. Left lists pools that cannot be pinned, with the remedy.
	Places []PinnedPool
	Left   []LeftPool
}

// PinnedPool is a pool with the field that pins it.
type PinnedPool struct {
	rollout.ID
	// Field is the path of the field in the manifest. At is its file, line and column after the change.
	Field, Value, At string
}

// LeftPool is a pool that weir does not pin.
type LeftPool struct {
	rollout.ID
	Text string
}

// pinBranchOf returns the branch that pins the pools of an entry. All members compute the same name, and a
// different bad image results in a different name.
func pinBranchOf(e *Entry) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s", e.Revision, e.Pools[0].ID)
	fmt.Fprintf(h, " %s", e.Pools[0].Hash)
	return PinBranches + hex.EncodeToString(h.Sum(nil))[:12]
}

// pin returns the draft of a pull request that pins the stopped pools to the version that they ran before.
func (k *kind) pin(ctx context.Context, e *Entry, now proposal.Now) (d proposal.Draft, err error) {
	if is, err := k.Git.Descends(ctx, now.Head, e.Revision); err != nil {
		return d, err
	} else if !is {
		return d, errGone
	}
	on := e.Revision
	pinned, err := k.pinned(ctx, e, on)
	if err != nil {
		return d, err
	}
	if on != now.Head {
		since, err := k.Git.Changed(ctx, on, now.Head)
		if err != nil {
			return d, err
		}
		if slices.ContainsFunc(since, func(p string) bool { _, is := pinned.Files[p]; return is }) {
			on = now.Head // the lines may have changed since
			if pinned, err = k.pinned(ctx, e, on); err != nil {
				return d, err
			}
		}
	}
	if err := k.provePin(ctx, pinned, now.Head); err != nil {
		return d, err
	}
	title := "Pin what " + wording.Count(len(pinned.Places), "pool") + " ran before"
	if v := pinned.Places[0].Value; !slices.ContainsFunc(pinned.Places, func(p PinnedPool) bool { return p.Value != v }) {
		title = "Pin " + v + ", which " + wording.Count(len(pinned.Places), "pool") + " ran before"
	}
	paths := slices.Sorted(maps.Keys(pinned.Files))
	return k.drafted(e, pinBranchOf(e), title, k.pinBody(e, pinned), source.Commit{
		On: on, Files: pinned.Files,
		Message: title + "\n\nThe rollout of a newer answer to a lookup was stopped. These files pin the earlier one:\n\n" + k.Words().List(paths) + "\n" + PinTrailer + ": " + e.Revision + "\n",
	}), nil
}

// pinned returns the files that pin the pools in a commit's tree.
func (k *kind) pinned(ctx context.Context, e *Entry, on string) (p Pinned, err error) {
	at, err := k.Git.At(ctx, on)
	if err != nil {
		return p, err
	}
	was := map[rollout.ID]rollout.Version{}
	for _, pool := range e.Pools {
		if v, is := e.Was[pool.String()]; is {
			was[pool.ID] = v
		}
	}
	if p, err = k.Fleet.Pin(ctx, at, was); err != nil {
		return p, err
	}
	if len(p.Places) == 0 {
		text := "no pool can be pinned"
		if len(p.Left) > 0 {
			text = p.Left[0].String() + ": " + p.Left[0].Text
		}
		if n := len(p.Left) - 1; n > 0 {
			text += "; and " + wording.Count(n, "more pool")
		}
		return p, proposal.Refuse("AWS answered a lookup differently, and weir found no commit to revert: %s", text)
	}
	return p, nil
}

// provePin renders the head with the files. Every target must be complete, and only the pinned pools may
// launch something different.
func (k *kind) provePin(ctx context.Context, pinned Pinned, head string) error {
	followed, err := k.Git.At(ctx, head)
	if err != nil {
		return err
	}
	edited, err := k.Git.Edited(ctx, head, pinned.Files)
	if err != nil {
		return err
	}
	touched, err := k.Fleet.Render(ctx, edited, nil)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range touched {
		if t.Fault != "" {
			return proposal.Refuse("the target %s does not render with the pinned image: %s", t.Name, t.Fault)
		}
		names = append(names, t.Name)
	}
	before, err := k.launches(ctx, followed, names)
	if err != nil {
		return err
	}
	for _, t := range touched {
		for pool, launch := range t.Launches {
			id := rollout.ID{Target: t.Name, Pool: pool}
			is := slices.ContainsFunc(pinned.Places, func(p PinnedPool) bool { return p.ID == id })
			switch was := before[id.String()]; {
			case !is && was != launch:
				return proposal.Refuse("%s would launch something else too with the pinned image", id)
			case is && was == launch:
				return proposal.Refuse("%s would launch the same as now with the pinned image, because something else now decides what it launches", id)
			}
		}
	}
	return nil
}

// pinBody returns the text of the pull request.
func (k *kind) pinBody(e *Entry, pinned Pinned) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("A FleetRollout stopped what AWS answered to a lookup while %s was followed, such as a newly published image: weir does not roll it out further. No commit changed what these pools launch, so this reverts none. Merging this pins the version that they ran before.\n", k.Words().Code(wording.Short(e.Revision)))
	k.evidence(&b, e)
	say("Written values:\n")
	for i, p := range pinned.Places {
		if i == proposal.Evidence {
			say("- and %d more", len(pinned.Places)-i)
			break
		}
		say("- %s: %s is %s, at %s", k.Words().Code(p.String()), k.Words().Code(p.Field), k.Words().Code(p.Value), k.Words().Code(p.At))
	}
	if len(pinned.Left) > 0 {
		say("\nNot written:\n")
		for i, p := range pinned.Left {
			if i == proposal.Evidence {
				say("- and %d more", len(pinned.Left)-i)
				break
			}
			say("- %s: %s", k.Words().Code(p.String()), k.Words().Code(p.Text))
		}
	}
	say("\nA pinned pool gets nothing newer: remove the pin once a good version exists. weir opens only one pull request for this. It closes this one once these pools launch something else.")
	return b.String() + proposal.Page(k.PageURL)
}

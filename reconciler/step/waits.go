package step

import "strings"

// Wait is a hold in words, as all texts show it.
type Wait struct {
	Hold Hold
	// For names what steps wait for. Ends names who or what ends the wait, unless a step's HeldEnds
	// is more specific. TARGET and DIGEST stand for names.
	For, Ends string
}

// Waits are all holds, each once: a new hold needs a line here, and one in
// deploy/docs/guides/holds.md, which tests compare.
var Waits = []Wait{
	{HeldPaused, "the end of their pause in Git", "a commit without the pause"},
	{HeldSuspended, "the end of a suspension", "`weir resume TARGET`, or its time; in report mode the configuration"},
	{HeldConflict, "a decision on who owns the resource", "`weir adopt`, or another name in Git"},
	{HeldPruneLimit, "an approval, as more would be deleted than the limit allows", "`weir approve DIGEST`, or a commit that takes it back"},
	{HeldApproval, "an approval", "`weir approve DIGEST`"},
	{HeldWindow, "a window", "the window, or `weir reconcile TARGET --override-window`"},
	{HeldWave, "an earlier wave", "what comes before it, as it converges and bakes"},
	{HeldGate, "a gate between waves", "the gate, once it passes; a commit that changes the FleetRollout"},
	{HeldRolloutLimit, "other rollouts to end", "the other rollouts"},
	{HeldPolicy, "what the configuration demands", "a commit that has it, or a change of weir's configuration"},
	{HeldPreflight, "what new machines need and AWS does not have", "a commit that corrects the name, or the resource, once it is there; `weir approve DIGEST` insists"},
	{HeldControlPlane, "the control plane", "the control plane, once it is ready and on that version: weir upgrades none"},
	{HeldWaiting, "an answer of Git or AWS", "weir, once Git and AWS have answered"},
	{HeldStopped, "a decision: another weir is ahead, AWS does not keep the value, or the rollout failed", "a commit that changes the same, or `weir reconcile TARGET --retry`"},
}

// WaitOf returns the line of a hold. An unknown hold, as from a newer weir, waits for its own name.
func WaitOf(h Hold) Wait {
	for _, w := range Waits {
		if w.Hold == h {
			return w
		}
	}
	return Wait{Hold: h, For: string(h)}
}

// Ends names who or what ends the hold of a step of a target, empty if that is unknown or nothing
// holds it.
func (s Step) Ends(target string) string {
	if s.HeldEnds != "" || s.Held == "" {
		return s.HeldEnds
	}
	return strings.NewReplacer("`", "", "TARGET", target).Replace(WaitOf(s.Held).Ends)
}

package step

import "strings"

// Wait describes a hold for people. All texts use it.
type Wait struct {
	Hold Hold
	// For describes what steps wait for. Ends describes who or what ends the wait, unless a step's
	// HeldEnds is more specific. TARGET and DIGEST are placeholders.
	For, Ends string
}

// Waits lists all holds, each once. A new hold needs a line here and in
// deploy/docs/guides/holds.md, which tests compare.
var Waits = []Wait{
	{HeldPaused, "the end of a pause in Git", "a commit without the pause"},
	{HeldSuspended, "the end of a suspension", "`weir resume TARGET`, or the end of the suspension; in report mode a change of the configuration"},
	{HeldConflict, "a decision on who owns the resource", "`weir adopt`, or another name in Git"},
	{HeldPruneLimit, "an approval, because the plan deletes more than the limit allows", "`weir approve DIGEST`, or a commit that reverts the deletion"},
	{HeldApproval, "an approval", "`weir approve DIGEST`"},
	{HeldWindow, "a window", "the window, or `weir reconcile TARGET --override-window`"},
	{HeldWave, "an earlier wave", "the earlier waves, once they have converged and baked"},
	{HeldGate, "a gate between waves", "the gate, once it passes, or a commit that changes the FleetRollout"},
	{HeldRolloutLimit, "other rollouts to end", "the other rollouts"},
	{HeldPolicy, "the waves that the configuration requires", "a commit with such a FleetRollout, or a change of weir's configuration"},
	{HeldPreflight, "a resource that new machines need and AWS does not have", "a commit that corrects the name, or the resource once it exists; `weir approve DIGEST` applies the plan anyway"},
	{HeldControlPlane, "the control plane", "the control plane, once it is ready and has that version; weir does not upgrade it"},
	{HeldWaiting, "an answer of Git or AWS", "Git and AWS, once they answer"},
	{HeldStopped, "a decision: another weir is ahead, AWS does not keep the value, or the rollout failed", "a commit that changes the same resource, or `weir reconcile TARGET --retry`"},
}

// WaitOf returns the line of a hold. For an unknown hold, such as one of a newer weir, it returns
// the hold's name.
func WaitOf(h Hold) Wait {
	for _, w := range Waits {
		if w.Hold == h {
			return w
		}
	}
	return Wait{Hold: h, For: string(h)}
}

// Ends describes who or what ends the hold of a target's step, empty if that is unknown or nothing
// holds it.
func (s Step) Ends(target string) string {
	if s.HeldEnds != "" || s.Held == "" {
		return s.HeldEnds
	}
	return strings.NewReplacer("`", "", "TARGET", target).Replace(WaitOf(s.Held).Ends)
}

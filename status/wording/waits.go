package wording

import (
	"github.com/weir-gitops/weir/reconciler/step"
)

// Wait is a kind of wait, as people are told of it everywhere: on the page, in commit
// statuses and events, and in what a pass came to. Plans name the kind alone.
type Wait struct {
	Hold step.Hold
	// For is what steps wait for, Ends who or what ends that.
	For, Ends string
}

// Waits are all kinds of waits, each once. Until when or for what in particular, a step's
// HeldReason says.
var Waits = []Wait{
	{step.HeldPaused, "the end of their pause in Git", "a commit without the pause"},
	{step.HeldSuspended, "the end of a suspension", "`weir resume`, or its time"},
	{step.HeldConflict, "somebody to say whose a resource is", "`weir adopt`, or another name in Git"},
	{step.HeldPruneLimit, "an approval, as more would be deleted than the limit allows", "`weir approve DIGEST`, or a trailer of the commit"},
	{step.HeldApproval, "an approval", "`weir approve DIGEST`"},
	{step.HeldWindow, "a window", "the window, or `weir reconcile TARGET --override-window`"},
	{step.HeldWave, "an earlier wave", "the wave as it converges, bakes and passes its gates; `weir rollout resume`, where it is paused"},
	{step.HeldRolloutLimit, "other rollouts to end", "the other rollouts"},
	{step.HeldPolicy, "what the configuration demands", "a commit that has it, or a change of weir's configuration"},
	{step.HeldControlPlane, "the control plane", "EKS, as the control plane gets there"},
	{step.HeldWaiting, "what is not known yet", "weir, once Git and AWS have answered"},
	{step.HeldStopped, "somebody, as they were stopped", "a commit that changes the same, or `weir reconcile TARGET --retry`"},
}

// WaitsFor says what steps wait for that a hold keeps; the hold's own name where it is not
// known, as that of a newer weir.
func WaitsFor(h step.Hold) string {
	for _, w := range Waits {
		if w.Hold == h {
			return w.For
		}
	}
	return Clean(string(h))
}

// Waiting says what n steps wait for, and until when or for what in particular.
func Waiting(n int, h step.Hold, reason string) string {
	verb := " wait for "
	if n == 1 {
		verb = " waits for "
	}
	text := Count(n, "step") + verb + WaitsFor(h)
	if reason != "" {
		text += ": " + Clean(reason)
	}
	return text
}

package model

import (
	"slices"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// One commit causes at most one rollout of a pool, and another one if somebody has put machines
// back by hand. weir stops if that happens again and again, for example because another weir has
// not seen the newer commit. The process remembers the rollouts that it started, and AWS lists all
// others.
const (
	// mostRollouts limits the rollouts that one process starts from one commit to one configuration
	// of a pool within refusals.RolloutsFor. It also limits the creations of a pool that keeps
	// disappearing, within observed.Lately.
	mostRollouts = 3
	// mostDisplaced limits the refreshes to one configuration, within observed.Lately, that were
	// followed by a refresh to another configuration. AWS lists them. It counts refreshes of any
	// origin and any commit.
	mostDisplaced = 3
)

// Made is the key under which Memory.Refusals counts creations of a pool.
const Made = "made"

// started counts the rollouts of a pool that this process started within a period.
func started(memory Memory, policy Policy, commit content.Commit, now time.Time, pool *intent.Pool, rollout string, within time.Duration) int {
	return memory.Refusals.Started(refusals.RolloutKey(policy.Target, pool.Key.String(), commit.Revision, rollout), within, now)
}

// TimesUndone returns the number of rollouts of a resource to the desired configuration if
// something must be undoing them, else 0. It counts rollouts that this process started, and
// rollouts listed by AWS that a rollout to another configuration displaced.
func (in Input) TimesUndone(pool *intent.Pool, rollout string, displaced int) int {
	own := started(in.Memory, in.Policy, in.Commit, in.Now, pool, rollout, refusals.RolloutsFor)
	if own < mostRollouts && displaced < mostDisplaced || in.Memory.Refusals.Retry[pool.Key.String()] {
		return 0
	}
	return max(own, displaced)
}

// Undone reports whether TimesUndone finds so many rollouts that weir starts no further one.
func (c *Work) Undone(pool *intent.Pool, what, rollout string, displaced int) bool {
	times := c.In.TimesUndone(pool, rollout, displaced)
	if times > 0 {
		c.contest(pool, what+" was rolled to what Git wants "+strconv.Itoa(times)+" times, and something changed it back every time; weir does not roll it again")
	}
	return times > 0
}

// Lost reports whether a pool was created so often that something must be deleting it, for example
// another weir at a commit without the pool.
func (c *Work) Lost(pool *intent.Pool, what string) bool {
	own := started(c.In.Memory, c.In.Policy, c.In.Commit, c.In.Now, pool, Made, observed.Lately)
	if own < mostRollouts || c.In.Memory.Refusals.Retry[pool.Key.String()] {
		return false
	}
	c.contest(pool, what+" was made "+strconv.Itoa(own)+" times for this commit, and something deleted it every time; weir does not create it again")
	return true
}

// contest reports that. weir then also creates no resources that only the rollout needs.
func (c *Work) contest(pool *intent.Pool, summary string) {
	c.Contested = true
	c.Note(diag.Error, pool, nil, "rollout-contested", summary, "")
}

// WithoutVersions returns the steps, except those that make a version of a template.
func WithoutVersions(steps []step.Step) []step.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step.Step) bool { return s.About().Makes != "" })
}

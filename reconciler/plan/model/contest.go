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

// One commit makes at most one rollout of a pool. It makes another if somebody has put machines back
// by hand. But weir stops answering if that happens again and again, as with another weir that has
// not seen the newer commit. weir remembers what this process has started, and AWS lists what others
// have started.
const (
	// mostRollouts bounds the rollouts that one process starts from one commit to one configuration
	// of a pool within refusals.RolloutsFor. A pool that keeps disappearing is recreated as often within
	// Lately.
	mostRollouts = 3
	// mostDisplaced bounds the refreshes to one configuration that AWS lists within Lately and that
	// a refresh to another configuration followed. It counts refreshes of any origin and any commit.
	mostDisplaced = 3
)

// Made is the key under which the creation of a pool is remembered.
const Made = "made"

// started counts the rollouts that this process started within a time.
func started(memory Memory, policy Policy, commit content.Commit, now time.Time, pool *intent.Pool, rollout string, within time.Duration) int {
	return memory.Refusals.Started(refusals.RolloutKey(policy.Target, pool.Key.String(), commit.Revision, rollout), within, now)
}

// TimesUndone returns how often a resource has been rolled to the wanted configuration if that is
// so often that something else must be at work, else 0: by this process, or displaced as often
// by a rollout to another configuration, as AWS lists them.
func (in Input) TimesUndone(pool *intent.Pool, rollout string, displaced int) int {
	own := started(in.Memory, in.Policy, in.Commit, in.Now, pool, rollout, refusals.RolloutsFor)
	if own < mostRollouts && displaced < mostDisplaced || in.Memory.Refusals.Retry[pool.Key.String()] {
		return 0
	}
	return max(own, displaced)
}

// Undone reports whether TimesUndone finds so many rollouts that no further one is started.
func (c *Work) Undone(pool *intent.Pool, what, rollout string, displaced int) bool {
	times := c.In.TimesUndone(pool, rollout, displaced)
	if times > 0 {
		c.contest(pool, what+" was rolled to what Git wants "+strconv.Itoa(times)+" times, and something changed it back every time; weir does not roll it again")
	}
	return times > 0
}

// Lost reports whether a pool was made so often that something must delete it, which a
// weir does that knows of a commit without it.
func (c *Work) Lost(pool *intent.Pool, what string) bool {
	own := started(c.In.Memory, c.In.Policy, c.In.Commit, c.In.Now, pool, Made, observed.Lately)
	if own < mostRollouts || c.In.Memory.Refusals.Retry[pool.Key.String()] {
		return false
	}
	c.contest(pool, what+" was made "+strconv.Itoa(own)+" times for this commit, and something deleted it every time; weir does not create it again")
	return true
}

// contest says so. Resources that only the rollout needs are not made either.
func (c *Work) contest(pool *intent.Pool, summary string) {
	c.Contested = true
	c.Note(diag.Error, pool, nil, "rollout-contested", summary, "")
}

// WithoutVersions returns the steps, except those that make a version of a template.
func WithoutVersions(steps []step.Step) []step.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step.Step) bool { return s.About().Makes != "" })
}

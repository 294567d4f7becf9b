package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// One commit makes at most one rollout of a pool. It makes another where somebody has
// put machines back to something else by hand, and who does that again and again, as
// another weir would that knows of no newer commit, is not answered for ever: what this
// process has started is remembered, and what others have, AWS lists.
const (
	// mostRollouts bounds those that one process starts from one commit to one
	// configuration of a pool within rolloutsFor. A pool that is gone each time is made
	// anew as often within Lately.
	mostRollouts = 3
	rolloutsFor  = 6 * time.Hour
	// mostDisplaced bounds the refreshes to one configuration that AWS lists of the
	// time Lately and that one to another configuration followed, whoever started them
	// and for whatever commit.
	mostDisplaced = 3
)

// RolloutKey is what a rollout is remembered by.
func RolloutKey(target, pool, revision, rollout string) string {
	return strings.Join([]string{target, pool, revision, rollout}, "\x00")
}

// sum stands for what a wanted version holds: somebody who changes it back may have
// a further version of the same made each time.
func (w wantedVersion) sum() string {
	switch {
	case w.want == nil:
		return w.ref.Name + " " + w.version()
	case w.want.keepsImage():
		return w.want.source
	}
	return w.want.body()
}

// refreshed stands for what a refresh of a group brings it to.
func (w wantedVersion) refreshed(policy *intent.MixedInstances) string {
	return content.ShortHash([]byte(w.sum()), content.Canonical(policy))
}

// updated stands for what an update of a nodegroup brings it to. One commit may need
// several, a minor version of Kubernetes each.
func (w wantNodegroup) updated(u step.UpdateNodegroupVersion) string {
	sum := ""
	if w.hasTemplate {
		sum = w.version.sum()
	}
	return content.ShortHash([]byte(sum), content.Canonical([]any{w.pool.Nodegroup, u.Version, u.ReleaseVersion, u.Template != nil}))
}

// Begun adds the start of a rollout to those that are remembered.
func (m *Memory) Begun(key string, now time.Time) {
	if m.Rollouts == nil {
		m.Rollouts = map[string][]time.Time{}
	}
	m.Rollouts[key] = append(slices.Clone(m.Rollouts[key]), now)
}

// ForgetRollouts forgets those that were started too long ago to matter.
func (m *Memory) ForgetRollouts(now time.Time) {
	maps.DeleteFunc(m.Rollouts, func(_ string, starts []time.Time) bool {
		return now.Sub(starts[len(starts)-1]) >= rolloutsFor
	})
}

// made is what the creation of a pool is remembered by.
const made = "made"

// started counts the rollouts that this process started within a time.
func (in Input) started(pool *intent.Pool, rollout string, within time.Duration) int {
	n := 0
	for _, at := range in.Memory.Rollouts[RolloutKey(in.Policy.Target, pool.Key.String(), in.Commit.Revision, rollout)] {
		if in.Now.Sub(at) < within {
			n++
		}
	}
	return n
}

// undone reports whether a group has been rolled to the wanted configuration so
// often that something else must be at work.
func (c groups) undone(pool *intent.Pool, have observed.Group, latest observed.Refresh, version wantedVersion) bool {
	if c.in.Memory.Retry[pool.Key.String()] {
		return false
	}
	wanted := func(r observed.Refresh) bool {
		return version.resolves(r.Template) && samePolicy(r.MixedInstancesPolicy, pool.Group.MixedInstancesPolicy)
	}
	displaced, later := 0, wanted(latest)
	for _, r := range latest.Earlier {
		if wanted(r) && !later && c.in.Now.Sub(r.StartedAt) < observed.Lately {
			displaced++
		}
		later = wanted(r)
	}
	own := c.in.started(pool, version.refreshed(pool.Group.MixedInstancesPolicy), rolloutsFor)
	if own < mostRollouts && displaced < mostDisplaced {
		return false
	}
	c.contest(pool, "the group "+have.Name+" was rolled to what Git wants "+strconv.Itoa(max(own, displaced))+" times, and each time something changed it back; it is not rolled again")
	return true
}

// undone is the same of a nodegroup.
func (c nodegroups) undone(w wantNodegroup, have observed.Nodegroup, steps []step.Step) bool {
	if len(steps) == 0 {
		return false
	}
	own := c.in.started(w.pool, steps[0].Rollout, rolloutsFor)
	if own < mostRollouts || c.in.Memory.Retry[w.pool.Key.String()] {
		return false
	}
	c.contest(w.pool, "the nodegroup "+have.Name+" was rolled to what Git wants "+strconv.Itoa(own)+" times, and each time something changed it back; it is not rolled again")
	return true
}

// lost reports whether a pool was made so often that something must delete it, which a
// weir does that knows of a commit without it.
func (c *work) lost(pool *intent.Pool, what string) bool {
	own := c.in.started(pool, made, observed.Lately)
	if own < mostRollouts || c.in.Memory.Retry[pool.Key.String()] {
		return false
	}
	c.contest(pool, what+" was made "+strconv.Itoa(own)+" times for this commit, and each time something deleted it; it is not made again")
	return true
}

// contest says so. What only the rollout was for is not made either.
func (c *work) contest(pool *intent.Pool, summary string) {
	c.contested = true
	c.note(diag.Error, pool, nil, "rollout-contested", summary, "")
}

// withoutVersions are the steps beside those that make a version of a template.
func withoutVersions(steps []step.Step) []step.Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step.Step) bool { return s.About().Makes != "" })
}

package commits

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/wording"
)

// HeadStatus is the status that a pull request wants for its head.
type HeadStatus struct {
	Sha, Text, Link string
	State           forge.CommitState
	// Waits says that a person is waited for, fork that it comes from one: anybody
	// may open such a pull request of any commit.
	Waits, Fork bool
}

// rank orders the statuses that several pull requests want of one head, the least
// first: plans before those under way, the gravest first, then forks', then waiting
// ones.
func (h HeadStatus) rank() int {
	rank := 2
	switch {
	case h.Waits:
		return 8
	case h.State == forge.Failure:
		rank = 0
	case h.State.Final():
		rank = 1
	}
	if h.Fork {
		rank += 4
	}
	return rank
}

// SetHead says what a pull request wants of its head. Its earlier head goes back to the
// other pull requests with that head, or its pending status is closed.
func (c *Commits) SetHead(source string, number int64, want HeadStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.queues[source].box.Nudge()
	if c.heads[source] == nil {
		c.heads[source] = map[int64]HeadStatus{}
	}
	last := c.heads[source][number]
	if want.State == forge.Pending && !want.Waits {
		want.Fork = last.Fork // which the plan shows too
	}
	c.heads[source][number] = want
	c.leave(source, number, last.Sha, want.Sha, "superseded by "+wording.Short(want.Sha))
	c.choose(source, want.Sha)
}

// Settle says that a pull request ended.
func (c *Commits) Settle(source string, number int64, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.heads[source][number]
	delete(c.heads[source], number)
	c.leave(source, number, last.Sha, "", why)
	c.queues[source].box.Nudge()
}

// leave takes a pull request's statuses off the commits other than now: off its
// last head, and off those that an earlier process wrote to.
func (c *Commits) leave(source string, number int64, last, now, why string) {
	for _, t := range c.tracks[source] {
		if t.Pull == number && t.SHA != now {
			if !c.choose(source, t.SHA) {
				c.close(t, why)
			}
			t.recovered = time.Time{}
		}
	}
	if last != "" && last != now {
		c.choose(source, last) // the status there may be forgotten
	}
}

// choose sets the status of a commit to the first in rank of those that pull
// requests want there, and reports whether there is any.
func (c *Commits) choose(source, sha string) bool {
	var number int64
	var best HeadStatus
	for n, h := range c.heads[source] {
		if h.Sha == sha && (number == 0 || cmp.Or(cmp.Compare(h.rank(), best.rank()), cmp.Compare(n, number)) < 0) {
			number, best = n, h
		}
	}
	if number == 0 {
		return false
	}
	i := slices.IndexFunc(c.tracks[source], func(t *track) bool { return t.SHA == sha })
	if i < 0 {
		i = len(c.tracks[source])
		c.tracks[source] = append(c.tracks[source], &track{Source: source, SHA: sha, Targets: map[string]*targetTrack{}, Contexts: map[string]*contextTrack{}})
	}
	t, limits := c.tracks[source][i], c.queues[source].forge.Profile().Limits
	t.Pull, t.recovered = number, time.Time{}
	status := forge.CommitStatus{
		Context: contextName(c.o.Instance+"/plan", limits.Context), State: best.State, TargetURL: best.Link, Description: visible.Clip(visible.Line(best.Text), limits.Description),
	}
	c.wantStatus(t, status)
	if ct := t.Contexts[status.Context]; ct.Stays != best.Waits {
		ct.Stays, c.changed = best.Waits, true
	}
	return true
}

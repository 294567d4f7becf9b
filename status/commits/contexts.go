package commits

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/forge"
)

// refresh sets what the contexts of a source's current commit should say.
func (c *Commits) refresh(t *track) {
	for name := range t.Targets {
		c.refreshTarget(t, name)
	}
	c.refreshAggregate(t)
}

func (c *Commits) refreshTarget(t *track, name string) {
	state, text := t.Targets[name].State, t.Targets[name].Description
	if t.Fault != "" && state == forge.Pending {
		state, text = forge.Failure, t.Fault
	}
	c.want(t, c.targetContext(t.Source, name), state, text, name)
}

// sum finds the status over all targets out again, if a report may have changed it: once for the reports of a pass, which are as many as targets.
func (c *Commits) sum(t *track) {
	if t.unsummed {
		c.refreshAggregate(t)
	}
}

func (c *Commits) refreshAggregate(t *track) {
	t.unsummed = false
	state, text := aggregate(t.Targets)
	if t.Fault != "" {
		state, text = forge.Failure, t.Fault
	}
	c.want(t, c.aggregateContext(t.Source), state, text, "")
}

func (c *Commits) aggregateContext(source string) string {
	return contextName(c.o.Instance+"/apply", c.queues[source].forge.Profile().Limits.Context)
}

func (c *Commits) targetContext(source, target string) string {
	return contextName(c.o.Instance+"/apply/"+target, c.queues[source].forge.Profile().Limits.Context)
}

// want sets a context. A status that is wanted already keeps its position and its
// tries.
func (c *Commits) want(t *track, name string, state forge.CommitState, text, target string) {
	c.wantStatus(t, forge.CommitStatus{
		Context: name, State: state, TargetURL: c.link(target),
		Description: visible.Clip(visible.Line(text), c.queues[t.Source].forge.Profile().Limits.Description),
	})
}

func (c *Commits) wantStatus(t *track, status forge.CommitStatus) {
	name := status.Context
	old := t.Contexts[name]
	if old != nil && old.Want == status {
		return
	}
	t.Contexts[name] = old.next(status)
	c.changed = true
}

// next returns the context with another status; nil stands for a context without a status.
func (c *contextTrack) next(want forge.CommitStatus) *contextTrack {
	if c == nil {
		return &contextTrack{Want: want}
	}
	return &contextTrack{Want: want, Shown: c.Shown, late: c.late}
}

func (c *Commits) link(target string) string {
	if c.o.PageURL == "" {
		return ""
	}
	base := strings.TrimSuffix(c.o.PageURL, "/")
	if target == "" {
		return base + "/"
	}
	return base + "/targets/" + url.PathEscape(target)
}

// close ends the pending statuses on a commit without a verdict.
func (c *Commits) close(t *track, why string) {
	c.sum(t)
	for name, ct := range t.Contexts {
		if t.Pull != 0 && ct.Want.State == forge.Pending && !ct.Shown && !ct.Stays {
			delete(t.Contexts, name) // no reader saw it
			c.changed = true
			continue
		}
		if ct.Want.State == forge.Pending && (!ct.Stays || why != Interrupted) {
			s := ct.Want
			s.State, s.Description = forge.Errored, visible.Clip(visible.Line(why), c.queues[t.Source].forge.Profile().Limits.Description)
			*ct = *ct.next(s)
			c.changed = true
		}
	}
}

const Interrupted = "interrupted; weir continues after its restart"

// Run posts the wanted statuses until ctx ends, to all forges in parallel. Call Close afterwards.
func (c *Commits) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for source, q := range c.queues {
		wg.Go(func() { c.work(ctx, source, q, false) })
	}
	wg.Wait()
	return nil
}

// Leave keeps the wanted statuses in the journal, for the next Commits to post. Run must
// have returned.
func (c *Commits) Leave() error { return c.save(true) }

// Close leaves nothing pending: it marks the unfinished ones as interrupted and
// posts all wanted statuses, until it is done or ctx ends. A status that could not be
// posted stays in the journal for the next process. Run must have returned.
func (c *Commits) Close(ctx context.Context) error {
	c.mu.Lock()
	for _, list := range c.tracks {
		for _, t := range list {
			c.close(t, Interrupted)
		}
	}
	c.mu.Unlock()
	var wg sync.WaitGroup
	for source, q := range c.queues {
		wg.Go(func() { c.work(ctx, source, q, true) })
	}
	wg.Wait()
	err := c.save(true)
	if n := c.Unwritten(); n > 0 {
		err = errors.Join(err, fmt.Errorf("post commit statuses: %d left for the next start", n))
	}
	return err
}

package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/wording"
)

// conductor composes the desired state of one configuration from Git. Its fields belong to its goroutine. A
// reload may use them while that goroutine does not run.
type conductor struct {
	conductorOptions
	// asked is the time of the first request to the sources.
	asked time.Time
	// begun contains, by source, the revision whose commit statuses were started or refused.
	begun map[string]string
	// renders contains the last reported commit of each target's render.
	renders map[string]string
	// shown lists the targets on the page.
	shown []fleet.Target
}

// conductorOptions lists the parts of the daemon that a conductor uses.
type conductorOptions struct {
	config    *config.Config
	followers follow.Sources
	fleet     *fleet.Fleet
	publisher *publisher
	webhooks  *webhooks
	// base receives the base that pull requests are compared with.
	base     *atomic.Pointer[fleet.Base]
	requests *requests
	news     signal
	passes   *passes
	// planAccounts contains the accounts for plans of pull requests.
	planAccounts *accounts.Set
	member       *membership.Member
	current      *current.State
	metrics      *metrics.Metrics
	tracing      *telemetry.Tracing
	secrets      *redact.Registry
	log          *slog.Logger
	// gone receives the names of removed targets. loss reports whether all writes are held.
	gone func(target string)
	loss func()
}

func newConductor(o conductorOptions) *conductor {
	return &conductor{conductorOptions: o, begun: map[string]string{}}
}

// conduct repeatedly composes the desired state from Git, and makes the scopes' loops pass over it. It
// waits for neither AWS nor a forge: the daemon is healthy as long as this loop runs.
func (c *conductor) conduct(ctx context.Context) error {
	defer c.fleet.Wait()
	look := time.NewTicker(silenceCheck)
	defer look.Stop()
	for {
		if err := c.compose(ctx); err != nil && ctx.Err() == nil {
			c.log.Error("cannot determine the desired state", "error", err)
		}
		timer := time.NewTimer(c.config.Interval)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-look.C:
				c.current.Targets.SetUnanswered(c.passes.unanswered(time.Now()))
				continue
			case <-c.requests.wakeup:
			case <-c.fleet.Ended():
			case <-timer.C:
			}
			due = true
		}
		timer.Stop()
	}
}

// silenceCheck is the interval between checks whether AWS answers.
const silenceCheck = 5 * time.Second

// renderPatience is the maximum time that a composition waits for quick renders.
const renderPatience = time.Second

// plansUnused is the time without plans after which the planners of pull requests release an account.
const plansUnused = time.Hour

// compose composes the desired state from Git.
func (c *conductor) compose(ctx context.Context) error {
	all := c.requests.all.Swap(false)
	c.current.Heartbeat.Beat(3 * c.config.Interval)
	c.current.Activity.ForgetRemoved()
	follow.HideCredentials(c.secrets, c.config)
	if c.requests.sourcesDue.Swap(false) {
		c.nudgeSources()
	}
	if c.asked.IsZero() {
		c.asked = time.Now()
	}
	views, err := c.followers.Views(ctx, c.asked, c.news)
	if err != nil {
		return err
	}
	ctx, s := c.tracing.Tracer().Start(ctx, "compose")
	defer s.End()
	c.passes.read(func(m *memory) { c.fleet.Judge(m.verdicts()) })
	now, err := c.fleet.Advance(ctx, views, renderPatience)
	if err != nil {
		return err
	}
	c.planAccounts.ForgetUnused(plansUnused)
	c.remember(views)
	c.rule(now.Batches, views)
	c.announce(now)
	c.reportRenders(now.Rendering)
	for name, v := range views {
		if !slices.ContainsFunc(now.Rendering, func(r fleet.Rendering) bool { return r.Source == name }) {
			c.current.Sources.SetSubject(name, v.Snapshot.Revision, v.Snapshot.Subject)
		}
	}
	c.loss() // even if every pass waits for AWS
	c.passes.update(now, all)
	return nil
}

// nudgeSources makes every source read its repository and its pull requests.
func (c *conductor) nudgeSources() {
	for name, f := range c.followers {
		if !f.Leads() {
			continue
		}
		f.Git.Nudge()
		if w := c.publisher.review.watcher(name); w != nil {
			w.Changed(0)
		}
	}
}

// remember stores the base that pull requests and drafts are compared with.
func (c *conductor) remember(views map[string]fleet.View) {
	if c.publisher.review.learned() {
		c.webhooks.set() // they update the webhooks to ignore
	}
	base := c.fleet.Base(views)
	if c.base.Swap(base) != base {
		c.publisher.review.moved()
	}
}

// rule adds information about the commits of sources to targets: the order of the commits, and the
// deletions that trailers of merge commits permit.
func (c *conductor) rule(batches []reconciler.Batch, views map[string]fleet.View) {
	c.publisher.review.reread()
	for i := range batches {
		for j := range batches[i].Targets {
			d := &batches[i].Targets[j]
			if f := c.followers[d.Source]; f != nil {
				d.Ancestry = f.Line
			}
			if w := c.publisher.review.watcher(d.Source); w != nil {
				w.Rule(d, views[d.Source].Snapshot)
				w.Images(d, views[d.Source].Snapshot)
			}
		}
	}
}

// reportRenders shows the slow renders on the page, and logs when each one starts to be slow and when it
// ends. Their targets keep their last render.
func (c *conductor) reportRenders(slow []fleet.Rendering) {
	published := map[string]current.Rendering{}
	logged := map[string]string{}
	for _, r := range slow {
		published[r.Target] = current.Rendering{Revision: r.Revision, Since: r.Since}
		if logged[r.Target] = r.Revision; c.renders[r.Target] != r.Revision {
			c.log.Info("a render is slow; the target keeps its last render until it ends", "target", r.Target, "revision", wording.Short(r.Revision), "since", r.Since)
		}
	}
	for target := range c.renders {
		if logged[target] == "" {
			c.log.Info("a slow render has ended", "target", target)
		}
	}
	c.renders = logged
	c.current.Targets.SetRendering(published)
}

// announce reports a composition to the state and the forges before passes start on it.
func (c *conductor) announce(now *fleet.Composition) {
	if targets := withUnlisted(c.shown, now.Targets); !slices.Equal(c.shown, targets) {
		c.configure(targets)
	}
	spoken := c.requests.spoken()
	defer c.replay(spoken)
	if c.publisher.commits == nil {
		return
	}
	for source := range spoken {
		delete(c.begun, source)
	}
	refused := c.announceRefused()
	for _, r := range now.Revisions {
		if refused[r.Source] || c.begun[r.Source] == r.SHA {
			continue
		}
		c.begun[r.Source] = r.SHA
		c.publisher.commits.Begin(commits.Revision{Source: r.Source, SHA: r.SHA, Touched: slices.Concat(r.Touched, r.Faulty), Removed: r.Removed})
	}
}

// announceRefused reports refused commits to the forges, and returns their sources.
func (c *conductor) announceRefused() map[string]bool {
	out := map[string]bool{}
	for name, f := range c.followers {
		sha, why := f.Refused()
		if sha == "" {
			continue
		}
		out[name] = true
		if refused := "refused " + sha; c.begun[name] != refused {
			c.begun[name] = refused
			c.publisher.commits.Begin(commits.Revision{Source: name, SHA: sha, Err: fmt.Errorf("not applied: %w", why)})
		}
	}
	return out
}

// replay posts the reports of newly owned sources to the forges, after it has announced the commit.
func (c *conductor) replay(sources map[string]bool) {
	if len(sources) == 0 {
		return
	}
	c.passes.replayReports(func(r *plan.Report) {
		if sources[r.Source] {
			c.publisher.report(context.Background(), r)
		}
	})
}

// withUnlisted returns the current targets. It adds earlier targets that may still exist in a source that
// cannot be read.
func withUnlisted(before, targets []fleet.Target) []fleet.Target {
	all := slices.Clone(targets)
	for _, old := range before {
		if !hasTarget(targets, old.Name) && mayHave(targets, old.Name) {
			all = append(all, old)
		}
	}
	slices.SortFunc(all, func(a, b fleet.Target) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func hasTarget(targets []fleet.Target, name string) bool {
	return slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.Name == name })
}

// mayHave reports whether a target that is only known as a pattern may have a name.
func mayHave(targets []fleet.Target, name string) bool {
	return slices.ContainsFunc(targets, func(t fleet.Target) bool { return t.Unlisted && targetspec.Overlap(t.Name, name) })
}

// configure shows the existing sources and targets, and forgets all others.
func (c *conductor) configure(targets []fleet.Target) {
	for _, old := range c.shown {
		if !hasTarget(targets, old.Name) {
			c.metrics.RemoveTarget(old.Name)
			c.gone(old.Name)
			if c.member != nil {
				c.member.Reports.Remove(old.Name)
			}
			c.publisher.review.forget(old.Name)
		}
	}
	if statuses := c.publisher.commits; statuses != nil {
		for _, name := range statuses.Unfinished() { // includes targets that disappeared while weir was stopped
			if !hasTarget(targets, name) && !mayHave(targets, name) {
				statuses.Forget(name)
			}
		}
	}
	var sources []current.Source
	for _, s := range c.config.Sources {
		shown := current.Source{Name: s.Name, URL: s.URL, Ref: follow.RefText(s.Ref)}
		for _, f := range c.config.Forges {
			if f.Source == s.Name && !f.Profile().WebhooksOnly {
				shown.WebURL, shown.Forge = f.URL, f.Type
			}
		}
		sources = append(sources, shown)
	}
	shown := make([]current.Target, len(targets))
	for i, t := range targets {
		shown[i] = current.Target{Name: t.Name, Source: t.Source, Path: t.Path, Account: t.Account, Region: t.Region}
	}
	c.current.Configure(sources, shown)
	registerNames(c.metrics, sources, shown)
	c.shown = targets
}

package app

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/current"
)

// daemon implements gates.Daemon, the daemon from the view of commands.
type daemon struct {
	current  *current.State
	recorder *gates.Recorder
	passes   *passes
	rollouts *rollouts
	requests *requests
	member   *membership.Member // nil for a single daemon
	// retries sends requests to retry to the owners of targets, if there are several daemons.
	retries retryRequests
}

// Knows reports whether there is a target with the name.
func (d daemon) Knows(target string) bool {
	_, ok := d.current.Targets.Find(target)
	return ok
}

// Targets returns the names of all targets.
func (d daemon) Targets() (out []string) {
	for _, t := range d.current.Targets.All() {
		out = append(out, t.Name)
	}
	return out
}

// Pools returns the last seen pools of a target.
func (d daemon) Pools(target string) []string { return poolsOf(d.current.Targets, target) }

func poolsOf(targets *current.Targets, target string) (out []string) {
	t, _ := targets.Find(target)
	for _, p := range t.Pools {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

// Planned returns the plans with a digest. After a newer commit is available, and before its pass, an
// approval permits nothing of the earlier commit: partly applied approvals of that commit are ended first,
// so that they do not count as this approval.
func (d daemon) Planned(digest string) (plans []gates.Grant, behind []string, err error) {
	records := d.recorder.Read()
	var ended []gates.Grant
	d.passes.read(func(m *memory) { plans, behind, ended = m.planned(digest, records) })
	if len(ended) > 0 {
		err = d.passes.approvals.supersede(ended)
	}
	return plans, behind, err
}

// Pass starts a pass, and ends the passes in progress over targets in interrupt.
func (d daemon) Pass(interrupt []string) {
	d.passes.end(func(l *loop) bool {
		return slices.ContainsFunc(interrupt, func(target string) bool { return slices.Contains(l.targets, target) })
	})
	d.requests.passAll()
}

// Reconcile starts a pass now. The sources read Git at its start. If they find a new commit, another pass
// starts.
func (d daemon) Reconcile(targets []string, retry bool) ([]string, error) {
	all := d.current.Targets.All()
	all = slices.DeleteFunc(all, func(t current.TargetState) bool { return len(targets) > 0 && !slices.Contains(targets, t.Name) })
	var out []string
	for _, t := range all {
		out = append(out, t.Name)
	}
	if retry {
		if err := d.retry(out); err != nil {
			return nil, err
		}
	}
	if d.member != nil {
		return out, d.member.Requests.Send(context.Background(), membership.Request{Targets: out})
	}
	d.requests.readSources()
	return out, nil
}

// retry retries the failed steps of targets. It first informs the owners of the targets, and then the
// members that conduct rollouts. These restart with the reports that the owners send from then on.
func (d daemon) retry(targets []string) error {
	if d.member != nil {
		if err := d.retries.put(targets); err != nil {
			return err
		}
	} else {
		for _, name := range targets {
			d.passes.retry(name, d.Pools(name))
		}
	}
	for _, name := range targets {
		if err := d.rollouts.retry(name); err != nil {
			return err
		}
	}
	d.rollouts.due.send()
	return nil
}

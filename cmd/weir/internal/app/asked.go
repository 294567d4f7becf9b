package app

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/cmd/weir/internal/crew"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/board"
)

// Knows reports whether there is a target of the name.
func (d daemon) Knows(target string) bool {
	_, ok := d.app.board.Target(target)
	return ok
}

// Targets returns the names of all targets.
func (d daemon) Targets() (out []string) {
	for _, t := range d.app.board.Targets() {
		out = append(out, t.Name)
	}
	return out
}

// Pools returns the pools that the target was last seen to have.
func (d daemon) Pools(target string) (out []string) {
	t, _ := d.app.board.Target(target)
	for _, p := range t.Pools {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

// Planned are the plans that a digest stands for now. Who approves one after a newer commit is
// known, and before its pass, approves nothing of the earlier commit: what had begun of that ends
// first, and is not taken for the approval.
func (d daemon) Planned(digest string) (plans []gates.Grant, behind []string, err error) {
	p := d.app.passes
	records := d.app.book.Read()
	p.mu.Lock()
	m := &p.memory
	plans = gates.Approved(gates.Approval{Digest: digest}, m.before)
	var ended []gates.Grant
	for _, g := range plans {
		for _, key := range m.scopesOf(g.Target) {
			targets := m.batches[key].Targets
			ended = append(ended, gates.Superseded(targets, m.conditions, gates.Records{Grants: slices.DeleteFunc(slices.Clone(records.Grants), func(o gates.Grant) bool { return o.Target != g.Target })})...)
			if slices.ContainsFunc(targets, func(t reconciler.Desired) bool {
				return t.Policy.Target == g.Target && t.Commit.Revision != m.before.Reports[g.Target].Revision
			}) && !slices.Contains(behind, g.Target) {
				behind = append(behind, g.Target)
			}
		}
	}
	p.mu.Unlock()
	if len(ended) > 0 {
		err = p.supersede(ended)
	}
	return plans, behind, err
}

// Pass starts one, and ends those under way over targets.
func (d daemon) Pass(interrupt []string) {
	d.app.passes.end(func(l *loop) bool {
		return slices.ContainsFunc(interrupt, func(target string) bool { return slices.Contains(l.in, target) })
	})
	d.app.passAll()
}

// Reconcile starts a pass now. At its start the sources read Git: if they find a new commit,
// another pass starts.
func (d daemon) Reconcile(targets []string, retry bool) ([]string, error) {
	all := d.app.board.Targets()
	all = slices.DeleteFunc(all, func(t board.TargetState) bool { return len(targets) > 0 && !slices.Contains(targets, t.Name) })
	var out []string
	for _, t := range all {
		out = append(out, t.Name)
	}
	if retry {
		if err := d.retry(out); err != nil {
			return nil, err
		}
	}
	if d.app.crew != nil {
		return out, d.app.crew.Ask(context.Background(), crew.Ask{Targets: out})
	}
	d.app.sourcesDue.Store(true)
	d.app.passAll()
	return out, nil
}

// retry retries the failed steps of targets. The owners of the targets are informed first, then the
// members that conduct rollouts, which restart with the reports that the owners send from then on.
func (d daemon) retry(targets []string) error {
	if d.app.crew != nil {
		if err := (peers{d.app}).tryAgain(targets); err != nil {
			return err
		}
	} else {
		for _, name := range targets {
			d.app.passes.retry(name, d.Pools(name))
		}
	}
	for _, name := range targets {
		if err := d.app.rollouts.retry(name); err != nil {
			return err
		}
	}
	d.app.rollouts.wake()
	return nil
}

// lift forgets the commits that stopped the steps of a target, so that they no longer stop
// anything. The person who requests it knows better which weir fell behind. The caller holds mu.
func (p *passes) lift(b reconciler.Batch, target string) {
	last := p.memory.before.Reports[target]
	for i := range b.Targets {
		if d := &b.Targets[i]; d.Policy.Target == target && d.Ancestry != nil && last != nil && last.Plan != nil {
			p.app.lineages.Lift(d.Policy.Source, last.Plan.Ahead)
		}
	}
}

// retry makes the next pass try again what AWS refused of a target's pools.
func (p *passes) retry(target string, pools []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, b := range p.memory.batches {
		p.lift(b, target)
		if l := p.of[key]; l != nil && l.scope != nil && slices.ContainsFunc(b.Targets, func(d reconciler.Desired) bool { return d.Policy.Target == target }) {
			l.scope.Retry(pools)
		}
	}
}

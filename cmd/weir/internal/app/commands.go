package app

import (
	"slices"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/control"
	"github.com/weir-gitops/weir/cmd/weir/internal/fleet"
	"github.com/weir-gitops/weir/cmd/weir/internal/state"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status"
)

// memory is what passes leave for the next one, and for commands. It outlives
// reloads of the configuration.
type memory struct {
	before     control.Before
	conditions map[string]fleet.Conditions
	// awaited are the targets that others wait for.
	awaited map[string]bool
	batches []reconciler.Batch
	// unused says why approvals could not be used by the last pass, so that it is
	// said once.
	unused map[string]bool
	// busy are the targets that have something to end once they converge.
	busy map[string]bool
}

// gate has what people asked for, windows and waves hold the steps of a pass.
func (a *App) gate(c *fleet.Composition) {
	records := a.book.Read()
	a.tellLoss(records.Lost)
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.memory
	m.conditions, m.batches = c.Conditions, c.Batches
	m.awaited = map[string]bool{}
	for _, conditions := range c.Conditions {
		for _, name := range conditions.DependsOn {
			m.awaited[name] = true
		}
	}
	m.before.Keep(c.Conditions)
	m.busy = map[string]bool{}
	pending := control.Pending{Ready: map[string]control.Grant{}, Begin: a.book.Begin}
	unused := map[string]bool{}
	for _, approval := range records.Approvals {
		ready := control.Approved(approval, m.before)
		if slices.ContainsFunc(ready, func(g control.Grant) bool { return g.Digest != approval.Digest }) {
			if err := a.book.Split(approval, ready); err != nil {
				// It waits, and nothing else with it.
				text := err.Error()
				if !m.unused[text] && !unused[text] {
					a.log.Error("an approval waits until it can be written to the state directory", "digest", approval.Digest, "error", err)
				}
				unused[text] = true
				continue
			}
		}
		for _, g := range ready {
			pending.Ready[g.Target], m.busy[g.Target] = g, true
		}
	}
	m.unused = unused
	for _, g := range records.Grants {
		m.busy[g.Target] = true
	}
	for _, o := range records.Overrides {
		m.busy[o.Target] = true
	}
	control.Gate(c.Batches, c.Conditions, records, m.before, pending, time.Now())
}

// tellLoss has everybody know that all writes are held, or that they are no more.
func (a *App) tellLoss(lost *state.Loss) {
	why := ""
	if lost != nil {
		why = control.LossText(*lost)
	}
	a.board.HoldWrites(why)
	a.metrics.StateLost(lost != nil)
}

// noted takes in a report: for targets that wait for this one, and for what holds
// until it has converged.
func (a *App) noted(r *plan.Report) {
	a.mu.Lock()
	reached := a.memory.before.Standings[r.Target].Reached
	a.memory.before.Note(r)
	awaited := r.Converged() && reached != r.Revision && a.memory.awaited[r.Target]
	done := a.memory.busy[r.Target] && r.Converged()
	a.mu.Unlock()
	if done {
		if err := a.book.Done(r.Target); err != nil {
			a.log.Error("state cannot be written", "error", err)
		}
	}
	if awaited {
		a.ring()
	}
}

// daemon is the app as commands see it.
type daemon struct{ app *App }

// Knows reports whether there is a target of the name.
func (d daemon) Knows(target string) bool {
	_, ok := d.app.board.Target(target)
	return ok
}

// Pools are those that the target was last seen to have.
func (d daemon) Pools(target string) (out []string) {
	t, _ := d.app.board.Target(target)
	for _, p := range t.Pools {
		out = append(out, p.Namespace+"/"+p.Name)
	}
	return out
}

// Approved names the targets whose plan has the digest now, and has a pass start.
func (d daemon) Approved(approval control.Approval) []string {
	d.app.mu.Lock()
	made := control.Approved(approval, d.app.memory.before)
	d.app.mu.Unlock()
	var out []string
	for _, g := range made {
		out = append(out, g.Target)
	}
	d.app.ring()
	return out
}

// Reconcile has a pass start now, at whose beginning the sources look at Git:
// what they find starts another.
func (d daemon) Reconcile(targets []string, retry bool) []string {
	all := d.app.board.Targets()
	all = slices.DeleteFunc(all, func(t status.TargetState) bool { return len(targets) > 0 && !slices.Contains(targets, t.Name) })
	d.app.mu.Lock()
	batches := d.app.memory.batches
	d.app.mu.Unlock()
	var out []string
	for _, t := range all {
		out = append(out, t.Name)
		if !retry {
			continue
		}
		var pools []string
		for _, p := range t.Pools {
			pools = append(pools, p.Namespace+"/"+p.Name)
		}
		for _, b := range batches {
			if b.Scope != nil && slices.ContainsFunc(b.Targets, func(w reconciler.Desired) bool { return w.Policy.Target == t.Name }) {
				b.Scope.Retry(pools)
			}
		}
	}
	d.app.look.Store(true)
	d.app.ring()
	return out
}

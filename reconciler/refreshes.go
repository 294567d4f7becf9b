package reconciler

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// refreshMemory contains the instance refreshes that pools wait for, so that not every pass must
// read them. It also contains the refreshes that weir cancelled, because AWS does not record who
// did.
type refreshMemory struct {
	mu        sync.Mutex
	watched   map[string]model.Watched // by group
	cancelled recent[bool]             // by id
}

// known returns the refreshes of existing groups. It omits a refresh that started before its group
// was made: it belonged to an earlier group of that name.
func (m *refreshMemory) known(state *observed.State) map[string]observed.Refresh {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]observed.Refresh, len(m.watched))
	for name, w := range m.watched {
		g, there := state.Groups[name]
		if there && (w.Refresh.ID == "" || !w.Refresh.StartedAt.Before(g.CreatedAt)) {
			out[name] = w.Refresh
		}
	}
	return out
}

// keep stores the refreshes that pools of the planned targets wait for. Refreshes of other targets
// stay while their groups exist.
func (m *refreshMemory) keep(watched map[string]model.Watched, planned map[string]bool, state *observed.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, w := range m.watched {
		if g, there := state.Groups[name]; there && !planned[g.Tags[observed.TagTarget].Value] {
			watched[name] = w
		}
	}
	m.watched = watched
}

// recordStep stores the effect of a step on a group's refresh. If the effect is unknown, because the
// step failed, its answer was lost, or it is of another kind, the refresh is forgotten and the next
// pass reads it. now is for durations, and wallClock for comparisons with times of AWS.
func (m *refreshMemory) recordStep(do step.Action, instances int, res step.Result, err error, now, wallClock time.Time) {
	group := do.About().RefreshOf()
	if group == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w, known := m.watched[group]
	switch a := do.(type) {
	case step.StartRefresh:
		known = true
		w = model.Watched{Left: int32(instances), Total: int32(instances), Set: w.Set, MovedAt: now, Refresh: observed.Refresh{
			ID: res.RefreshID, Status: "Pending", Template: a.Template, MixedInstancesPolicy: a.MixedInstancesPolicy, Preferences: a.Preferences,
			StartedAt: wallClock, ReadAt: now,
		}}
	case step.CancelRefresh:
		w.Refresh.Status, w.Refresh.ReadAt = "Cancelling", now
	case step.RollbackRefresh:
		if known = res.RefreshID != ""; known { // otherwise AWS cancels it instead
			w.Refresh.Status, w.Refresh.ReadAt = "RollbackInProgress", now
		}
	default:
		known = false
	}
	if err != nil || !known {
		delete(m.watched, group)
		return
	}
	if m.watched == nil {
		m.watched = map[string]model.Watched{}
	}
	m.watched[group] = w
}

// forget makes the next pass read the refresh of a group.
func (m *refreshMemory) forget(group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watched, group)
}

// cancel records that weir cancelled a refresh.
func (m *refreshMemory) cancel(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancelled.set(id, true)
}

func (m *refreshMemory) view() (watched map[string]model.Watched, cancelled map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.watched), m.cancelled.all()
}

// watch remembers the instance refreshes that pools wait for, for the next pass. It lists in
// ps.unread the refreshes that this pass did not read itself. It also deletes the retry requests
// that the plans have used. The request of a pool stays while one of its steps waits, because
// without it the next plan would not have that step.
func (ps *passState) watch(context.Context) error {
	watched, planned := map[string]model.Watched{}, map[string]bool{}
	for i, p := range ps.plans {
		if p != nil {
			planned[ps.targets[i].Policy.Target] = true
			maps.Copy(watched, p.Watched())
		}
	}
	ps.memory.refreshes.keep(watched, planned, ps.state)
	ps.unread = map[string]observed.Refresh{}
	for name, r := range ps.state.Refreshes {
		if r.ReadAt.Before(ps.began) {
			ps.unread[name] = r
		}
	}
	if len(ps.inputs) > 0 {
		ps.memory.refusals.Retried(ps.inputs[0].Memory.Refusals, waiting(ps.plans)) // all inputs share the refusals
	}
	return nil
}

// waiting returns the pools ("namespace/name") with a step that waits for something else.
func waiting(plans []*plan.Plan) map[string]bool {
	out := map[string]bool{}
	for _, p := range plans {
		if p == nil {
			continue
		}
		for _, st := range p.Steps {
			if st.Held.Passes() || st.Held == step.HeldStopped {
				out[st.Pool] = true
			}
		}
	}
	return out
}

// uncertain returns the refreshes that must be read again before an action relies on them:
// refreshes from an earlier pass. For an action that ends a refresh, it returns all unless they
// were read moments ago.
func (a *applier) uncertain(do step.Action) map[string]observed.Refresh {
	if !do.About().EndsRefresh() || a.now().Sub(a.checks.since) < seenMoments {
		return a.unread
	}
	return a.checks.state.Refreshes
}

// confirmRefresh fails unless a group's newest refresh is still as planned. It applies only if the
// action depends on a refresh that is in known: weir reads it again right before it acts on it. If
// the refresh has changed, the next pass plans again.
func (a *applier) confirmRefresh(ctx context.Context, do step.Action, known map[string]observed.Refresh) error {
	group := do.About().RefreshOf()
	was, uncertain := known[group]
	if !uncertain {
		return nil
	}
	got, err := a.Cloud.Fill(ctx, observed.State{}, observed.Needs{Refreshes: []string{group}})
	if err != nil {
		return err
	}
	now, read := got.Refreshes[group]
	if read && now.ID == was.ID && now.Status == was.Status {
		return nil
	}
	a.memory.refreshes.forget(group)
	return step.ErrLater
}

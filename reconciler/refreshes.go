package reconciler

import (
	"context"
	"maps"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
)

// knownRefreshes are the instance refreshes that earlier passes have seen, of the
// groups that there are. One that began before its group was made was another
// group's.
func (s *Scope) knownRefreshes(state *observed.State) map[string]observed.Refresh {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]observed.Refresh, len(s.memory.Refreshes))
	for name, w := range s.memory.Refreshes {
		g, there := state.Groups[name]
		if there && (w.Refresh.ID == "" || !w.Refresh.StartedAt.Before(g.CreatedAt)) {
			out[name] = w.Refresh
		}
	}
	return out
}

// keepRefreshes remembers the refreshes that pools wait for. A refresh that a target
// waited for that was not planned in this pass is kept while the group is there.
func (s *Scope) keepRefreshes(plans []*plan.Plan, targets []Desired, state *observed.State, began time.Time) {
	next, planned, unsure := map[string]basis.Watched{}, map[string]bool{}, map[string]observed.Refresh{}
	for i, p := range plans {
		if p != nil {
			planned[targets[i].Policy.Target] = true
			maps.Copy(next, p.Watched())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, w := range s.memory.Refreshes {
		if g, there := state.Groups[name]; there && !planned[g.Tags[observed.TagTarget].Value] {
			next[name] = w
		}
	}
	for name, r := range state.Refreshes {
		if r.ReadAt.Before(began) {
			unsure[name] = r
		}
	}
	s.memory.Refreshes, s.unsure = next, unsure
}

// knownLongSince are the refreshes that an action must not go by without a look: those that
// an earlier pass read, and for what ends one all that were not read moments ago.
func (s *Scope) knownLongSince(do step.Action) map[string]observed.Refresh {
	if !do.About().EndsRefresh() || s.sinceLook() < seenMoments {
		return s.unsure
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks.state.Refreshes
}

// confirmRefresh fails unless a group's newest refresh is as it was planned with, if an action uses
// it and it is among the known ones: weir reads an earlier pass's answer again right before it acts
// on it. If the refresh has changed, the next pass plans again.
func (s *Scope) confirmRefresh(ctx context.Context, do step.Action, known map[string]observed.Refresh) error {
	group := do.About().RefreshOf()
	was, unsure := known[group]
	if !unsure {
		return nil
	}
	got, err := s.Cloud.Fill(ctx, observed.State{}, observed.Needs{Refreshes: []string{group}})
	if err != nil {
		return err
	}
	now, read := got.Refreshes[group]
	if read && now.ID == was.ID && now.Status == was.Status {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.memory.Refreshes, group)
	return step.ErrLater
}

// noteRefresh remembers what a step made of a group's refreshes. Where that is not
// known, because it failed or its answer was lost, the next pass asks.
func (s *Scope) noteRefresh(do step.Action, instances int, res step.Result, err error) {
	group := do.About().RefreshOf()
	if group == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	w, known := s.memory.Refreshes[group]
	switch a := do.(type) {
	case step.StartRefresh:
		known = true
		w = basis.Watched{Left: int32(instances), Total: int32(instances), Set: w.Set, MovedAt: now, Refresh: observed.Refresh{
			ID: res.RefreshID, Status: "Pending", Template: a.Template, MixedInstancesPolicy: a.MixedInstancesPolicy, Preferences: a.Preferences,
			StartedAt: s.clock(), ReadAt: now,
		}}
	case step.CancelRefresh:
		w.Refresh.Status, w.Refresh.ReadAt = "Cancelling", now
	case step.RollbackRefresh:
		if known = res.RefreshID != ""; known { // else it is cancelled instead
			w.Refresh.Status, w.Refresh.ReadAt = "RollbackInProgress", now
		}
	default:
		known = false
	}
	if err != nil || !known {
		delete(s.memory.Refreshes, group)
		return
	}
	s.memory.Refreshes[group] = w
}

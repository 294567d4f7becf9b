package model_test

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// TestSinceWhenAMachineShouldBeReady is about one machine of the wanted hash, which was
// launched twenty minutes ago.
func TestSinceWhenAMachineShouldBeReady(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		state  string
		warm   bool
		node   *model.Node
		seen   time.Time // in service, by this process
		want   time.Time
		failed bool
	}{
		"on its way":             {state: "Pending", want: ago(20)},
		"not joined yet":         {state: "InService", seen: ago(3), want: ago(20)},
		"never joined":           {state: "InService", seen: ago(12), want: ago(20), failed: true},
		"joined, never ready":    {state: "InService", seen: ago(19), node: &model.Node{Since: ago(18), Created: ago(18)}, want: ago(20), failed: true},
		"was ready until lately": {state: "InService", seen: ago(19), node: &model.Node{Since: ago(1), Created: ago(18)}, want: ago(1)},
		"out of a warm pool":     {state: "InService", warm: true, seen: ago(3), want: ago(3)},
		"is warm":                {state: "Pending", warm: true},
	} {
		t.Run(name, func(t *testing.T) {
			group := &intent.Group{Name: "web"}
			if c.warm {
				group.Options.WarmPool = &intent.WarmPool{}
			}
			pool := &intent.Pool{Key: intent.Key{Namespace: "default", Name: "web"}, Group: group}
			in := model.Input{Now: now, State: &observed.State{Launched: map[string]time.Time{"i-1": ago(20)}}, Nodes: &model.Nodes{ByInstance: map[string]model.Node{}}}
			in.Memory.InService = map[string]time.Time{}
			if !c.seen.IsZero() {
				in.Memory.InService["i-1"] = c.seen
			}
			if c.node != nil {
				in.Nodes.ByInstance["i-1"] = *c.node
			}
			p := model.Way{Governed: true, Hash: "new"}.Report(in, pool, []observed.Instance{{ID: "i-1", LifecycleState: c.state, Health: "Healthy"}}, func(observed.Instance) bool { return true })
			if len(p.Facts.Waiting) != 1 || !p.Facts.Waiting[0].Since.Equal(c.want) || (p.Failed != "") != c.failed {
				t.Errorf("%+v, failed: %q; want since %s", p.Facts.Waiting, p.Failed, c.want)
			}
		})
	}
}

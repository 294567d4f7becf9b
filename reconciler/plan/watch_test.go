package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

func TestWhenARefreshIsAskedAbout(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	const s, m = time.Second, time.Minute
	tests := map[string]struct {
		status             string
		read, moved, shown time.Duration // ago; 0 for never
		want               bool
	}{
		"nothing moves, not for long yet": {"InProgress", 59 * s, 10 * m, 0, false},
		"nothing moves":                   {"InProgress", 60 * s, 10 * m, 0, true},
		"it has moved a while ago":        {"InProgress", 90 * s, 30 * s, 0, false},
		"it moves on and on":              {"InProgress", 5 * m, 1 * s, 0, true},
		"just shown":                      {"InProgress", 30 * s, 1 * s, 1 * s, true},
		"shown right after it was asked":  {"InProgress", 4 * s, 1 * s, 1 * s, false},
		"asked since, at once":            {"InProgress", 4 * s, 5 * s, 4 * s, false},
		"asked since, a moment ago":       {"InProgress", 5 * s, 6 * s, 6 * s, true},
		"asked since, after 20 s":         {"InProgress", 19 * s, 39 * s, 39 * s, false},
		"asked since, after 20 s, again":  {"InProgress", 20 * s, 40 * s, 40 * s, true},
		"a long bake":                     {"Baking", 59 * s, 20 * m, 20 * m, false},
		"a long bake, again":              {"Baking", 60 * s, 20 * m, 20 * m, true},
		"a rollback":                      {"RollbackInProgress", 60 * s, 10 * m, 0, true},
		"ended":                           {"Failed", 9 * m, 9 * m, 0, false},
		"ended, long ago":                 {"Failed", 10 * m, 10 * m, 0, true},
		"ended, and the machines move":    {"Failed", 59 * s, 1 * s, 1 * s, false},
		"ended, and they moved":           {"Failed", 60 * s, 1 * s, 1 * s, true},
		"none at all":                     {"", 9 * m, 0, 0, false},
	}
	for name, tt := range tests {
		w := model.Watched{Refresh: observed.Refresh{Status: tt.status, ReadAt: ago(tt.read)}}
		if tt.moved > 0 {
			w.MovedAt = ago(tt.moved)
		}
		if tt.shown > 0 {
			w.ShownAt = ago(tt.shown)
		}
		if got := w.Due(now, m); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// watcher plans passes over the group web, whose refresh AWS was asked about once.
type watcher struct {
	t     *testing.T
	in    model.Input
	state observed.State
}

// pass plans after d, and returns whether AWS is to be asked, and how far it is.
func (w *watcher) pass(d time.Duration) (asks bool, shown RolloutStatus) {
	w.t.Helper()
	w.in.Began = w.in.Began.Add(d)
	w.in.State, w.in.Index = &w.state, nil
	p, needs := Compute(w.in)
	w.in.Memory.Refreshes = p.Watched()
	if s := Statuses(w.in, p)[0]; s.LastRollout != nil {
		shown = *s.LastRollout
	}
	return slices.Contains(needs.Polls, "web"), shown
}

// machines are the group's, by version and state.
func (w *watcher) machines(all ...string) {
	g := w.state.Groups["web"]
	g.Instances = nil
	for i, m := range all {
		version, state := m[:1], m[1:]
		g.Instances = append(g.Instances, observed.Instance{ID: string(rune('a' + i)), Type: "m5.xlarge", Zone: "eu-west-1a", LifecycleState: state, Health: "Healthy", Template: observed.TemplateRef{ID: g.Template.ID, Version: version}})
	}
	w.state.Groups["web"] = g
}

// refreshing is a group of two machines that rolls from version 1 to version 2.
func refreshing(t *testing.T, status string) *watcher {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 2)))
	in := testInput(groupPool("web", "m5.xlarge", 2))
	p, _ := m.pass(t, in)
	m.do(p.Steps[0].Do, step.Made{})
	in.Began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m.state.Refreshes["web"] = observed.Refresh{ID: "r-1", Status: status, InstancesLeft: 2, Template: observed.TemplateRef{ID: m.state.Templates["web"].ID, Version: "2"}, ReadAt: in.Began}
	_, full := m.pass(t, in)
	w := &watcher{t: t, in: full, state: *full.State}
	w.machines("1InService", "1InService")
	if asks, _ := w.pass(0); asks {
		t.Error("it was asked a moment ago")
	}
	return w
}

// Machines tell how far a refresh is, and AWS is asked once they say that it has
// ended or goes back.
func TestMachinesTellHowFarARefreshIs(t *testing.T) {
	w := refreshing(t, "InProgress")
	for _, step := range []struct {
		machines  []string
		set       bool
		percent   int32
		left      int32
		asks      bool
		passes    int // of ten seconds each
		whatMoved string
	}{
		{[]string{"1InService", "1Terminating", "2Pending"}, false, 0, 2, false, 5, "a machine is launched"},
		{[]string{"1InService", "2InService"}, false, 50, 1, false, 5, "and is in service"},
		{[]string{"1InService", "2InService", "2Pending"}, false, 50, 1, false, 5, "another comes before the old one goes"},
		{[]string{"2InService", "2InService"}, false, 100, 0, false, 5, "all are new, and AWS waits for the last to warm up"},
		{[]string{"2InService", "2InService"}, true, 100, 0, true, 1, "AWS has set the group to the new version"},
	} {
		w.machines(step.machines...)
		if step.set {
			g := w.state.Groups["web"]
			g.Template.Version = "2"
			w.state.Groups["web"] = g
		}
		for range step.passes {
			asks, shown := w.pass(10 * time.Second)
			if asks != step.asks || shown.Percentage != step.percent || shown.InstancesLeft != step.left {
				t.Errorf("%s: asks %v, %d %% with %d left; want %v, %d %% with %d left", step.whatMoved, asks, shown.Percentage, shown.InstancesLeft, step.asks, step.percent, step.left)
			}
		}
	}
	// The default version moves when AWS has said how it ended.
	p, _ := Compute(w.in)
	if !p.Empty() {
		t.Errorf("before AWS has said it: %v", verbs(p))
	}
	r := w.state.Refreshes["web"]
	r.Status, r.ReadAt = "Successful", w.in.Began
	w.state.Refreshes["web"] = r
	p, needs := Compute(w.in)
	if len(p.Steps) != 1 || len(needs.Polls) != 0 || len(p.Watched()) != 0 {
		t.Errorf("afterwards: %v, %+v, %v", verbs(p), needs, p.Watched())
	}
	if _, moves := p.Steps[0].Do.(step.SetDefaultVersion); !moves {
		t.Errorf("afterwards: %v", verbs(p))
	}
}

func TestMachinesThatGoBackAskAtOnce(t *testing.T) {
	for name, machines := range map[string][]string{
		"one of the old version is launched": {"1InService", "2Terminating", "1Pending"},
		"a new one has failed":               {"1InService", "2Terminating"},
	} {
		w := refreshing(t, "InProgress")
		w.machines("1InService", "2InService")
		w.pass(20 * time.Second)
		w.machines(machines...)
		if asks, _ := w.pass(20 * time.Second); !asks {
			t.Errorf("%s: AWS is not asked", name)
		}
	}
}

// weir asks about a refresh that is being ended once the machines have come to rest.
func TestARefreshThatIsBeingEnded(t *testing.T) {
	for status, steps := range map[string][][]string{
		"Cancelling":         {{"1InService", "2Pending"}, {"1InService", "2InService"}},
		"RollbackInProgress": {{"1InService", "2InService"}, {"1InService", "2Terminating", "1InService"}, {"1InService", "1InService"}},
	} {
		w := refreshing(t, status)
		w.machines(steps[0]...)
		w.pass(10 * time.Second) // machines other than when AWS was asked
		r := w.state.Refreshes["web"]
		r.ReadAt = w.in.Began
		w.state.Refreshes["web"] = r
		for i, machines := range steps {
			w.machines(machines...)
			if asks, _ := w.pass(10 * time.Second); asks != (i == len(steps)-1) {
				t.Errorf("%s: %v: asks %v", status, machines, asks)
			}
		}
	}
}

package reconciler

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func watched(id string, started time.Time) model.Watched {
	return model.Watched{Refresh: observed.Refresh{ID: id, Status: "InProgress", StartedAt: started}}
}

// groupsOf returns a state with groups of targets, made at noon.
func groupsOf(targets map[string]string) *observed.State {
	s := &observed.State{Groups: map[string]observed.Group{}}
	for name, target := range targets {
		s.Groups[name] = observed.Group{Name: name, CreatedAt: noon, Tags: map[string]observed.GroupTag{observed.TagTarget: {Value: target}}}
	}
	return s
}

func TestKnownRefreshesAreThoseOfExistingGroups(t *testing.T) {
	m := refreshMemory{watched: map[string]model.Watched{
		"there": watched("r1", noon), "gone": watched("r2", noon), "made again": watched("r3", noon.Add(-time.Minute)), "none": watched("", time.Time{}),
	}}
	got := slices.Sorted(maps.Keys(m.known(groupsOf(map[string]string{"there": "blue", "made again": "blue", "none": "blue"}))))
	if want := []string{"none", "there"}; !slices.Equal(want, got) {
		t.Errorf("known: %v, want %v", got, want)
	}
}

// A pass replaces what is known of the targets that it planned, and keeps the rest while it exists.
func TestRefreshesOfUnplannedTargetsStay(t *testing.T) {
	m := refreshMemory{watched: map[string]model.Watched{"web": watched("r1", noon), "db": watched("r2", noon), "gone": watched("r3", noon)}}
	m.keep(map[string]model.Watched{"new": watched("r4", noon)}, map[string]bool{"blue": true}, groupsOf(map[string]string{"web": "blue", "db": "green", "new": "blue"}))
	now, _ := m.view()
	if got, want := slices.Sorted(maps.Keys(now)), []string{"db", "new"}; !slices.Equal(want, got) {
		t.Errorf("watched: %v, want %v", got, want)
	}
}

func TestStepsChangeWhatIsKnownOfRefreshes(t *testing.T) {
	start := step.StartRefresh{Group: "web"}
	cancel, rollback := step.CancelRefresh{Group: "web", RefreshID: "r1"}, step.RollbackRefresh{Group: "web", RefreshID: "r1"}
	for name, tc := range map[string]struct {
		do     step.Action
		before bool
		res    step.Result
		err    error
		want   string // the status afterwards, empty if the next pass reads it
	}{
		"a start":                     {do: start, res: step.Result{RefreshID: "r2"}, want: "Pending"},
		"a start that failed":         {do: start, before: true, err: errors.New("lost")},
		"a cancellation":              {do: cancel, before: true, want: "Cancelling"},
		"a cancellation of another's": {do: cancel},
		"a rollback":                  {do: rollback, before: true, res: step.Result{RefreshID: "r1"}, want: "RollbackInProgress"},
		"a rollback that cancels":     {do: rollback, before: true},
		"a step of the group":         {do: step.DeleteGroup{Name: "other"}, before: true, want: "InProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			var m refreshMemory
			if tc.before {
				m.watched = map[string]model.Watched{"web": watched("r1", noon)}
			}
			m.recordStep(tc.do, 3, tc.res, tc.err, noon, noon)
			now, _ := m.view()
			if w, known := now["web"]; w.Refresh.Status != tc.want || known != (tc.want != "") {
				t.Errorf("known: %+v", now)
			}
		})
	}
}

func TestCancelledRefreshesAreRemembered(t *testing.T) {
	var m refreshMemory
	m.cancel("r1")
	m.cancel("r2")
	if _, got := m.view(); !cmp.Equal(map[string]bool{"r1": true, "r2": true}, got) {
		t.Errorf("cancelled: %v", got)
	}
}

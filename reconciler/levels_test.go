package reconciler

import (
	"maps"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// A level has the time of the first answer that gave it.
func TestLevelsKeepTheTimeOfTheirFirstAnswer(t *testing.T) {
	image := intent.Lookup{Kind: intent.ImageByParameter, Name: "/images/x"}
	var l lookupLevels
	for i, tc := range []struct {
		id    string
		since time.Duration
	}{{"ami-1", 0}, {"ami-1", 0}, {"ami-2", 2 * time.Minute}, {"", 0}, {"ami-2", 4 * time.Minute}} {
		answers := observed.Answers{}
		if tc.id != "" {
			answers[image] = observed.Answer{Image: &observed.Image{ID: tc.id}}
		}
		before, held := l, maps.Clone(l)
		l.update([]observed.Answers{nil, answers}, noon.Add(time.Duration(i)*time.Minute))
		level, known := l[image]
		if known != (tc.id != "") || known && (level.ID != tc.id || !level.Since.Equal(noon.Add(tc.since))) {
			t.Errorf("after answer %d: %+v", i, l)
		}
		if !maps.Equal(before, held) {
			t.Error("a map that was handed out has changed")
		}
	}
}

func TestPlannedCommits(t *testing.T) {
	at := func(commit string) *Desired {
		return &Desired{Policy: model.Policy{Target: "blue"}, Commit: content.Commit{Revision: commit}}
	}
	report := func(commit string, planned bool) *plan.Report {
		r := &plan.Report{Target: "blue", Revision: commit}
		if planned {
			r.Plan = &plan.Plan{}
		}
		return r
	}
	var p plannedCommits
	for i, tc := range []struct {
		reports []*plan.Report
		first   map[string]bool
	}{
		{nil, map[string]bool{"c1": true}},
		{[]*plan.Report{report("c1", false)}, map[string]bool{"c1": true}},
		{[]*plan.Report{report("c1", true)}, map[string]bool{"c1": false, "c2": true}},
		{[]*plan.Report{report("c2", false)}, map[string]bool{"c1": false, "c2": true}},
		{[]*plan.Report{report("c2", true)}, map[string]bool{"c1": true, "c2": false}},
		{nil, map[string]bool{"c2": true}},
	} {
		p.update(tc.reports)
		for commit, want := range tc.first {
			if got := p.first(at(commit)); got != want {
				t.Errorf("after pass %d: first of %s: %t", i, commit, got)
			}
		}
	}
}

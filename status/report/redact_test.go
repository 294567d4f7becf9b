package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
)

// The shown copy of a plan has the digest that lets the plan run, though it lacks a nodegroup's cluster and masks secrets.
func TestARedactedPlanKeepsItsDigest(t *testing.T) {
	redact := report.Redact(func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
	r := &plan.Report{Target: "prod", Plan: &plan.Plan{Target: "prod", Steps: []step.Step{
		{Verb: step.Delete, Resource: step.ManagedNodegroup, Name: "workers", Do: step.DeleteNodegroup{NodegroupName: observed.NodegroupName{Cluster: "prod-eu", Name: "workers"}}},
		{Verb: step.Update, Resource: step.AutoScalingGroup, Name: "web", Changes: []step.Change{{Field: "tags.a", From: "hunter2", To: "b"}}},
	}}}
	shown := redact.Report(r)
	if got, want := shown.Plan.Digest(), r.Plan.Digest(); got != want {
		t.Errorf("the shown plan has the digest %s, want %s", got, want)
	}
	if again := redact.Report(shown); again.Plan.Digest() != r.Plan.Digest() {
		t.Error("a copy of a copy has another digest")
	}
	if shown.Plan.Steps[1].Changes[0].From != "***" {
		t.Errorf("the secret is shown: %v", shown.Plan.Steps[1].Changes)
	}
	if r.Plan.Steps[1].Changes[0].From != "hunter2" {
		t.Errorf("the plan itself was changed: %v", r.Plan.Steps[1].Changes)
	}
	r.Plan.Secretless = true
	if got := redact.Report(r).Plan.Digest(); got != "" {
		t.Errorf("a plan without secrets has the digest %s", got)
	}
}

// What a pull request would do over time is shown without secrets, and the original stays.
func TestAForecastIsRedacted(t *testing.T) {
	redact := report.Redact(func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
	of := &timeline.Timeline{
		Why: "hunter2", Waves: []timeline.Wave{{Name: "hunter2"}}, Milestones: []timeline.Milestone{{Text: "tags.a: hunter2"}},
		Waiting: []timeline.Wait{{Why: "hunter2"}}, Doubts: []string{"hunter2"},
	}
	p := report.Pull{Source: "s", Number: 1, Forecast: &report.Forecast{Timeline: of}}
	data, _, err := p.Record(redact)
	if err != nil {
		t.Fatal(err)
	}
	again, err := report.ReadPull(data)
	if err != nil {
		t.Fatal(err)
	}
	for what, shown := range map[string]report.Pull{"copy": redact.Pull(p), "record": again} {
		if shown.Forecast == nil || shown.Forecast.Timeline == nil {
			t.Fatalf("%s: %+v", what, shown)
		}
		if text := fmt.Sprintf("%+v", shown.Forecast.Timeline); strings.Contains(text, "hunter2") || strings.Count(text, "***") != 5 {
			t.Errorf("%s: %s", what, text)
		}
	}
	if of.Doubts[0] != "hunter2" || of.Waves[0].Name != "hunter2" {
		t.Error("the original was changed")
	}
}

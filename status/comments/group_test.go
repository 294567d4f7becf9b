package comments

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

// shared is a pull request that changes one line of a base of many targets. Each target has
// findings that the base has too, and its own names and sizes.
func shared(n int) report.Pull {
	p := statustest.Planned()
	p.Reports, p.Gone, p.Unaffected, p.Before = nil, nil, 0, map[string][]string{}
	var rolls []statustest.Roll
	for i := range n {
		target := fmt.Sprintf("prod-%02d", i+1)
		name := target + "-web"
		size := int32(3 + i%4)
		r := statustest.Report(target, statustest.Pool(target, "web", statustest.Sized(size, size)))
		change := step.Change{Field: "awsLaunchTemplate.instanceType", From: "m5.large", To: "m6i.large", Origin: &diag.Position{File: "base/pool.yaml", Line: 9}}
		name2 := step.Change{Field: "tags.Name", From: name + "-4", To: name + "-5"}
		r.Plan.Steps = []step.Step{
			{Verb: step.Update, Resource: step.LaunchTemplate, Pool: "default/web", Name: name, Reason: "instanceType m5.large → m6i.large", Changes: []step.Change{change, name2}},
			{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/web", Name: name, Reason: fmt.Sprintf("%d of %d instances do not run version %d", size, size, i+2), Disruptive: true, Instances: int(size),
				Do: step.StartRefresh{Group: name, Preferences: intent.Refresh{MinHealthyPercentage: new(int32)}}, Held: step.HeldApproval},
		}
		r.Plan.Summary = plan.Summary{Rollout: 1, Unchanged: 2}
		r.Plan.Diagnostics = diag.List{
			{Severity: diag.Warning, Code: "default-network", Summary: "the default VPC is used", Object: "AWSMachinePool default/web", Field: "spec.subnets", Position: diag.Position{File: "base/pool.yaml", Line: 3}},
			{Severity: diag.Info, Code: "newer-image", Summary: fmt.Sprintf("a newer image ami-0ccc is published; version %d of the launch template %s stays with ami-0bbb", i+2, name), Position: diag.Position{File: "base/pool.yaml", Line: 20}},
			{Severity: diag.Warning, Code: "old-generation", Summary: "m6i.large is not the newest generation", Object: "AWSMachinePool default/web", Field: "spec.awsLaunchTemplate.instanceType", Position: diag.Position{File: "base/pool.yaml", Line: 9}},
		}
		p.Before[target] = []string{report.FindingKey(r.Plan.Diagnostics[0]), report.FindingKey(r.Plan.Diagnostics[1])}
		p.Reports = append(p.Reports, r)
		rolls = append(rolls, statustest.Roll{Target: target, Pool: "default/web", Size: int(size), Batch: 1, From: 5})
	}
	p.Forecast = &report.Forecast{Timeline: statustest.Foresee(rolls[:min(n, 30)]...)}
	p.Forecast.Timeline.Waves = nil
	return p
}

// A line that thirty targets share is one change.
func TestASharedChangeIsOneFold(t *testing.T) {
	p := shared(30)
	p.WebURL = addresses[forge.Gitea]
	got := Text(p, TextOptions{Instance: "production", Forge: forge.ProfileOf(forge.Gitea)})
	t.Logf("%d bytes, %d lines", len(got), strings.Count(got, "\n"))
	if len(got) > 12_000 || strings.Count(got, "\n") > 90 {
		t.Errorf("%d bytes, %d lines:\n%s", len(got), strings.Count(got, "\n"), got)
	}
	for text, times := range map[string]int{
		"<details":                                 2, // the change, and what it does over time
		"`m5.large → m6i.large`":                   1,
		"Applies to prod-01 ":                      1,
		"**replaces 133 instances**":               1,
		"`old-generation`":                         1,
		"in 30 targets: prod-01":                   1,
		"the default VPC is used":                  0,
		"60 findings that already exist in `main`": 1,
		"| prod-17 |":                              1,
		"Machines | Batches |":                     1,
		"30 steps wait":                            0,
		"and the same in 29 more targets":          1,
		"30 targets</b>: pools: 30 to r":           1,
		"and 27 more roll":                         1,
	} {
		if n := strings.Count(got, text); n != times {
			t.Errorf("%q is there %d times, want %d", text, n, times)
		}
	}
	golden(t, "shared.gitea.md", got)
	// Another value in one target is another change, whatever is the same beside it.
	p.Reports[11].Plan.Steps[0].Changes[0].To = "m7i.large"
	got = Text(p, TextOptions{Instance: "production", Forge: forge.ProfileOf(forge.Gitea)})
	if strings.Count(got, "<details") != 3 || !strings.Contains(got, "29 targets</b>") || !strings.Contains(got, "<b>prod-12</b>") {
		t.Errorf("a target with another value:\n%s", got)
	}
}

// What differs in more than names is never shown as one change.
func TestDifferentChangesStayApart(t *testing.T) {
	for name, change := range map[string]func(*step.Step){
		"a field":            func(s *step.Step) { s.Changes[0].Field = "awsLaunchTemplate.keyName" },
		"what was":           func(s *step.Step) { s.Changes[0].From = "m4.large" },
		"what will be":       func(s *step.Step) { s.Changes[0].To = "m6i.xlarge" },
		"what it means":      func(s *step.Step) { s.Changes[0].Words = "another image" },
		"the line that did":  func(s *step.Step) { s.Changes[0].Origin = &diag.Position{File: "base/pool.yaml", Line: 10} },
		"a further field":    func(s *step.Step) { s.Changes = append(s.Changes, step.Change{Field: "x", To: 1}) },
		"the verb":           func(s *step.Step) { s.Verb = step.Replace },
		"what holds it":      func(s *step.Step) { s.Held = step.HeldWindow },
		"that machines end":  func(s *step.Step) { s.Disruptive, s.Instances = true, 1 },
		"a long value's end": func(s *step.Step) { s.Changes[0].To = strings.Repeat("x", 300) + "2" },
	} {
		p := shared(2)
		if name == "a long value's end" {
			p.Reports[0].Plan.Steps[0].Changes[0].To = strings.Repeat("x", 300) + "1"
		}
		change(&p.Reports[1].Plan.Steps[0])
		c := comment{Pull: p}
		if got := len(c.groups()); got != 2 {
			t.Errorf("%s: %d changes", name, got)
		}
	}
	c := comment{Pull: shared(2)}
	if got := len(c.groups()); got != 1 {
		t.Errorf("%d changes", got)
	}
}

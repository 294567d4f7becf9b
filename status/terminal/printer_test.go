package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/wording"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func at(file string, line int) *diag.Position {
	return &diag.Position{File: file, Line: line, Column: 7}
}

func changing() *plan.Report {
	p := &plan.Plan{
		Target: "prod", Revision: "0123456789abcdef0123456789abcdef01234567", Account: "000000000000", Region: "eu-west-1",
		Summary: plan.Summary{Create: 1, Update: 1, Rollout: 1, Delete: 1, Unchanged: 3},
		Steps: []step.Step{
			{
				Verb: step.Create, Resource: step.LaunchTemplate, Pool: "default/web", Name: "demo-web", Reason: "does not exist",
				Changes: []step.Change{
					{Field: "awsLaunchTemplate.instanceType", To: "m6i.large", Origin: at("overlays/prod/web.yaml", 12)},
					{Field: "userData", To: "hmac:1"},
				},
			},
			{
				Verb: step.Update, Resource: step.AutoScalingGroup, Pool: "default/api", Name: "demo-api", Reason: "differs",
				Changes: []step.Change{
					{Field: "maxSize", From: 7, To: 5, Origin: at("overlays/prod/api.yaml", 9)},
					{Field: "subnets", From: []string{"subnet-a"}, To: []string{"subnet-a", "subnet-b"}, Origin: at("base/api.yaml", 30)},
					{Field: "defaultCoolDown", From: "5m", To: nil},
				},
			},
			{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/db", Name: "demo-db", Reason: "2 instances run version 3", Disruptive: true, Instances: 2},
			{Verb: step.Delete, Resource: step.AutoScalingGroup, Pool: "default/old", Name: "demo-old", Reason: "no longer in Git", Disruptive: true, Instances: 1, Held: step.HeldPruneLimit},
			{Verb: step.Update, Resource: step.ManagedNodegroup, Pool: "default/ng", Name: "ng", Reason: "version", Later: true},
		},
		Diagnostics: diag.List{
			{Severity: diag.Warning, Code: "prune-refused", Summary: "1 of 4 pools would be deleted", Detail: "raise prune.limit,\nor put the trailer into the commit", Position: diag.Position{File: "overlays/prod/kustomization.yaml"}},
			{Severity: diag.Error, Code: "bad", Summary: "evil \x1b[31m text", Related: []diag.Related{{Position: *at("base/x.yaml", 1), Message: "set here"}}},
		},
	}
	return &plan.Report{
		Target: p.Target, Account: p.Account, Region: p.Region, Revision: p.Revision, Subject: "raise <b>it</b>", Plan: p,
		Diagnostics: p.Diagnostics,
	}
}

func empty() *plan.Report {
	return &plan.Report{Target: "dev", Region: "eu-west-1", Plan: &plan.Plan{Target: "dev", Summary: plan.Summary{Unchanged: 2}}}
}

func broken() *plan.Report {
	return &plan.Report{
		Target: "bad", Region: "eu-west-1", Err: errors.New("open account: no credentials"),
		Diagnostics: diag.List{{Severity: diag.Error, Code: "yaml-syntax", Summary: "no valid YAML", Position: *at("x.yaml", 3)}},
	}
}

func TestPlanText(t *testing.T) {
	for _, color := range []bool{false, true} {
		var b bytes.Buffer
		p := Printer{W: &b, Color: color}
		for _, r := range []*plan.Report{changing(), empty(), broken()} {
			p.Plan(r)
		}
		name := "plan.txt"
		if color {
			name = "plan-color.txt"
		}
		golden(t, name, b.String())
		if !color && strings.Contains(b.String(), "\x1b") {
			t.Error("an escape sequence got through")
		}
	}
}

// TestNoLineIsACommand: a text that others wrote is none to GitHub Actions, which
// looks for commands in the output of every step.
func TestNoLineIsACommand(t *testing.T) {
	var b bytes.Buffer
	evil := "::set-output name=x::y"
	Printer{W: &b}.Diagnostics(diag.List{{
		Severity: diag.Error, Code: "bad", Summary: evil + " ##[add-path]/tmp", Detail: evil + "\n  " + evil + "\n\u2028" + evil,
		Position: *at("::stop-commands::z/x.yaml", 1), Related: []diag.Related{{Position: *at(evil, 1), Message: evil}},
	}})
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
			t.Errorf("a command: %q", line)
		}
	}
	if !strings.Contains(b.String(), "set-output name=x::y") {
		t.Errorf("it is not shown: %s", &b)
	}
}

// TestPlanShowsARNsWhole: however narrow the terminal is.
func TestPlanShowsARNsWhole(t *testing.T) {
	var b bytes.Buffer
	role := "arn:aws:iam::123456789012:role/" + strings.Repeat("a-long-path/", 20)
	r := changing()
	r.Plan.Steps[0].Changes = []step.Change{
		{Field: "awsLaunchTemplate.iamInstanceProfile", From: role + "reader", To: role + "admin", Origin: at("overlays/prod/web.yaml", 12)},
		{Field: "other", To: strings.Repeat("text ", 50), Origin: at("overlays/prod/web.yaml", 13)},
	}
	Printer{W: &b, Width: 60}.Plan(r)
	if !strings.Contains(b.String(), role+"reader") || !strings.Contains(b.String(), role+"admin") || strings.Contains(b.String(), strings.Repeat("text ", 49)) {
		t.Errorf("got\n%s", &b)
	}
	b.Reset()
	if err := PlansMarkdown(&b, []*plan.Report{r}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), role+"admin") {
		t.Errorf("got\n%s", &b)
	}
}

func TestPlanJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, Plans([]*plan.Report{changing()})); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan.json", b.String())
	b.Reset()
	if err := JSON(&b, Plans([]*plan.Report{changing(), broken()})); err != nil {
		t.Fatal(err)
	}
	var several struct {
		Schema string
		Plans  []map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &several); err != nil {
		t.Fatal(err)
	}
	if several.Schema != "weir.dev/plans/v1" || len(several.Plans) != 2 {
		t.Errorf("schema %q with %d plans", several.Schema, len(several.Plans))
	}
	if _, has := several.Plans[1]["digest"]; has {
		t.Error("a plan that could not be made has a digest")
	}
	if n := len(several.Plans[1]["diagnostics"].([]any)); n != 2 {
		t.Errorf("diagnostics of the broken target: got %d, want its own and its failure", n)
	}
}

func TestPlanMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := PlansMarkdown(&b, []*plan.Report{changing(), empty(), broken()}); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan.md", b.String())
}

func applied() []Applied {
	first := changing()
	steps := first.Plan.Steps
	moving := &plan.Report{
		Target: "prod", Region: "eu-west-1", Plan: &plan.Plan{Target: "prod"},
		Pools: []plan.PoolStatus{
			{Name: "web", Namespace: "default", Target: "prod", Kind: intent.GroupPool, Phase: plan.PhaseScalingUp, DesiredReplicas: 2, ReadyReplicas: 1, LaunchTemplateVersion: "1", Conditions: []plan.Condition{{Type: "Ready", Status: "False", Reason: "InProgress"}}},
			{Name: "db", Namespace: "default", Target: "prod", Kind: intent.GroupPool, Phase: plan.PhaseRunning, DesiredReplicas: 2, ReadyReplicas: 2, Rollout: &plan.RolloutStatus{Status: "InProgress", Percentage: 50, Message: "Waiting at the checkpoint of 50% for 3600 seconds."}},
			{Name: "ng", Namespace: "default", Target: "prod", Kind: intent.NodegroupPool, Phase: plan.PhaseRunning, DesiredReplicas: 1, ReadyReplicas: 1, Converged: true},
			{Name: "sad", Namespace: "default", Target: "prod", Kind: intent.NodegroupPool, Phase: plan.PhaseFailed, FailureMessage: "no capacity"},
		},
	}
	calm := &plan.Report{Target: "calm", Region: "eu-west-1", Plan: &plan.Plan{Target: "calm", Summary: plan.Summary{Unchanged: 1}}, Pools: []plan.PoolStatus{{Name: "a", Converged: true}}}
	return []Applied{
		{First: first, Last: moving, Outcomes: []step.Outcome{
			{Step: steps[0], Status: step.Done, Duration: 20 * time.Millisecond},
			{Step: steps[1], Status: step.Failed, Err: &observed.Error{Kind: observed.Denied, Service: "autoscaling", Operation: "UpdateAutoScalingGroup", Code: "AccessDenied", Message: "needs autoscaling:UpdateAutoScalingGroup"}},
			{Step: steps[2], Status: step.Skipped},
			{Step: steps[3], Status: step.Held},
		}},
		{First: calm, Last: calm},
		{First: broken(), Last: broken()},
	}
}

func TestApplied(t *testing.T) {
	var b bytes.Buffer
	p := Printer{W: &b}
	for _, a := range applied() {
		p.Applied(a)
	}
	golden(t, "applied.txt", b.String())
	b.Reset()
	if err := AppliedMarkdown(&b, applied()); err != nil {
		t.Fatal(err)
	}
	golden(t, "applied.md", b.String())
	b.Reset()
	value, err := Applies(applied()[:1])
	if err != nil {
		t.Fatal(err)
	}
	if err := JSON(&b, value); err != nil {
		t.Fatal(err)
	}
	golden(t, "applied.json", b.String())
}

func TestPools(t *testing.T) {
	var b bytes.Buffer
	p := Printer{W: &b}
	p.Pools(applied()[0].Last.Pools, Marks{})
	p.Pools(nil, Marks{})
	golden(t, "pools.txt", b.String())
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b]0;x\x07b\r\n\t\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range []string{wording.Clean(s), wording.Escape(s), wording.Code(s), wording.Value(s)} {
			if strings.ContainsAny(text, "\x1b\r\n\x07\x00") {
				t.Errorf("%q gives %q", s, text)
			}
		}
	})
}

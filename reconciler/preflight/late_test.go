package preflight

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

func has(found diag.List, code, says string) bool {
	for _, d := range found {
		if d.Code == code && strings.Contains(d.Summary, says) {
			return true
		}
	}
	return false
}

// TestACallThatHangsHidesNothingElse: what the others tell is told, the plan waits a few
// seconds, and the plans that follow do not wait again.
func TestACallThatHangsHidesNothingElse(t *testing.T) {
	for op := range everyCall {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.hangs = op
			missing := "key pair ops"
			delete(f.keyPairs, "ops")
			switch op {
			case "ec2:DescribeKeyPairs":
				missing = "instance profile nodes"
				delete(f.profiles, "nodes")
			case "ec2:RunInstances":
				f.keyPairs["ops"], missing = true, ""
			}
			a := New(f, f, nil)
			p := []Request{creation([]string{"subnet-a", "subnet-b"}, full())}
			began := time.Now()
			found := a.Findings(t.Context(), p)[0]
			if waited := time.Since(began); waited > onePatience {
				t.Errorf("%s: the plan waits %s", op, waited)
			}
			if !has(found, codeUnasked, "did not answer "+op) || missing != "" && !has(found, codeUnknown, missing) || found.Count(diag.Info) != 1 || strings.Contains(found[len(found)-1].Summary, ",") {
				t.Errorf("%s: %v", op, found)
			}
			f.counts()
			began = time.Now()
			for range 10 {
				time.Sleep(20 * time.Second)
				if found := a.Findings(t.Context(), p)[0]; !has(found, codeUnasked, op) {
					t.Errorf("%s: %v", op, found)
				}
			}
			if waited := time.Since(began) - 200*time.Second; waited > 0 || f.counts()[op] > 0 {
				t.Errorf("%s: later plans wait %s", op, waited)
			}
		})
	}
}

// TestAnEndedPlanSaysNothingOfAWS: who waits for a plan no more, as its pull request has
// another head, leaves nothing that another plan would take for AWS's answer.
func TestAnEndedPlanSaysNothingOfAWS(t *testing.T) {
	for op := range everyCall {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.hangs = op
			a := New(f, f, nil)
			p := []Request{creation([]string{"subnet-a", "subnet-b"}, full())}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			a.Findings(ctx, p)
			f.hangs = ""
			if found := a.Findings(t.Context(), p)[0]; len(found) > 0 {
				t.Errorf("%s: %v", op, found)
			}
		})
	}
}

// TestAPlanThatGetsNoTurnSaysSo.
func TestAPlanThatGetsNoTurnSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		a := New(f, f, nil)
		<-a.turn // somebody else asks
		if found := a.Findings(t.Context(), []Request{creation([]string{"subnet-a"}, full())})[0]; len(found) != 1 || found[0].Code != codeUnasked {
			t.Error(found)
		}
	})
}

// TestWhatWasMendedIsSeenSoon: a finding about a thing that is there, and is not right,
// goes as soon as one about a thing that is missing.
func TestWhatWasMendedIsSeenSoon(t *testing.T) {
	for name, tt := range map[string]struct {
		breaks, mends func(*fake)
	}{
		"role":            {func(f *fake) { f.profiles["nodes"] = Profile{} }, func(f *fake) { f.profiles["nodes"] = Profile{Role: "nodes"} }},
		"key":             {func(f *fake) { f.keys["alias/good"] = Key{State: "Disabled"} }, func(f *fake) { f.keys["alias/good"] = Key{State: "Enabled", Symmetric: true} }},
		"target group":    {func(f *fake) { f.targets[tg("web")] = TargetGroup{VPC: "vpc-2"} }, func(f *fake) { f.targets[tg("web")] = TargetGroup{VPC: "vpc-1"} }},
		"placement group": {func(f *fake) { f.placements["wide"] = PlacementGroup{Strategy: "spread", State: "pending"} }, func(f *fake) { f.placements["wide"] = PlacementGroup{Strategy: "spread", State: "available"} }},
		"quota":           {func(f *fake) { f.quotas["L-1216C47A"] = 1 }, func(f *fake) { f.quotas["L-1216C47A"] = 100 }},
		"addresses":       {func(f *fake) { f.subnets["subnet-a"] = Subnet{Zone: "eu-west-1a"} }, func(f *fake) { f.subnets["subnet-a"] = Subnet{Zone: "eu-west-1a", Free: 100} }},
		"dry run":         {func(f *fake) { f.refuses = &observed.Error{Kind: observed.Invalid, Code: "No"} }, func(f *fake) { f.refuses = nil }},
	} {
		f, now := newFake(), time.Unix(0, 0)
		tt.breaks(f)
		a := New(f, f, func() time.Time { return now })
		p := []Request{creation([]string{"subnet-a"}, full())}
		if found := a.Findings(context.Background(), p)[0]; len(found) != 1 {
			t.Errorf("%s: %v", name, found)
		}
		tt.mends(f)
		now = now.Add(negativeTTL)
		if found := a.Findings(context.Background(), p)[0]; len(found) > 0 {
			t.Errorf("%s: mended %s ago: %v", name, negativeTTL, found)
		}
	}
}

// TestADryRunThatLaunchesIsTheLast: an endpoint that takes no notice of the parameter
// launches one machine, and who runs it is told which.
func TestADryRunThatLaunchesIsTheLast(t *testing.T) {
	f, now := newFake(), time.Unix(0, 0)
	f.fails["ec2:RunInstances"] = &observed.Error{Kind: observed.Unknown, Service: "ec2", Operation: "RunInstances", Code: CodeNotDry, Message: "launched i-1"}
	a := New(f, f, func() time.Time { return now })
	first, second := webPool(), webPool()
	second.Key.Name = "second"
	second.LaunchTemplate = &intent.LaunchTemplate{Name: "second", Data: first.LaunchTemplate.Data}
	second.LaunchTemplate.Data.InstanceType = "t3.micro"
	p := []Request{creation([]string{"subnet-a"}, first, second)}
	if found := a.Findings(context.Background(), p)[0]; !has(found, codeDryRun, "launched i-1") {
		t.Error(found)
	}
	now = now.Add(time.Hour)
	a.Findings(context.Background(), p)
	if n := f.counts()["ec2:RunInstances"]; n != 1 {
		t.Errorf("%d machines were launched", n)
	}
}

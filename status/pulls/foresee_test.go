package pulls

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
)

// foreseen is a bench whose plans are foreseen, however slow this machine is.
func foreseen(t *testing.T, extra string) *bench {
	t.Helper()
	b, _ := started(t, "", extra)
	b.within = time.Minute
	b.restart()
	b.compose()
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "m5.large", "m6i.large")})
	return b
}

// What a plan would do over time is told beside it, without a call to AWS, and stays the
// same: for the plan that is made anew, and for another process's of the same fleet later on.
func TestAPlanIsForeseen(t *testing.T) {
	b := foreseen(t, ", apply: as-reviewed, windows: [{days: [mon], start: '04:00', end: '05:00'}]")
	b.aws.ResetCalls()
	b.round()
	first := b.display.last()
	if first.State != report.PullPlanned || first.Forecast == nil || first.Forecast.Timeline == nil {
		t.Fatalf("told: %+v", first)
	}
	calls := len(b.aws.Calls())
	for _, c := range b.aws.Calls() {
		if c.Write {
			t.Errorf("the review has written: %s", c.Operation)
		}
	}
	f := first.Forecast.Timeline
	if f.Outcome != timeline.Converged || f.Changed != 1 || f.Launched != 1 || f.End < 60 || len(f.Points) < 3 || len(f.Doubts) > 0 || len(f.Waiting) > 0 || !f.Began.IsZero() {
		t.Errorf("foreseen: %+v", f)
	}
	// Another look at AWS, at another moment and by another process, with the same plan.
	b.awsClock.Advance(7*time.Hour + 13*time.Second + 370*time.Millisecond)
	b.restart()
	b.compose()
	b.aws.ResetCalls()
	b.round()
	again := b.display.last()
	if again.Digest != first.Digest || !reflect.DeepEqual(again.Forecast, first.Forecast) {
		t.Errorf("digest %s, foreseen %+v;\nwas %s, %+v", again.Digest, again.Forecast.Timeline, first.Digest, f)
	}
	if n := len(b.aws.Calls()); n > calls {
		t.Errorf("%d calls, and %d before", n, calls)
	}
	// The same plan on a later commit takes it over.
	b.propose(1, map[string]string{"README.md": "something else"})
	b.round()
	if p := b.display.last(); p.HeadSHA == again.HeadSHA || p.Forecast != again.Forecast {
		t.Errorf("foreseen anew: %+v", p.Forecast)
	}
	// Who asks for a plan gets both anew.
	b.forge.say(1, "writer", "weir plan")
	b.round()
	if p := b.display.last(); p.Forecast == nil || p.Forecast == again.Forecast || !reflect.DeepEqual(p.Forecast, again.Forecast) {
		t.Errorf("asked for: %+v", p.Forecast)
	}
}

// Where it takes too long, or is known to, the plan says what to run. Neither keeps it from
// being shown.
func TestAPlanThatIsNotForeseen(t *testing.T) {
	told := func(b *bench) *report.Forecast {
		t.Helper()
		b.round()
		p := b.display.last()
		if p.State != report.PullPlanned || p.Digest == "" {
			t.Fatalf("told: %+v", p)
		}
		return p.Forecast
	}
	b := foreseen(t, "")
	b.within = time.Nanosecond
	b.restart()
	b.compose()
	if f := told(b); f == nil || f.Timeline != nil || f.Command != "weir simulate --config weir.yaml --pull-request s#1" {
		t.Errorf("no time: %+v", f)
	}
	b = foreseen(t, "")
	var all strings.Builder
	for i := range mostForeseen {
		all.WriteString("---\n" + pool(fmt.Sprintf("p%03d", i)))
	}
	b.propose(1, map[string]string{"o/one/pool.yaml": all.String()})
	began := len(b.display.shown)
	if f := told(b); f == nil || f.Timeline != nil || f.Command == "" || len(b.display.shown) == began {
		t.Errorf("too large: %+v", f)
	}
	// Nor is it where nobody wants it.
	b = foreseen(t, "")
	b.policy.Forecast = Never
	b.restart()
	b.compose()
	if f := told(b); f != nil {
		t.Errorf("not wanted: %+v", f)
	}
	// A plan without a step has nothing to foresee.
	b = foreseen(t, "")
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one") + "# said otherwise\n", "o/one/more.yaml": "# nothing\n"})
	b.round()
	if p := b.display.last(); p.Forecast != nil {
		t.Errorf("nothing to do: %+v", p.Forecast)
	}
}

// If a simulation fails, the plan is shown, and says so where the forecast would be.
func TestAFaultOfTheForesightIsNoFaultOfThePlan(t *testing.T) {
	b := newBench(t, "", "")
	p := &planning{records: b.w.pulls.records, was: openPull{record: record{Number: 1}}}
	of := report.Pull{State: report.PullPlanned, Reports: []*plan.Report{{Target: "one", Plan: &plan.Plan{Target: "one", Steps: []step.Step{{Verb: step.Update}}}}}}
	b.w.o.Within = time.Minute
	copied := observed.State{Account: "000000000000", Region: "eu-west-1"}
	for name, tt := range map[string]struct {
		stage simulate.Stage
		want  string
	}{
		"AWS was not read": {simulate.Stage{Inputs: &reconciler.PassInputs{}}, "AWS could not be read"},
		"a fault":          {simulate.Stage{Inputs: &reconciler.PassInputs{State: copied}, Reports: []*plan.Report{nil}}, "the simulation has a fault"},
	} {
		s := &scene{Scene: simulate.Scene{Stages: []simulate.Stage{tt.stage}}}
		f := p.foresee(t.Context(), s, of)
		if f == nil || f.Timeline != nil || !strings.Contains(f.Failed, tt.want) {
			t.Errorf("%s: %+v", name, f)
			continue
		}
		p.was.shown = report.Pull{Digest: "d", Forecast: f}
		again := of
		if again.Digest = "d"; p.foresee(t.Context(), s, again) == f {
			t.Errorf("%s: the failure is kept for a later plan", name)
		}
		p.was.shown = report.Pull{}
		if len(b.w.o.Turns.foresees) > 0 {
			t.Errorf("%s: the turn is still held", name)
		}
	}
}

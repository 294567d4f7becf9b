package reconciler_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// A stopped change goes back through windows, approvals and waves, for what is bad serves
// nobody; but what a person suspended or paused is not touched, and a target that is held to
// an earlier revision begins no refresh. Each says so, and once the hold is over all of it goes
// back.
func TestAWayBackUnderAHold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hold func(d *reconciler.Desired)
		// moving and finished say whether the way back is gone while the refresh moves, and once
		// its share is done; says is what tells that it is not.
		moving, finished bool
		says             string
	}{
		"window":    {func(d *reconciler.Desired) { d.Policy.Gates.Window = "opens on Monday" }, true, true, ""},
		"approval":  {func(d *reconciler.Desired) { d.Policy.Gates.AsReviewed = true }, true, true, ""},
		"wave":      {func(d *reconciler.Desired) { d.Policy.Gates.Wave = "waits for the target green" }, true, true, ""},
		"suspended": {func(d *reconciler.Desired) { d.Policy.Suspended = true }, false, false, "suspended"},
		"paused":    {func(d *reconciler.Desired) { d.Set.Pools[0].Paused = true }, false, false, "paused"},
		"held": {func(d *reconciler.Desired) {
			d.Policy.Fallback = &model.Fallback{Revision: strings.Repeat("1", 40), Recorded: true}
		}, true, false, "going back waits for a commit that can be rendered, because the target is held to 1111111"},
	} {
		for when, gone := range map[string]bool{"moving": tt.moving, "finished": tt.finished} {
			t.Run(name+"/"+when, func(t *testing.T) {
				w := newWorld(t)
				w.settle(target("blue", groupPool("web", "m5.large", 10)))
				web := func() reconciler.Desired { return target("blue", groupPool("web", "m5.xlarge", 10)) }
				p := w.governed(permitted(web(), permitOf("web", "another", 0)))
				if when == "moving" {
					w.passesOver(permitted(web(), permitOf("web", p.Hash, 50)), 4)
				} else {
					w.passesOver(permitted(web(), permitOf("web", p.Hash, 30)), 60)
				}
				stop := permitOf("web", p.Hash, 0)
				stop.Stopped, stop.Back, stop.Wait = true, p.Earlier, "was stopped by fleet/waves"
				over := func(hold func(d *reconciler.Desired), passes int) (r *plan.Report) {
					d := permitted(web(), stop)
					hold(&d)
					return w.passesOver(d, passes)
				}
				w.srv.ResetCalls()
				r := over(tt.hold, 60)
				if back := w.versionsOf("web") == "map[v1:10]"; back != gone {
					t.Errorf("%s: all are back %t, want %t; it wrote %v", w.versionsOf("web"), back, gone, w.wrote())
				}
				if tt.says != "" && !gone && !tells(r, tt.says) {
					t.Errorf("%q is said nowhere: %v, %v", tt.says, r.Plan.Steps, r.Pools[0].Conditions)
				}
				if says := tt.says == "suspended" || tt.says == "paused"; says && len(w.wrote()) > 0 {
					t.Errorf("it wrote %v", w.wrote())
				}
				over(func(*reconciler.Desired) {}, 70)
				if got := w.versionsOf("web"); got != "map[v1:10]" || aws.ToString(w.group("web").LaunchTemplate.Version) != "1" {
					t.Errorf("afterwards %s, and the group is at %s", got, aws.ToString(w.group("web").LaunchTemplate.Version))
				}
			})
		}
	}
}

// tells reports whether a step that is held or a condition says a text.
func tells(r *plan.Report, text string) bool {
	for _, s := range r.Plan.Steps {
		if strings.Contains(string(s.Held)+" "+s.HeldReason, text) {
			return true
		}
	}
	for _, p := range r.Pools {
		for _, c := range p.Conditions {
			if strings.Contains(c.Message, text) {
				return true
			}
		}
	}
	return false
}

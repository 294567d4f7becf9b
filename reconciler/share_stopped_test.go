package reconciler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// A stopped change moves no further: its refresh is cancelled, whatever gates hold the
// target's steps otherwise, and nothing starts it again, neither a restart nor an unrelated
// commit nor a revert of a revert.
func TestAStoppedChangeStays(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 10)))
	web := target("blue", groupPool("web", "m5.xlarge", 10))
	p := w.governed(permitted(web, permitOf("web", "another", 0)))
	w.passesOver(permitted(web, permitOf("web", p.Hash, 50)), 2)
	stop := permitOf("web", p.Hash, 0)
	stop.Stopped, stop.Wait = true, "was stopped by fleet/waves"
	d := permitted(web, stop)
	d.Policy.Gates.Window, d.Policy.Gates.Wave = "opens on Monday", "waits for dev"
	w.srv.ResetCalls()
	w.passesOver(d, 30)
	if n := w.writes(); n["autoscaling:CancelInstanceRefresh"] != 1 || len(n) != 1 {
		t.Fatalf("the stop wrote %v", n)
	}
	stands := w.versionsOf("web")
	w.restart()
	w.srv.ResetCalls()
	other := groupPool("web", "m5.xlarge", 10)
	other.Group.Tags = map[string]string{"Name": "web", "team": "a"}
	r := w.passesOver(permitted(target("blue", other), stop), 20)
	if got := w.writes(); got["autoscaling:CreateOrUpdateTags"] != 1 || len(got) != 1 || w.versionsOf("web") != stands {
		t.Errorf("an unrelated commit wrote %v: %s, then %s", got, stands, w.versionsOf("web"))
	}
	if heldFor(r) != "stopped: was stopped by fleet/waves" || !hasCode(r, "rollout-stopped") || hasCode(r, "drift") || r.Pools[0].FailureReason != "rollout-stopped" {
		t.Errorf("held for %q, %v, %+v", heldFor(r), r.Diagnostics, r.Pools[0])
	}
	// A revert goes its own way, and the same again is as bad as before.
	back := target("blue", groupPool("web", "m5.large", 10))
	q := w.governed(permitted(back, permitOf("web", "another", 0)))
	w.settle(permitted(back, permitOf("web", q.Hash, 100)))
	w.srv.ResetCalls()
	w.passesOver(d, 20)
	if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n != 0 || w.versionsOf("web") != "map[v1:10]" {
		t.Errorf("%d refreshes of what was stopped: %s", n, w.versionsOf("web"))
	}
}

// A stopped change goes back where its FleetRollout says so: a first share by AWS's own
// rollback, later ones by a refresh to the version before, as AWS has set the group to the
// bad one by then. Crashes and lost answers change nothing.
func TestAStoppedChangeGoesBack(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"AWS as it documents itself", "AWS takes no refresh that ends below 100"} {
		quotas := []map[string]int{nil, wholesale}[i]
		for j, after := range []string{"in the first share", "after the first share", "in the second share", "rolled whole", "refused"} {
			for k, fault := range []awsemu.FaultKind{0, awsemu.LoseAnswer, awsemu.CutBefore, awsemu.Throttled} {
				if !sampled(4, i, j, k) {
					continue
				}
				t.Run(fmt.Sprint(name, "/", after, "/", fault), func(t *testing.T) {
					w := newWorldWith(t, quotas)
					w.settle(target("blue", groupPool("web", "m5.large", 10)))
					web := target("blue", groupPool("web", "m5.xlarge", 10))
					p := w.governed(permitted(web, permitOf("web", "another", 0)))
					roll := func(share int32, passes int) { w.passesOver(permitted(web, permitOf("web", p.Hash, share)), passes) }
					rollback := 0
					switch after {
					case "in the first share":
						roll(50, 4)
						rollback = 1
					case "after the first share":
						roll(25, 60)
					case "in the second share":
						roll(25, 60)
						roll(75, 4)
						if quotas != nil {
							rollback = 1 // the group was never set to the new version
						}
					case "rolled whole":
						roll(100, 60)
					case "refused":
						roll(50, 4)
						w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "RollbackInstanceRefresh", Code: "IrreversibleInstanceRefresh", Message: "no"})
						rollback = 1
					}
					stop := permitOf("web", p.Hash, 0)
					stop.Stopped, stop.Back, stop.Wait = true, p.Earlier, "was stopped by fleet/waves"
					if fault != 0 {
						for _, operation := range []string{"RollbackInstanceRefresh", "CancelInstanceRefresh", "StartInstanceRefresh"} {
							w.srv.Faults().Add(awsemu.Fault{Kind: fault, Operation: operation})
						}
					}
					w.srv.ResetCalls()
					for n := range 70 {
						_, _ = w.pass(reconciler.Apply, permitted(web, stop))
						if n%7 == 0 {
							w.restart()
						}
						w.clock.Advance(2 * time.Second)
					}
					if got := w.versionsOf("web"); got != "map[v1:10]" || aws.ToString(w.group("web").LaunchTemplate.Version) != "1" {
						t.Errorf("%s, and the group is at %s", got, aws.ToString(w.group("web").LaunchTemplate.Version))
					}
					if n := w.srv.CallCounts()["autoscaling:RollbackInstanceRefresh"]; (n > 0) != (rollback > 0) {
						t.Errorf("%d rollbacks", n)
					}
					w.srv.ResetCalls()
					r := w.passesOver(permitted(web, stop), 10)
					if len(w.wrote()) > 0 || !strings.HasPrefix(heldFor(r), "stopped: ") {
						t.Errorf("it then wrote %v, held for %q", w.wrote(), heldFor(r))
					}
				})
			}
		}
	}
}

// A failed refresh of a governed pool is told to the conductor for as long as AWS lists it,
// also by a process that did not start it, and under whichever permit.
func TestAFailedShareIsTold(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 4)))
	pool := groupPool("web", "m5.xlarge", 4)
	web := target("blue", pool)
	p := w.governed(permitted(web, permitOf("web", "another", 0)))
	w.passesOver(permitted(web, permitOf("web", p.Hash, 50)), 1)
	w.check(w.groups().CancelInstanceRefresh(t.Context(), &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String("web")}))
	w.clock.Advance(time.Minute)
	for _, share := range []int32{50, 0, 100} {
		w.restart()
		w.srv.ResetCalls()
		w.passesOver(permitted(web, permitOf("web", p.Hash, share)), 3)
		q := w.governed(permitted(web, permitOf("web", p.Hash, share)))
		if !strings.Contains(q.Failed, "Cancelled") || !q.Pending || w.srv.CallCounts()["autoscaling:StartInstanceRefresh"] > 0 {
			t.Errorf("%d %%: %+v", share, q)
		}
	}
	w.scope.Retry([]string{"default/web"})
	w.settle(permitted(web, permitOf("web", p.Hash, 100)))
}

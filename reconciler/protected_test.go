package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
)

// TestProtectedMachinesAreNamedBeforeTheRollout: AWS waits for the protection to end, and fails.
// The failed pool counts as none that is as wanted, and a retry rolls it.
func TestProtectedMachinesAreNamedBeforeTheRollout(t *testing.T) {
	w := newWorld(t)
	w.settle(w.written(writtenText("web", "", webSpec)))
	id := aws.ToString(w.group("web").Instances[0].InstanceId)
	protect := func(on bool) {
		w.check(w.groups().SetInstanceProtection(context.Background(), &autoscaling.SetInstanceProtectionInput{AutoScalingGroupName: aws.String("web"), InstanceIds: []string{id}, ProtectedFromScaleIn: aws.Bool(on)}))
	}
	protect(true)
	changed := strings.Replace(webSpec, "m5.large", "m5.xlarge", 1)
	d := w.written(writtenText("web", "", changed))
	if r := w.must(reconciler.PlanOnly, d)[0]; !hasCode(r, "machines-protected") || !strings.Contains(fmt.Sprint(r.Diagnostics), "the machines "+id+" of web") {
		t.Errorf("the plan says nothing of %s: %v", id, r.Diagnostics)
	}
	refreshing := writtenText("web", "", changed) + optionsOfWeb("autoScalingGroup:\n  refreshPreferences:\n    scaleInProtectedInstances: Refresh")
	if r := w.must(reconciler.PlanOnly, w.written(refreshing))[0]; hasCode(r, "machines-protected") {
		t.Errorf("AWS replaces it: %v", r.Diagnostics)
	}
	r := w.must(reconciler.Apply, d)[0]
	for range 200 {
		if r = w.must(reconciler.Apply, d)[0]; hasCode(r, "rollout-failed") {
			break
		}
		w.clock.Advance(time.Minute)
	}
	if !hasCode(r, "rollout-failed") || r.Plan.Summary.Unchanged != 0 || r.Converged() {
		t.Fatalf("%+v, %v", r.Plan.Summary, r.Diagnostics)
	}
	protect(false)
	if r = w.must(reconciler.Apply, d)[0]; !hasCode(r, "rollout-failed") {
		t.Errorf("it is tried again by itself: %v", r.Diagnostics)
	}
	w.scope.Retry([]string{"default/web"})
	w.settle(d)
	for _, i := range w.group("web").Instances {
		if aws.ToString(i.InstanceType) != "m5.xlarge" {
			t.Errorf("%s is %s", aws.ToString(i.InstanceId), aws.ToString(i.InstanceType))
		}
	}
}

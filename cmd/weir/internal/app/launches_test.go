package app

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/status/history"
)

// weir says once for each cause why AWS launches no machine: over later passes and restarts, if two causes take turns, and if AWS names another zone
// at each try.
func TestWhyNoMachineComesIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.ahead.Store(int64(10 * time.Minute)) // by AWS's clock the group is old enough to ask about at once
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	w.repo.Commit("first")
	capacity := func(zone string) ec2.LaunchFault {
		return ec2.LaunchFault{Code: "InsufficientInstanceCapacity", Message: "We currently do not have sufficient m5.large capacity in the Availability Zone you requested (" + zone + ")"}
	}
	quota := ec2.LaunchFault{Code: "VcpuLimitExceeded", Message: "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket"}
	for _, turn := range []struct {
		fault ec2.LaunchFault
		says  string
	}{
		{capacity("eu-west-1a"), "(eu-west-1a)"}, {capacity("eu-west-1b"), "(eu-west-1b)"}, {quota, "vCPU limit"}, {capacity("eu-west-1a"), "(eu-west-1a)"}, {quota, "vCPU limit"},
	} {
		w.aws.Faults().Clear()
		w.aws.Faults().Launches.Add(turn.fault)
		tries := strings.Count(w.query("autoscaling", "DescribeScalingActivities"), turn.says)
		eventually(t, "a launch that fails", func() string {
			made := w.aws.CallCounts()["autoscaling:CreateAutoScalingGroup"] > 0 // by the first daemon
			if made && strings.Count(w.query("autoscaling", "DescribeScalingActivities"), turn.says) <= tries {
				return "none yet"
			}
			return ""
		})
		a, stop := w.start()
		eventually(t, "the pool says why", func() string {
			s, _ := a.current.Targets.Find("prod")
			if s.Last == nil || len(s.Last.Pools) == 0 || !strings.Contains(s.Last.Pools[0].FailureMessage, turn.says) {
				return "not yet"
			}
			return ""
		})
		for range 2 { // it is told no more in later passes
			passed := lastPass(a)
			eventually(t, "a pass", func() string {
				if !lastPass(a).After(passed) {
					return "none yet"
				}
				return ""
			})
		}
		stop()
	}
	a, stop := w.start()
	defer stop()
	events, err := a.current.Activity.QueryEvents(history.Filter{Kinds: []string{"pool-failed"}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range slices.Backward(events) {
		text, _, _ := strings.Cut(e.Text, ";")
		told = append(told, e.Reason+" "+text)
	}
	if len(told) != 2 || !strings.Contains(told[0], "launch-failed AWS launches no machine: We currently do not have sufficient m5.large capacity") || !strings.Contains(told[1], "vCPU limit") {
		t.Errorf("events:\n%s", strings.Join(told, "\n"))
	}
}

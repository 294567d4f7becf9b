package plan

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// Machines that are late say what they wait for, and those that are not say nothing.
func TestLateMachinesSayWhatTheyWaitFor(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	hook := func(name, transition string) intent.LifecycleHook {
		return intent.LifecycleHook{Name: name, LifecycleTransition: "autoscaling:EC2_INSTANCE_" + transition, HeartbeatTimeout: 1800, DefaultResult: "CONTINUE"}
	}
	for name, c := range map[string]struct {
		states []string
		hooks  []intent.LifecycleHook
		after  time.Duration
		want   string
	}{
		"in time":             {[]string{"Pending"}, nil, 4 * time.Minute, ""},
		"late":                {[]string{"InService", "Pending"}, nil, 5 * time.Minute, "03:04 UTC: i-1 is in Pending, so EC2"},
		"many":                {[]string{"Pending", "Pending", "Pending", "Pending", "Pending"}, nil, time.Hour, "i-0, i-1, i-2 and 2 more are in Pending"},
		"hooks not known":     {[]string{"Pending:Wait", "Pending"}, nil, time.Hour, "i-0 is in Pending:Wait until something completes the group's launching lifecycle hook; aws autoscaling"},
		"somebody's hook":     {[]string{"Pending:Wait", "Pending:Wait"}, []intent.LifecycleHook{hook("drain", "TERMINATING"), hook("boot", "LAUNCHING")}, time.Hour, `i-0, i-1 are in Pending:Wait until something completes the lifecycle hook "boot"; from about 2026-01-02 03:34 UTC, if it sends no heartbeat, AWS puts it into service`},
		"EKS's hook":          {[]string{"Pending:Wait"}, []intent.LifecycleHook{hook("Launch-LC-Hook", "LAUNCHING")}, time.Hour, "until its node has joined the cluster and EKS completes"},
		"all have come since": {[]string{"InService"}, nil, time.Hour, ""},
	} {
		pool := groupPool("web", "m5.large", int32(len(c.states)))
		g := observed.Group{Name: pool.Group.Name, DesiredCapacity: int32(len(c.states))}
		for i, s := range c.states {
			g.Instances = append(g.Instances, observed.Instance{ID: "i-" + strconv.Itoa(i), LifecycleState: s, Health: "Healthy"})
		}
		in := model.Input{Now: began.Add(c.after), State: &observed.State{
			Groups: map[string]observed.Group{g.Name: g}, Launches: map[string]observed.Launches{g.Name: {Since: began}}, Hooks: map[string]observed.GroupHooks{g.Name: {Hooks: c.hooks}},
		}}
		if got := launch.PendingReason(in, &pool); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-gitops/weir/reconciler/plan"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg, "v1.2.3")
	m.Report(t.Context(), with(report("prod", pool("prod", "web", rolling(1, 1)), pool("prod", "batch")), plan.Done, rolloutSteps()...))
	m.Report(t.Context(), report("prod", pool("prod", "web"), pool("prod", "batch")))
	broken := report("prod")
	broken.Plan, broken.Err = nil, errors.New("render: broken")
	m.Report(t.Context(), broken)
	m.AWSCall("EC2", "CreateLaunchTemplate", "")
	m.AWSCall("autoscaling", "DescribeAutoScalingGroups", plan.Throttled)
	m.Fetch("fleet", 30*time.Millisecond, noon, nil)
	m.Fetch("fleet", 5*time.Second, noon.Add(time.Hour), errors.New("refused"))
	m.StatusWrite("github", Pending, "written")

	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	want := `
# HELP weir_aws_calls_total Calls to AWS by service, operation and kind of answer.
# TYPE weir_aws_calls_total counter
weir_aws_calls_total{kind="success",operation="CreateLaunchTemplate",service="ec2"} 1
weir_aws_calls_total{kind="throttled",operation="DescribeAutoScalingGroups",service="autoscaling"} 1
# HELP weir_passes_total Passes by target and result: converged, moving, failing or suspended.
# TYPE weir_passes_total counter
weir_passes_total{result="converged",target="prod"} 1
weir_passes_total{result="failing",target="prod"} 1
weir_passes_total{result="moving",target="prod"} 1
# HELP weir_pools Pools by target and Cluster API phase.
# TYPE weir_pools gauge
weir_pools{phase="Running",target="prod"} 2
weir_pools{phase="ScalingUp",target="prod"} 0
# HELP weir_source_fetches_total Fetches by source and result: success or failure.
# TYPE weir_source_fetches_total counter
weir_source_fetches_total{result="failure",source="fleet"} 1
weir_source_fetches_total{result="success",source="fleet"} 1
# HELP weir_source_last_success_timestamp_seconds When the source was last fetched, in Unix time.
# TYPE weir_source_last_success_timestamp_seconds gauge
weir_source_last_success_timestamp_seconds{source="fleet"} 1.7724528e+09
# HELP weir_status_writes_total Commit statuses by forge, state and result: written, unchanged, busy, missing, denied or refused.
# TYPE weir_status_writes_total counter
weir_status_writes_total{forge="github",result="written",state="pending"} 1
# HELP weir_steps_total Steps by resource, verb and how they ended.
# TYPE weir_steps_total counter
weir_steps_total{resource="auto-scaling-group",status="done",verb="rollout"} 1
weir_steps_total{resource="launch-template",status="done",verb="update"} 1
# HELP weir_target_converged Whether everything in AWS is what Git says: 1 or 0.
# TYPE weir_target_converged gauge
weir_target_converged{target="prod"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_aws_calls_total", "weir_passes_total", "weir_pools",
		"weir_source_fetches_total", "weir_source_last_success_timestamp_seconds", "weir_status_writes_total", "weir_steps_total", "weir_target_converged"); err != nil {
		t.Error(err)
	}

	m.RemoveTarget("prod")
	m.RemoveSource("fleet")
	left, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range left {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == "prod" || label.GetValue() == "fleet" {
					t.Errorf("%s still has a series of what is gone", family.GetName())
				}
			}
		}
	}
}

// How far a rollout has come is there to see while it moves, and no longer.
func TestMetricsOfARollout(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg, "v1.2.3")
	names := []string{"weir_rollout_percent", "weir_rollout_instances_left"}
	moving := rolling(4, 5)
	m.Report(t.Context(), report("prod", pool("prod", "web", moving), pool("prod", "batch", moving)))
	m.Report(t.Context(), report("other", pool("other", "web", moving)))
	if n, err := testutil.GatherAndCount(reg, names...); n != 6 || err != nil {
		t.Errorf("three pools roll: %d series, %v", n, err)
	}
	m.Report(t.Context(), report("prod", pool("prod", "web", moving), pool("prod", "batch")))
	m.RemoveTarget("other")
	p := pool("prod", "web", moving)
	want := fmt.Sprintf(`
# HELP weir_rollout_percent How far the rollout of a pool has come, while it moves: 0 to 100.
# TYPE weir_rollout_percent gauge
weir_rollout_percent{namespace=%q,pool="web",target="prod"} %d
`, p.Namespace, p.Rollout.Percentage)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_rollout_percent"); err != nil {
		t.Error(err)
	}
}

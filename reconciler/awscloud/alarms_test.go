package awscloud_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// TestAlarms reads more alarms than fit into a call, some of which do not exist, and does
// not ask again within seconds, nor fails where it may not.
func TestAlarms(t *testing.T) {
	e := start(t)
	c := cloudwatch.NewFromConfig(aws.Config{Region: region, BaseEndpoint: aws.String(e.url), Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", "")})
	var names []string
	for i := range 101 {
		name := fmt.Sprintf("alarm-%03d", i)
		names = append(names, name)
		if i%10 != 0 {
			continue // the others do not exist
		}
		if _, err := c.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{AlarmName: aws.String(name), MetricName: aws.String("m"), Namespace: aws.String("n"), Statistic: types.StatisticSum,
			Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold}); err != nil {
			t.Fatal(err)
		}
	}
	set := func(name string, s types.StateValue) {
		t.Helper()
		if _, err := c.SetAlarmState(t.Context(), &cloudwatch.SetAlarmStateInput{AlarmName: aws.String(name), StateValue: s, StateReason: aws.String("")}); err != nil {
			t.Fatal(err)
		}
	}
	asked := func() (n int) {
		for _, call := range e.srv.Calls() {
			if call.Operation == "DescribeAlarms" {
				n++
			}
		}
		return n
	}
	read := func(names ...string) observed.State {
		t.Helper()
		s, err := e.cloud.Fill(context.Background(), observed.State{}, observed.Needs{Alarms: names})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	set("alarm-000", types.StateValueOk)
	set("alarm-100", types.StateValueAlarm)
	s := read(names...)
	if len(s.Alarms) != 101 || s.Alarms["alarm-000"] != "OK" || s.Alarms["alarm-010"] != "INSUFFICIENT_DATA" || s.Alarms["alarm-001"] != "" || s.Alarms["alarm-100"] != "ALARM" || s.AlarmsUnknown != "" || asked() != 2 {
		t.Errorf("%v (%s) by %d calls", s.Alarms, s.AlarmsUnknown, asked())
	}
	set("alarm-000", types.StateValueAlarm)
	e.clock.Advance(9 * time.Second)
	if s := read("alarm-000"); s.Alarms["alarm-000"] != "OK" || asked() != 2 {
		t.Errorf("%v by %d calls", s.Alarms, asked())
	}
	e.clock.Advance(time.Second)
	if s := read("alarm-000"); s.Alarms["alarm-000"] != "ALARM" || asked() != 3 {
		t.Errorf("%v by %d calls", s.Alarms, asked())
	}
	if s := read(); s.Alarms != nil || asked() != 3 {
		t.Errorf("%v by %d calls, and nothing was asked", s.Alarms, asked())
	}

	// Denied alarms are unknown, and so are answers that are too old.
	e.srv.Faults().Add(awsemu.Fault{Operation: "DescribeAlarms", Kind: awsemu.FailBefore, Code: "AccessDenied", Status: 403, Message: "User: arn:aws:iam::000000000000:user/x is not authorized to perform: cloudwatch:DescribeAlarms", Times: 1})
	e.clock.Advance(time.Minute)
	if s := read("alarm-000"); len(s.Alarms) != 0 || !strings.Contains(s.AlarmsUnknown, "cloudwatch:DescribeAlarms") {
		t.Errorf("%v, %q", s.Alarms, s.AlarmsUnknown)
	}
	if s := read("alarm-000"); s.Alarms["alarm-000"] != "ALARM" || s.AlarmsUnknown != "" {
		t.Errorf("%v, %q: nothing is unknown any more", s.Alarms, s.AlarmsUnknown)
	}
}

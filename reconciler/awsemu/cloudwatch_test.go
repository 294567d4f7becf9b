package awsemu_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/fxamacker/cbor/v2"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func (e *env) cloudwatch() *cloudwatch.Client { return cloudwatch.NewFromConfig(e.cfg) }

// alarm makes an alarm on the errors of a load balancer.
func (e *env) alarm(name string) {
	e.t.Helper()
	must(e.cloudwatch().PutMetricAlarm(ctx, alarmInput(name)))(e.t)
}

func alarmInput(name string) *cloudwatch.PutMetricAlarmInput {
	return &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String(name), MetricName: aws.String("HTTPCode_ELB_5XX_Count"), Namespace: aws.String("AWS/ApplicationELB"), Statistic: types.StatisticSum,
		Period: aws.Int32(60), EvaluationPeriods: aws.Int32(2), Threshold: aws.Float64(1), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		Dimensions: []types.Dimension{{Name: aws.String("LoadBalancer"), Value: aws.String("app/web/1")}},
	}
}

func (e *env) setAlarm(name string, s types.StateValue) {
	e.t.Helper()
	must(e.cloudwatch().SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{AlarmName: aws.String(name), StateValue: s, StateReason: aws.String("a test says so")}))(e.t)
}

func (e *env) alarms(in *cloudwatch.DescribeAlarmsInput) []types.MetricAlarm {
	e.t.Helper()
	return must(e.cloudwatch().DescribeAlarms(ctx, in))(e.t).MetricAlarms
}

func TestAlarms(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.alarm("errors")
	made := e.alarms(&cloudwatch.DescribeAlarmsInput{AlarmNames: []string{"errors", "no-such-alarm"}})
	if len(made) != 1 || made[0].StateValue != types.StateValueInsufficientData || !aws.ToTime(made[0].StateUpdatedTimestamp).Equal(epoch) ||
		aws.ToString(made[0].AlarmArn) != "arn:aws:cloudwatch:eu-west-1:000000000000:alarm:errors" || aws.ToFloat64(made[0].Threshold) != 1 || !aws.ToBool(made[0].ActionsEnabled) {
		t.Errorf("made %+v", made)
	}
	e.advance(time.Minute)
	e.setAlarm("errors", types.StateValueAlarm)
	in := alarmInput("errors")
	in.Threshold = aws.Float64(2.5)
	must(e.cloudwatch().PutMetricAlarm(ctx, in))(t)
	changed := e.alarms(&cloudwatch.DescribeAlarmsInput{StateValue: types.StateValueAlarm})
	if len(changed) != 1 || aws.ToFloat64(changed[0].Threshold) != 2.5 || aws.ToString(changed[0].StateReason) != "a test says so" || !aws.ToTime(changed[0].StateTransitionedTimestamp).Equal(epoch.Add(time.Minute)) {
		t.Errorf("an update must leave the state: %+v", changed)
	}
	for n := range 4 {
		e.alarm(fmt.Sprintf("other-%d", n))
	}
	pages := cloudwatch.NewDescribeAlarmsPaginator(e.cloudwatch(), &cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: aws.String("other-"), MaxRecords: aws.Int32(3)})
	var sizes []int
	for pages.HasMorePages() {
		sizes = append(sizes, len(must(pages.NextPage(ctx))(t).MetricAlarms))
	}
	if fmt.Sprint(sizes) != "[3 1]" {
		t.Errorf("pages of %v", sizes)
	}
	if elsewhere := e.in("us-east-1").alarms(&cloudwatch.DescribeAlarmsInput{}); len(elsewhere) != 0 {
		t.Errorf("in another region: %+v", elsewhere)
	}

	_, err := e.cloudwatch().SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("gone"), StateValue: types.StateValueOk, StateReason: aws.String("")})
	wantCode(t, err, "ResourceNotFound")
	_, err = e.cloudwatch().SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("errors"), StateValue: types.StateValueOk, StateReason: aws.String(""), StateReasonData: aws.String("{")})
	wantCode(t, err, "InvalidFormat")
	_, err = e.cloudwatch().DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{NextToken: aws.String("guess")})
	wantCode(t, err, "InvalidNextToken")
	_, err = e.cloudwatch().DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{StateValue: "BROKEN"})
	wantCode(t, err, "ValidationError")
	for name, spoil := range map[string]func(*cloudwatch.PutMetricAlarmInput){
		"period": func(in *cloudwatch.PutMetricAlarmInput) { in.Period = aws.Int32(45) },
		"m of n": func(in *cloudwatch.PutMetricAlarmInput) { in.DatapointsToAlarm = aws.Int32(3) },
		"both":   func(in *cloudwatch.PutMetricAlarmInput) { in.ExtendedStatistic = aws.String("p90") },
		"metric": func(in *cloudwatch.PutMetricAlarmInput) { in.MetricName = nil },
	} {
		in := alarmInput("bad")
		spoil(in)
		_, err := e.cloudwatch().PutMetricAlarm(ctx, in)
		if code(err) != "ValidationError" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = e.cloudwatch().DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{"other-0", "gone", "other-1"}})
	wantCode(t, err, "ResourceNotFound")
	if left := e.alarms(&cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: aws.String("other-")}); len(left) != 2 {
		t.Errorf("left %+v: those that exist are deleted though one does not", left)
	}
	must(e.cloudwatch().DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{"errors"}}))(t)
}

// TestAlarmsSurviveARestart saves the state and loads it.
func TestAlarmsSurviveARestart(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.alarm("errors")
	e.setAlarm("errors", types.StateValueAlarm)
	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}
	again := start(t, awsemu.Options{})
	if err := again.srv.Load(&saved); err != nil {
		t.Fatal(err)
	}
	if a := again.alarms(&cloudwatch.DescribeAlarmsInput{}); len(a) != 1 || a[0].StateValue != types.StateValueAlarm || len(a[0].Dimensions) != 1 {
		t.Errorf("loaded %+v", a)
	}
	again.setAlarm("errors", types.StateValueOk)
}

// TestARefreshEndsByItsAlarm is in each phase of a refresh that an alarm can end.
func TestARefreshEndsByItsAlarm(t *testing.T) {
	const failed, rolledBack = asgtypes.InstanceRefreshStatusFailed, asgtypes.InstanceRefreshStatusRollbackSuccessful
	for name, c := range map[string]struct {
		rollback bool
		bake     int32
		share    []int32 // checkpoints
		at       asgtypes.InstanceRefreshStatus
		want     asgtypes.InstanceRefreshStatus
		within   time.Duration // of the alarm's change
	}{
		"in progress":     {at: asgtypes.InstanceRefreshStatusInProgress, want: failed, within: time.Minute},
		"before it began": {at: asgtypes.InstanceRefreshStatusPending, want: failed, within: time.Minute},
		"baking":          {bake: 3600, at: asgtypes.InstanceRefreshStatusBaking, want: failed, within: time.Minute},
		"rolled back":     {rollback: true, at: asgtypes.InstanceRefreshStatusInProgress, want: rolledBack, within: time.Hour},
		"at a checkpoint": {share: []int32{25, 100}, at: "checkpoint", want: failed, within: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			id := e.group("web", 4)
			e.version(id, e.machine())
			e.alarm("errors")
			e.alarm("other")
			e.setAlarm("errors", types.StateValueOk)
			p := &asgtypes.RefreshPreferences{MinHealthyPercentage: aws.Int32(75), CheckpointPercentages: c.share, AlarmSpecification: &asgtypes.AlarmSpecification{Alarms: []string{"errors"}}}
			if c.rollback {
				p.AutoRollback = aws.Bool(true)
			}
			if c.bake > 0 {
				p.BakeTime = aws.Int32(c.bake)
			}
			e.refresh("web", id, "2", p)
			if got := e.lastRefresh("web").Preferences.AlarmSpecification; got == nil || strings.Join(got.Alarms, " ") != "errors" {
				t.Errorf("alarms = %+v", got)
			}
			if c.at == "checkpoint" {
				for range 200 {
					if strings.Contains(aws.ToString(e.lastRefresh("web").StatusReason), "checkpoint") {
						break
					}
					e.advance(500 * time.Millisecond)
				}
			} else {
				e.until("web", c.at)
			}
			e.setAlarm("other", types.StateValueAlarm)
			e.setAlarm("errors", types.StateValueInsufficientData)
			e.advance(time.Second)
			if f := e.lastRefresh("web"); c.at == asgtypes.InstanceRefreshStatusBaking && f.Status != c.at || f.Status == failed {
				t.Fatalf("ended as %s (%s) by no alarm of its own", f.Status, aws.ToString(f.StatusReason))
			}
			began := e.clock.Now()
			e.setAlarm("errors", types.StateValueAlarm)
			f := e.until("web", c.want)
			text := aws.ToString(f.StatusReason)
			if !strings.Contains(text, "errors") || e.clock.Now().Sub(began) > c.within {
				t.Errorf("after %s: %s", e.clock.Now().Sub(began), text)
			}
			if v := aws.ToString(e.read("web").LaunchTemplate.Version); v != "1" {
				t.Errorf("the group has version %s", v)
			}
		})
	}
	t.Run("no alarm of the name", func(t *testing.T) {
		e := start(t, awsemu.Options{})
		id := e.group("web", 1)
		_, err := e.autoscaling().StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("web"),
			DesiredConfiguration: &asgtypes.DesiredConfiguration{LaunchTemplate: spec(id, "1")},
			Preferences:          &asgtypes.RefreshPreferences{AlarmSpecification: &asgtypes.AlarmSpecification{Alarms: []string{"gone"}}}})
		wantCode(t, err, "ValidationError")
	})
}

// TestABakeThatAnAlarmTouchesEndsInTime: what looks at an alarm must not end the bake.
func TestABakeThatAnAlarmTouchesEndsInTime(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.group("web", 1)
	e.version(id, e.machine())
	e.alarm("errors")
	e.refresh("web", id, "2", &asgtypes.RefreshPreferences{BakeTime: aws.Int32(600), AlarmSpecification: &asgtypes.AlarmSpecification{Alarms: []string{"errors"}}})
	e.until("web", asgtypes.InstanceRefreshStatusBaking)
	e.setAlarm("errors", types.StateValueOk)
	e.advance(590 * time.Second)
	if f := e.lastRefresh("web"); f.Status != asgtypes.InstanceRefreshStatusBaking {
		t.Errorf("%s before the bake time ended", f.Status)
	}
	e.advance(20 * time.Second)
	if f := e.lastRefresh("web"); f.Status != asgtypes.InstanceRefreshStatusSuccessful {
		t.Errorf("%s after the bake time", f.Status)
	}
}

// TestAlarmsByOtherClients drives alarms with the AWS CLI and boto3, which speak JSON where
// the Go SDK speaks CBOR.
func TestAlarmsByOtherClients(t *testing.T) {
	e := start(t, awsemu.Options{})
	run := func(name string, args ...string) (string, error) {
		t.Helper()
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+*e.cfg.BaseEndpoint, "AWS_ACCESS_KEY_ID=AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1", "AWS_PAGER=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Run("aws", func(t *testing.T) {
		for _, line := range []string{
			"put-metric-alarm --alarm-name errors --metric-name Errors --namespace App --statistic Sum --period 60 --evaluation-periods 1 --threshold 1.5 --comparison-operator GreaterThanThreshold --dimensions Name=Pool,Value=web",
			"set-alarm-state --alarm-name errors --state-value ALARM --state-reason test",
		} {
			if out, err := run("aws", append([]string{"cloudwatch"}, strings.Fields(line)...)...); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
		}
		out, err := run("aws", "cloudwatch", "describe-alarms", "--alarm-names", "errors", "--output", "json")
		var shown struct {
			MetricAlarms []struct {
				StateValue string
				Threshold  float64
			}
		}
		if err != nil || json.Unmarshal([]byte(out), &shown) != nil || len(shown.MetricAlarms) != 1 || shown.MetricAlarms[0].StateValue != "ALARM" || shown.MetricAlarms[0].Threshold != 1.5 {
			t.Errorf("%v\n%s", err, out)
		}
		if out, err := run("aws", "cloudwatch", "set-alarm-state", "--alarm-name", "gone", "--state-value", "OK", "--state-reason", "x"); err == nil || !strings.Contains(out, "(ResourceNotFound)") {
			t.Errorf("%v\n%s", err, out)
		}
		if out, err := run("aws", "cloudwatch", "delete-alarms", "--alarm-names", "errors"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("boto3", func(t *testing.T) {
		out, err := run("python3", "-c", `
try:
    import boto3
except ImportError:
    print("no boto3"); raise SystemExit
c = boto3.client("cloudwatch")
for n in range(3):
    c.put_metric_alarm(AlarmName="b%d" % n, MetricName="Errors", Namespace="App", Statistic="Sum", Period=60, EvaluationPeriods=1, Threshold=1.0, ComparisonOperator="GreaterThanThreshold")
c.set_alarm_state(AlarmName="b1", StateValue="OK", StateReason="test")
names = [a["AlarmName"] + "=" + a["StateValue"] for page in c.get_paginator("describe_alarms").paginate(PaginationConfig={"PageSize": 2}) for a in page["MetricAlarms"]]
print(" ".join(names), c.describe_alarms(AlarmNames=["b1"])["MetricAlarms"][0]["StateUpdatedTimestamp"].year)
try:
    c.delete_alarms(AlarmNames=["gone"])
except c.exceptions.ResourceNotFound as e:
    print(e.response["Error"]["Code"])
`)
		if strings.Contains(out, "no boto3") {
			t.Skip("boto3 is not installed")
		}
		if err != nil || out != "b0=INSUFFICIENT_DATA b1=OK b2=INSUFFICIENT_DATA 2026\nResourceNotFound\n" {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestBrokenCBOR sends what no client sends: it is refused and never has an effect.
func TestBrokenCBOR(t *testing.T) {
	e := start(t, awsemu.Options{})
	encoded := func(v any) string {
		b, err := cbor.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	send := func(path, body string) (int, string) {
		t.Helper()
		r := must(http.NewRequestWithContext(ctx, http.MethodPost, *e.cfg.BaseEndpoint+path, strings.NewReader(body)))(t)
		r.Header.Set("Smithy-Protocol", "rpc-v2-cbor")
		r.Header.Set("Content-Type", "application/cbor")
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260301/eu-west-1/monitoring/aws4_request, SignedHeaders=host, Signature=00")
		resp := must(http.DefaultClient.Do(r))(t)
		defer resp.Body.Close()
		defer http.DefaultClient.CloseIdleConnections()
		raw := must(io.ReadAll(resp.Body))(t)
		var v map[string]any
		if err := cbor.Unmarshal(raw, &v); err != nil {
			t.Fatalf("the answer %q is no CBOR: %v", raw, err)
		}
		return resp.StatusCode, fmt.Sprint(v["__type"])
	}
	const service = "/service/GraniteServiceVersion20100801/operation/"
	for _, c := range []struct{ path, body, want string }{
		{service + "DescribeAlarms", "", "<nil>"},
		{service + "DescribeAlarms", encoded(map[string]any{"AlarmNames": []string{"a"}}), "<nil>"},
		{service + "DescribeAlarms", encoded([]any{1}), "SerializationException"},
		{service + "DescribeAlarms", encoded(map[int]any{1: 2}), "SerializationException"},
		{service + "DescribeAlarms", "\xa2\x61a\x01\x61a\x02", "SerializationException"},              // a key twice
		{service + "DescribeAlarms", strings.Repeat("\x81", 5000) + "\x01", "SerializationException"}, // too deep
		{service + "DescribeAlarms", "\xbf\xff\xff", "SerializationException"},                        // more than one value
		{service + "DescribeAlarms", encoded(map[string]any{"MaxRecords": 1.5}), "SerializationException"},
		{service + "DescribeAlarms", encoded(map[string]any{"Colour": "red"}), "MalformedInput"},
		{service + "SetAlarmState", "\xa1\x69AlarmName\xc1\xfb\x7f\xf8\x00\x00\x00\x00\x00\x00", "ValidationError"}, // no time
		{service + "NoSuch", "", "InvalidAction"},
		{"/service/Other/operation/DescribeAlarms", "", "InvalidAction"},
	} {
		if status, kind := send(c.path, c.body); kind != c.want || (status == http.StatusOK) != (c.want == "<nil>") {
			t.Errorf("%s %q: %d %s, want %s", c.path, c.body[:min(20, len(c.body))], status, kind, c.want)
		}
	}
	if a := e.alarms(&cloudwatch.DescribeAlarmsInput{}); len(a) != 0 {
		t.Errorf("%+v", a)
	}
}

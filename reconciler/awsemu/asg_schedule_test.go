package awsemu_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func (e *env) schedule(in *autoscaling.PutScheduledUpdateGroupActionInput) error {
	if in.AutoScalingGroupName == nil {
		in.AutoScalingGroupName = aws.String("web")
	}
	if in.ScheduledActionName == nil {
		in.ScheduledActionName = aws.String("a")
	}
	_, err := e.autoscaling().PutScheduledUpdateGroupAction(ctx, in)
	return err
}

// scheduled is what is still to be done to a group, in short.
func (e *env) scheduled(in *autoscaling.DescribeScheduledActionsInput) []string {
	e.t.Helper()
	var out []string
	for {
		page := must(e.autoscaling().DescribeScheduledActions(ctx, in))(e.t)
		for _, a := range page.ScheduledUpdateGroupActions {
			out = append(out, *a.AutoScalingGroupName+" "+*a.ScheduledActionName+" "+a.StartTime.Format("01-02T15:04"))
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			return out
		}
	}
}

// An action changes the group at its time, once or again and again until its end, on
// the emulator's clock and in its time zone, whether the emulator ran through or not.
func TestScheduledActions(t *testing.T) {
	at := func(d time.Duration) *time.Time { return aws.Time(epoch.Add(d)) }
	type in = autoscaling.PutScheduledUpdateGroupActionInput
	for name, tc := range map[string]struct {
		in    in
		times []time.Duration
		want  []string // sizes then; 0 2 20 before
		left  []string
	}{
		"once":          {in{StartTime: at(time.Hour), DesiredCapacity: aws.Int32(5)}, []time.Duration{59 * time.Minute, 2 * time.Hour}, []string{"0 2 20", "0 5 20"}, nil},
		"bounds":        {in{StartTime: at(time.Hour), MinSize: aws.Int32(3), MaxSize: aws.Int32(9)}, []time.Duration{2 * time.Hour}, []string{"3 3 9"}, nil},
		"a lower bound": {in{StartTime: at(time.Hour), MaxSize: aws.Int32(1)}, []time.Duration{2 * time.Hour}, []string{"0 1 1"}, nil},
		"daily": {in{Recurrence: aws.String("30 9 * * *"), DesiredCapacity: aws.Int32(5)}, []time.Duration{89 * time.Minute, 2 * time.Hour, 24 * time.Hour, 26 * time.Hour},
			[]string{"0 2 20", "0 5 20", "0 1 20", "0 5 20"}, []string{"web a 03-03T09:30"}},
		"in a zone": {in{Recurrence: aws.String("0 10 * * *"), TimeZone: aws.String("Europe/Berlin"), DesiredCapacity: aws.Int32(5)}, []time.Duration{59 * time.Minute, time.Hour}, []string{"0 2 20", "0 5 20"},
			[]string{"web a 03-02T09:00"}},
		"from a start": {in{StartTime: at(48 * time.Hour), Recurrence: aws.String("30 9 * * *"), DesiredCapacity: aws.Int32(5)}, []time.Duration{24 * time.Hour, 48 * time.Hour}, []string{"0 1 20", "0 5 20"},
			[]string{"web a 03-03T09:30"}},
		"until an end": {in{EndTime: at(25 * time.Hour), Recurrence: aws.String("30 9 * * *"), DesiredCapacity: aws.Int32(5)}, []time.Duration{2 * time.Hour, 24 * time.Hour, 26 * time.Hour}, []string{"0 5 20", "0 1 20", "0 1 20"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			e.group("web", 2)
			if err := e.schedule(&tc.in); err != nil {
				t.Fatal(err)
			}
			for i, d := range tc.times {
				e.saveAndLoad()
				if d == 24*time.Hour { // by hand, which the action does not undo before its time
					must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("web"), DesiredCapacity: aws.Int32(1)}))(t)
				}
				e.clock.Set(epoch.Add(d))
				if got := sizes(e.read("web")); got != tc.want[i] {
					t.Errorf("after %s: %s, want %s", d, got, tc.want[i])
				}
			}
			if diff := cmp.Diff(tc.left, e.scheduled(&autoscaling.DescribeScheduledActionsInput{AutoScalingGroupName: aws.String("web")})); diff != "" {
				t.Errorf("still scheduled (-want +got):\n%s", diff)
			}
		})
	}
}

// The instances follow, the activity says why, and what cannot be done is told.
func TestWhatAScheduledActionDoes(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	at := func(d time.Duration) *time.Time { return aws.Time(epoch.Add(d)) }
	for name, in := range map[string]*autoscaling.PutScheduledUpdateGroupActionInput{
		"up": {StartTime: at(time.Hour), DesiredCapacity: aws.Int32(2)}, "too much": {StartTime: at(2 * time.Hour), DesiredCapacity: aws.Int32(21)},
		"missed": {StartTime: at(3 * time.Hour), DesiredCapacity: aws.Int32(5)}, "dropped": {StartTime: at(4 * time.Hour), DesiredCapacity: aws.Int32(6)},
	} {
		in.ScheduledActionName = &name
		if err := e.schedule(in); err != nil {
			t.Fatal(err)
		}
	}
	if got := e.scheduled(&autoscaling.DescribeScheduledActionsInput{MaxRecords: aws.Int32(1)}); len(got) != 4 {
		t.Errorf("by page: %v", got)
	}
	if got := e.scheduled(&autoscaling.DescribeScheduledActionsInput{StartTime: at(2 * time.Hour), EndTime: at(3 * time.Hour)}); fmt.Sprint(got) != "[web missed 03-01T11:00 web too much 03-01T10:00]" {
		t.Errorf("within times: %v", got)
	}
	if got := e.scheduled(&autoscaling.DescribeScheduledActionsInput{ScheduledActionNames: []string{"up", "none"}, StartTime: at(9 * time.Hour)}); fmt.Sprint(got) != "[web up 03-01T09:00]" {
		t.Errorf("by name: %v", got)
	}
	must(e.autoscaling().DeleteScheduledAction(ctx, &autoscaling.DeleteScheduledActionInput{AutoScalingGroupName: aws.String("web"), ScheduledActionName: aws.String("dropped")}))(t)
	e.wait(time.Hour + time.Minute)
	wantStates(t, e.read("web"), map[string]int{"InService/1": 2})
	wantTold(t, e.told("web", 1), "At 2026-03-01T09:00:00Z a scheduled action update of AutoScalingGroup constraints to min: 0, max: 20, desired: 2 changing the desired capacity from 1 to 2.")
	e.wait(time.Hour)
	wantTold(t, e.told("web", 1), "Executing scheduled action too much (Failed)")
	must(e.autoscaling().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String("web"), ScalingProcesses: []string{"ScheduledActions"}}))(t)
	e.wait(time.Hour)
	must(e.autoscaling().ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: aws.String("web")}))(t)
	e.wait(3 * time.Hour)
	if got := sizes(e.read("web")); got != "0 2 20" {
		t.Errorf("sizes %s", got)
	}
}

func TestScheduledActionsThatAreRefused(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 0)
	type in = autoscaling.PutScheduledUpdateGroupActionInput
	at := func(d time.Duration) *time.Time { return aws.Time(epoch.Add(d)) }
	if err := e.schedule(&in{StartTime: at(time.Hour), MinSize: aws.Int32(0)}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		in         in
		code, text string
	}{
		{in{AutoScalingGroupName: aws.String("none"), StartTime: at(time.Hour), MinSize: aws.Int32(1)}, "ValidationError", "AutoScalingGroup name not found"},
		{in{StartTime: at(time.Hour)}, "ValidationError", "At least one of"},
		{in{MinSize: aws.Int32(1)}, "ValidationError", "start time or the recurrence"},
		{in{StartTime: at(-time.Hour), MinSize: aws.Int32(1)}, "ValidationError", "Given start time is in the past"},
		{in{Recurrence: aws.String("0 0 * * *"), EndTime: at(-time.Hour), MinSize: aws.Int32(1)}, "ValidationError", "Given end time is in the past"},
		{in{Recurrence: aws.String("0 0 * * *"), StartTime: at(2 * time.Hour), EndTime: at(time.Hour), MinSize: aws.Int32(1)}, "ValidationError", "before the start time"},
		{in{Recurrence: aws.String("0 0 31 2 *"), MinSize: aws.Int32(1)}, "ValidationError", "Given recurrence string: 0 0 31 2 * is invalid"},
		{in{Recurrence: aws.String("0 0 * * *"), TimeZone: aws.String("Mars/Olympus"), MinSize: aws.Int32(1)}, "ValidationError", "time zone"},
		{in{StartTime: at(2 * time.Hour), TimeZone: aws.String("Etc/GMT+9"), MinSize: aws.Int32(1)}, "ValidationError", "with a recurrence"},
		{in{StartTime: at(2 * time.Hour), MinSize: aws.Int32(2), MaxSize: aws.Int32(1)}, "ValidationError", "Max bound, 1"},
		{in{StartTime: at(2 * time.Hour), MinSize: aws.Int32(2), DesiredCapacity: aws.Int32(1)}, "ValidationError", "Desired capacity:1"},
		{in{StartTime: at(2 * time.Hour), MinSize: aws.Int32(-2)}, "ValidationError", "negative"},
		{in{ScheduledActionName: aws.String("b"), StartTime: at(time.Hour), MinSize: aws.Int32(1)}, "AlreadyExists", "with this start time already exists"},
	} {
		wantError(t, e.schedule(&tc.in), tc.code, tc.text)
	}
	_, err := e.autoscaling().DeleteScheduledAction(ctx, &autoscaling.DeleteScheduledActionInput{AutoScalingGroupName: aws.String("web"), ScheduledActionName: aws.String("b")})
	wantError(t, err, "ValidationError", "Scheduled action name not found")
}

// Of a batch each action is made or refused by itself; a group has at most 125.
func TestBatchesOfScheduledActions(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 0)
	batch := func(from, n int) []asgtypes.FailedScheduledUpdateGroupActionRequest {
		in := &autoscaling.BatchPutScheduledUpdateGroupActionInput{AutoScalingGroupName: aws.String("web")}
		for i := from; i < from+n; i++ {
			in.ScheduledUpdateGroupActions = append(in.ScheduledUpdateGroupActions, asgtypes.ScheduledUpdateGroupActionRequest{
				ScheduledActionName: aws.String(fmt.Sprint("n", i)), Recurrence: aws.String("0 0 * * *"), MinSize: aws.Int32(0)})
		}
		in.ScheduledUpdateGroupActions[0].Recurrence = aws.String("bad")
		return must(e.autoscaling().BatchPutScheduledUpdateGroupAction(ctx, in))(t).FailedScheduledUpdateGroupActions
	}
	for from := 0; from < 100; from += 50 {
		if failed := batch(from, 50); len(failed) != 1 || *failed[0].ErrorCode != "ValidationError" || *failed[0].ScheduledActionName != fmt.Sprint("n", from) {
			t.Errorf("failed: %+v", failed)
		}
	}
	if failed := batch(100, 30); len(failed) != 3 || *failed[2].ErrorCode != "LimitExceeded" {
		t.Errorf("failed: %+v", failed)
	}
	_, err := e.autoscaling().BatchPutScheduledUpdateGroupAction(ctx, &autoscaling.BatchPutScheduledUpdateGroupActionInput{AutoScalingGroupName: aws.String("web"),
		ScheduledUpdateGroupActions: make([]asgtypes.ScheduledUpdateGroupActionRequest, 0)})
	wantCode(t, err, "ValidationError")
	gone := must(e.autoscaling().BatchDeleteScheduledAction(ctx, &autoscaling.BatchDeleteScheduledActionInput{AutoScalingGroupName: aws.String("web"), ScheduledActionNames: []string{"n1", "n0"}}))(t)
	if f := gone.FailedScheduledActions; len(f) != 1 || *f[0].ScheduledActionName != "n0" {
		t.Errorf("failed: %+v", f)
	}
	if n := len(e.scheduled(&autoscaling.DescribeScheduledActionsInput{AutoScalingGroupName: aws.String("web")})); n != 124 {
		t.Errorf("%d are left", n)
	}
	_, err = e.autoscaling().BatchDeleteScheduledAction(ctx, &autoscaling.BatchDeleteScheduledActionInput{AutoScalingGroupName: aws.String("web"), ScheduledActionNames: strings.Fields(strings.Repeat("n ", 51))})
	wantError(t, err, "ValidationError", "must not exceed 50")
}

// Topics are told of a group: each of what was put last.
func TestNotifications(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 0)
	c, web := e.autoscaling(), aws.String("web")
	put := func(topic string, kinds ...string) error {
		_, err := c.PutNotificationConfiguration(ctx, &autoscaling.PutNotificationConfigurationInput{AutoScalingGroupName: web, TopicARN: &topic, NotificationTypes: kinds})
		return err
	}
	topic := func(n int) string { return fmt.Sprintf("arn:aws:sns:eu-west-1:000000000000:t%02d", n) }
	kinds := must(c.DescribeAutoScalingNotificationTypes(ctx, &autoscaling.DescribeAutoScalingNotificationTypesInput{}))(t).AutoScalingNotificationTypes
	if len(kinds) != 5 {
		t.Errorf("types: %v", kinds)
	}
	for n := range 10 {
		if err := put(topic(n), kinds...); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(topic(0), kinds[1]); err != nil {
		t.Fatal(err)
	}
	wantError(t, put(topic(10), kinds...), "LimitExceeded", "SNS topics")
	wantError(t, put(topic(0), "autoscaling:NONE"), "ValidationError", "is not a valid Notification Type")
	wantError(t, put("t", kinds...), "ValidationError", "Topic ARN")
	must(c.DeleteNotificationConfiguration(ctx, &autoscaling.DeleteNotificationConfigurationInput{AutoScalingGroupName: web, TopicARN: aws.String(topic(9))}))(t)
	e.saveAndLoad()
	c = e.autoscaling()
	n := 0
	for token := (*string)(nil); ; {
		page := must(c.DescribeNotificationConfigurations(ctx, &autoscaling.DescribeNotificationConfigurationsInput{AutoScalingGroupNames: []string{"web"}, MaxRecords: aws.Int32(20), NextToken: token}))(t)
		if n += len(page.NotificationConfigurations); page.NextToken == nil {
			break
		}
		token = page.NextToken
	}
	if n != 1+8*5 {
		t.Errorf("%d configurations", n)
	}
}

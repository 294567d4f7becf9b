package awsemu_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// createTemplate makes a launch template and returns the error.
func createTemplate(e *env, name string) error {
	_, err := e.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "m5.large"},
	})
	return err
}

// templateNames are the launch templates that there are.
func templateNames(e *env) []string {
	e.t.Helper()
	got := []string{}
	for _, lt := range must(e.ec2().DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{}))(e.t).LaunchTemplates {
		got = append(got, *lt.LaunchTemplateName)
	}
	return got
}

func TestFaults(t *testing.T) {
	op := func(kind awsemu.FaultKind) awsemu.Fault {
		return awsemu.Fault{Kind: kind, Service: "ec2", Operation: "CreateLaunchTemplate", Code: "Unavailable"}
	}
	const cut = "not an API error"
	tests := []struct {
		name  string
		fault awsemu.Fault
		want  string // prefix of the code
		taken bool   // the call had its effect
	}{
		{"fails before", op(awsemu.FailBefore), "Unavailable", false},
		{"cut before", op(awsemu.CutBefore), cut, false},
		{"answer lost", op(awsemu.LoseAnswer), cut, true},
		{"throttled", op(awsemu.Throttled), "RequestLimitExceeded", false},
		{"slow on the clock", awsemu.Fault{Kind: awsemu.Slow, Delay: time.Hour, OnClock: true}, "", true},
		{"other operation", awsemu.Fault{Kind: awsemu.CutBefore, Operation: "DeleteLaunchTemplate"}, "", true},
		{"other resource", awsemu.Fault{Kind: awsemu.CutBefore, Resource: "another"}, "", true},
		{"this resource", awsemu.Fault{Kind: awsemu.CutBefore, Resource: "web"}, cut, false},
		{"a later call", awsemu.Fault{Kind: awsemu.CutBefore, After: 1}, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			e.srv.Faults().Add(tt.fault)
			err := createTemplate(e, "web")
			if got := code(err); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("error = %v, want code %q", err, tt.want)
			}
			e.srv.Faults().Clear()
			want := []string{}
			if tt.taken {
				want = []string{"web"}
			}
			if diff := cmp.Diff(want, templateNames(e)); diff != "" {
				t.Errorf("templates afterwards (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultStrikesAsOftenAsAsked(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, WritesOnly: true, After: 1, Times: 2, Code: "InternalError"})
	var got []string
	for i := 0; i < 5; i++ {
		templateNames(e) // reads do not count
		got = append(got, code(createTemplate(e, fmt.Sprintf("lt-%d", i))))
	}
	if diff := cmp.Diff([]string{"", "InternalError", "InternalError", "", ""}, got); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
	if n := e.srv.Faults().Pending(); n != 0 {
		t.Errorf("%d faults are armed after they struck", n)
	}
}

func TestStaleRead(t *testing.T) {
	e := start(t, awsemu.Options{})
	if err := createTemplate(e, "old"); err != nil {
		t.Fatal(err)
	}
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.StaleRead, Operation: "DescribeLaunchTemplates"})
	if err := createTemplate(e, "new"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"old"}, templateNames(e)); diff != "" {
		t.Errorf("stale read (-want +got):\n%s", diff)
	}
	if got := len(templateNames(e)); got != 2 {
		t.Errorf("the read after it sees %d templates, want 2", got)
	}
}

func TestThrottling(t *testing.T) {
	e := start(t, awsemu.Options{Throttle: true})
	limited := func(n int) int {
		refused := 0
		for i := 0; i < n; i++ {
			if code(createTemplate(e, fmt.Sprintf("lt-%d-%d", e.clock.Now().Unix(), i))) == "RequestLimitExceeded" {
				refused++
			}
		}
		return refused
	}
	if got := limited(60); got != 10 {
		t.Errorf("of 60 creates at once %d were refused, want 10: the burst is 50", got)
	}
	e.advance(2 * time.Second)
	if got := limited(12); got != 2 {
		t.Errorf("of 12 creates 2 s later %d were refused, want 2: 5 come back each second", got)
	}
	// Another action has a bucket of its own, and another protocol its own fault.
	if got := len(templateNames(e)); got != 60 {
		t.Errorf("templates = %d, want 60", got)
	}
	var last error
	for i := 0; i < 41 && last == nil; i++ {
		_, last = e.ssm().GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"x"}})
	}
	wantCode(t, last, "ThrottlingException")
}

func TestCallsAreRecorded(t *testing.T) {
	e := start(t, awsemu.Options{})
	templateNames(e)
	wantCode(t, createTemplate(e, "web"), "")
	wantCode(t, createTemplate(e, "web"), "InvalidLaunchTemplateName.AlreadyExistsException")
	must(e.sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))(t)
	want := map[string]int{"ec2:DescribeLaunchTemplates": 1, "ec2:CreateLaunchTemplate": 2, "sts:GetCallerIdentity": 1}
	if diff := cmp.Diff(want, e.srv.CallCounts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	calls := e.srv.Calls()
	last := calls[2]
	if len(calls) != 4 || !last.Write || last.ErrorCode != "InvalidLaunchTemplateName.AlreadyExistsException" ||
		last.Account != "000000000000" || last.Region != "eu-west-1" || !last.Time.Equal(epoch) || last.Form().Get("LaunchTemplateName") != "web" {
		t.Errorf("third call = %+v", last)
	}
	e.srv.ResetCalls()
	if len(e.srv.Calls()) != 0 || len(e.srv.CallCounts()) != 0 {
		t.Error("calls are left after a reset")
	}
}

func TestSaveAndLoad(t *testing.T) {
	e := start(t, awsemu.Options{})
	newTemplate(e, "web", "owner", "weir")
	token := func(e *env) string {
		out := must(e.ec2().CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateName: aws.String("web"), ClientToken: aws.String("tok"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-0123456789abcdef0"), UserData: aws.String("aGk=")},
		}))(t)
		return fmt.Sprint(*out.LaunchTemplateVersion.VersionNumber)
	}
	token(e)
	role := must(e.sts().AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::123456789012:role/r"), RoleSessionName: aws.String("ss")}))(t)
	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}

	other := start(t, awsemu.Options{})
	if err := other.srv.Load(bytes.NewReader(saved.Bytes())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"web"}, templateNames(other)); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	if got := token(other); got != "2" {
		t.Errorf("a client token from before gave version %s, want 2", got)
	}
	who := must(other.as(*role.Credentials.AccessKeyId).sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))(t)
	if *who.Account != "123456789012" {
		t.Errorf("an access key from before is in account %s", *who.Account)
	}
	var again bytes.Buffer
	fresh := start(t, awsemu.Options{})
	if err := fresh.srv.Load(bytes.NewReader(saved.Bytes())); err != nil {
		t.Fatal(err)
	}
	if err := fresh.srv.Save(&again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved.String(), again.String()); diff != "" {
		t.Errorf("save, load, save differs (-first +second):\n%s", diff)
	}
	newer := newTemplate(other, "second")
	if newer.LaunchTemplateId == nil || len(templateNames(other)) != 2 {
		t.Error("an emulator that was loaded does not take writes")
	}

	for name, text := range map[string]string{
		"no JSON":        "{",
		"other schema":   `{"Schema":"x/v1"}`,
		"no state":       `{"Schema":"awsemu/v1","State":null}`,
		"unknown member": `{"Schema":"awsemu/v1","Colour":1}`,
		"text after it":  saved.String() + "x",
	} {
		if err := other.srv.Load(strings.NewReader(text)); err == nil {
			t.Errorf("Load accepted %s", name)
		}
	}
	if len(templateNames(other)) != 2 {
		t.Error("a Load that failed changed the state")
	}
}

func TestSeed(t *testing.T) {
	e := start(t, awsemu.Options{})
	seed := `{"regions":{"eu-west-1":{
	  "vpcs":[{"id":"vpc-0123456789abcdef0","cidr":"10.0.0.0/16","tags":{"Name":"main"}}],
	  "subnets":[{"id":"subnet-0123456789abcdef0","vpc":"vpc-0123456789abcdef0","zone":"eu-west-1b","cidr":"10.0.1.0/24"}],
	  "securityGroups":[{"id":"sg-0123456789abcdef0","name":"nodes","description":"nodes","vpc":"vpc-0123456789abcdef0"}],
	  "images":[{"id":"ami-0123456789abcdef0","name":"ours-1","architecture":"arm64","created":"2025-11-01T00:00:00Z"}],
	  "parameters":{"/ours/ami":"ami-0123456789abcdef0"},"instanceProfiles":["nodes"],"roles":["deploy"]}}}`
	for i := 0; i < 2; i++ { // the second time changes nothing
		if err := e.srv.Seed(strings.NewReader(seed)); err != nil {
			t.Fatal(err)
		}
	}
	must(e.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0123456789abcdef0"}}))(t)
	own := must(e.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"self"}}))(t).Images
	if len(own) != 1 || *own[0].Name != "ours-1" {
		t.Errorf("own images = %v", own)
	}
	must(e.sts().AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::000000000000:role/deploy"), RoleSessionName: aws.String("ss")}))(t)

	for _, bad := range []string{
		`{"regions":{"mars-1":{}}}`,
		`{"region":{}}`,
		`{"regions":{"eu-west-1":{"vpcs":[{"id":"vpc-1111111111111111a","cidr":"10.9.0.0/16"}],"subnets":[{"id":"subnet-1111111111111111a","vpc":"vpc-none","zone":"eu-west-1a","cidr":"10.9.0.0/24"}]}}}`,
	} {
		if err := e.srv.Seed(strings.NewReader(bad)); err == nil {
			t.Errorf("Seed accepted %s", bad)
		}
	}
	_, err := e.ec2().DescribeVpcs(ctx, &ec2.DescribeVpcsInput{VpcIds: []string{"vpc-1111111111111111a"}})
	wantCode(t, err, "InvalidVpcID.NotFound")
}

package awscloud_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

func createTemplate(e *env, name string) step.CreateLaunchTemplate {
	return step.CreateLaunchTemplate{Name: name, Description: "weir:v1:x", Data: e.data(), Tags: tags(name)}
}

func createGroup(e *env, name string, ref observed.TemplateRef, size int32) step.CreateGroup {
	return step.CreateGroup{
		Group: observed.Group{
			Name: name, MinSize: 0, MaxSize: 5, DesiredCapacity: size, SubnetIDs: e.subnets(),
			GroupSettings: intent.GroupSettings{DefaultCooldown: ptr[int32](200), DefaultInstanceWarmup: ptr[int32](100), CapacityRebalance: ptr(true)}, Template: ref, Tags: groupTags(name),
		},
		LifecycleHooks: []intent.LifecycleHook{{Name: "hook", LifecycleTransition: "autoscaling:EC2_INSTANCE_LAUNCHING", HeartbeatTimeout: 60, DefaultResult: "CONTINUE"}},
	}
}

func TestTemplateLife(t *testing.T) {
	e := start(t)
	made := e.do(createTemplate(e, "web")).Template
	if made.Version != "1" || !strings.HasPrefix(made.ID, "lt-") || made.Name != "web" {
		t.Fatalf("made %+v", made)
	}
	data := e.data()
	data.UserData = "aGVsbG8="
	second := e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: made.ID, Name: "web"}, Description: "two", Data: data, Token: "t1"}).Template
	again := e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: made.ID, Name: "web"}, Description: "two", Data: data, Token: "t1"}).Template
	if want := (observed.TemplateRef{ID: made.ID, Name: "web", Version: "2"}); second != want || again != want {
		t.Errorf("the second version is %+v, repeated %+v, want %+v", second, again, want)
	}
	_, err := e.cloud.Execute(t.Context(), step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: made.ID}, Description: "three", Data: data, Token: "t1"})
	if k := kind(t, err); k != observed.TokenClash {
		t.Errorf("another request with the same token: %q (%v)", k, err)
	}
	e.do(step.SetDefaultVersion{Template: second})
	e.do(step.TagLaunchTemplate{Template: made, Put: map[string]string{observed.TagTarget: "blue"}, Remove: []string{observed.TagPool}})

	s := e.observe(query())
	s = e.fill(s, observed.Needs{Versions: []observed.TemplateRef{{Name: "web", Version: "1"}, {ID: made.ID, Version: "$Latest"}, {Name: "web", Version: "7"}}})
	wantTags := tags("web")
	wantTags[observed.TagTarget] = "blue"
	delete(wantTags, observed.TagPool)
	want := observed.Template{
		ID: made.ID, Name: "web", DefaultVersion: 2, LatestVersion: 2, Tags: wantTags, Missing: map[int64]bool{7: true},
		Versions: map[int64]observed.TemplateVersion{1: {Number: 1, Description: "weir:v1:x", Data: e.data(), Body: content.BodyHash(e.data())},
			2: {Number: 2, Description: "two", Data: data, Body: content.BodyHash(data)}},
	}
	if d := cmp.Diff(want, s.Templates["web"]); d != "" {
		t.Errorf("template (-want +got):\n%s", d)
	}
	for range 2 { // deleting what is gone is done
		e.do(step.DeleteLaunchTemplate{Template: made})
	}
	s = e.fill(e.observe(query()), observed.Needs{TemplateNames: []string{"web"}})
	if len(s.Templates) != 0 || !s.Absent.Templates["web"] {
		t.Errorf("after the deletion: %+v", s)
	}
}

func TestExistingTemplate(t *testing.T) {
	e := start(t)
	first := e.do(createTemplate(e, "web")).Template
	change := func(f func(*step.CreateLaunchTemplate)) step.CreateLaunchTemplate {
		a := createTemplate(e, "web")
		f(&a)
		return a
	}
	tests := map[string]struct {
		action step.CreateLaunchTemplate
		want   observed.ErrorKind
	}{
		"the same":        {createTemplate(e, "web"), ""},
		"other data":      {change(func(a *step.CreateLaunchTemplate) { a.Data.InstanceType = "m5.xlarge" }), observed.Busy},
		"other text":      {change(func(a *step.CreateLaunchTemplate) { a.Description = "weir:v1:y" }), observed.Busy},
		"another pool":    {change(func(a *step.CreateLaunchTemplate) { a.Tags = tags("other") }), observed.Busy},
		"another owner":   {change(func(a *step.CreateLaunchTemplate) { a.Tags[observed.TagOwner] = "dev" }), observed.AlreadyThere},
		"without a owner": {change(func(a *step.CreateLaunchTemplate) { delete(a.Tags, observed.TagOwner) }), observed.AlreadyThere},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res, err := e.cloud.Execute(t.Context(), tt.action)
			if k := kind(t, err); k != tt.want {
				t.Fatalf("got %q (%v), want %q", k, err, tt.want)
			}
			if tt.want == "" && res.Template != first {
				t.Errorf("got %+v, want %+v", res.Template, first)
			}
		})
	}
}

func TestGroupLife(t *testing.T) {
	e := start(t)
	ref := e.do(createTemplate(e, "web")).Template
	e.do(createGroup(e, "web", ref, 2))
	e.clock.Advance(65 * time.Second) // nobody completes the hook
	got := e.observe(query()).Groups["web"]
	if len(got.Instances) != 2 || got.Instances[0].LifecycleState != "InService" || got.Instances[0].Template != ref || got.ARN == "" || got.CreatedAt.IsZero() {
		t.Fatalf("group %+v", got)
	}
	got.Instances, got.ARN, got.CreatedAt, got.Options = nil, "", time.Time{}, intent.GroupOptions{}
	want := createGroup(e, "web", ref, 2).Group
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("group (-want +got):\n%s", d)
	}

	mixed := &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", OnDemandBaseCapacity: 1, OnDemandPercentageAboveBaseCapacity: 20,
		SpotAllocationStrategy: "capacity-optimized", Overrides: []intent.Override{{InstanceType: "m5.large"}, {InstanceType: "m5.xlarge"}}}
	e.do(step.UpdateGroup{Name: "web", MinSize: ptr[int32](1), MaxSize: ptr[int32](4), DesiredCapacity: ptr[int32](3), SubnetIDs: e.subnets()[:1],
		GroupSettings: intent.GroupSettings{DefaultCooldown: ptr[int32](1), DefaultInstanceWarmup: ptr[int32](-1), CapacityRebalance: ptr(false)}, Template: &ref, MixedInstancesPolicy: mixed})
	e.do(step.SetProcesses{Group: "web", Suspend: []string{"AZRebalance", "Terminate"}})
	e.do(step.SetProcesses{Group: "web", Suspend: []string{"Launch"}, Resume: []string{"Terminate"}})
	e.do(step.SetProcesses{Group: "web"}) // nothing is no request for all
	e.do(step.TagGroup{Group: "web", Put: map[string]observed.GroupTag{"k": {Value: "v", PropagateAtLaunch: true}}, Remove: []string{observed.TagPool}})
	got = e.observe(query()).Groups["web"]
	got.Instances, got.ARN, got.CreatedAt, got.Options = nil, "", time.Time{}, intent.GroupOptions{}
	wantTags := groupTags("web")
	wantTags["k"] = observed.GroupTag{Value: "v", PropagateAtLaunch: true}
	delete(wantTags, observed.TagPool)
	want = observed.Group{Name: "web", MinSize: 1, MaxSize: 4, DesiredCapacity: 3, SubnetIDs: e.subnets()[:1], GroupSettings: intent.GroupSettings{DefaultCooldown: ptr[int32](1), CapacityRebalance: ptr(false)},
		Template: ref, MixedInstancesPolicy: mixed, SuspendedProcesses: []string{"AZRebalance", "Launch"}, Tags: wantTags}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("after the update (-want +got):\n%s", d)
	}

	e.do(step.DeleteGroup{Name: "web", Force: true})
	if s := e.observe(query()); len(s.Groups) == 1 && !s.Groups["web"].Deleting {
		t.Errorf("the group is not being deleted: %+v", s.Groups["web"])
	}
	e.clock.Advance(time.Minute)
	e.do(step.DeleteGroup{Name: "web", Force: true})
	s := e.fill(e.observe(query()), observed.Needs{GroupNames: []string{"web"}})
	if len(s.Groups) != 0 || !s.Absent.Groups["web"] {
		t.Errorf("after the deletion: %+v", s)
	}
}

func TestExistingGroup(t *testing.T) {
	e := start(t)
	ref := e.do(createTemplate(e, "web")).Template
	e.do(createGroup(e, "web", ref, 0))
	for name, tt := range map[string]struct {
		tags map[string]observed.GroupTag
		want observed.ErrorKind
	}{
		"the same":      {groupTags("web"), ""},
		"another pool":  {groupTags("other"), observed.Busy},
		"another owner": {map[string]observed.GroupTag{observed.TagOwner: {Value: "dev"}}, observed.AlreadyThere},
	} {
		t.Run(name, func(t *testing.T) {
			a := createGroup(e, "web", ref, 0)
			a.Group.Tags = tt.tags
			_, err := e.cloud.Execute(t.Context(), a)
			if k := kind(t, err); k != tt.want {
				t.Errorf("got %q (%v), want %q", k, err, tt.want)
			}
		})
	}
}

// TestLostAnswers loses the answer of each write: the retry finds its own work,
// and nothing is made twice.
func TestLostAnswers(t *testing.T) {
	e := start(t)
	for _, op := range []string{
		"CreateLaunchTemplate", "CreateLaunchTemplateVersion", "ModifyLaunchTemplate", "CreateTags", "CreateAutoScalingGroup", "UpdateAutoScalingGroup",
		"SuspendProcesses", "CreateOrUpdateTags", "StartInstanceRefresh", "CancelInstanceRefresh", "DeleteAutoScalingGroup", "DeleteLaunchTemplate",
	} {
		e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.LoseAnswer, Operation: op})
	}
	before := e.cloud.AttemptCounts()
	ref := e.do(createTemplate(e, "web")).Template
	next := e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: ref.ID, Name: "web"}, Data: e.data()}).Template
	e.do(step.SetDefaultVersion{Template: next})
	e.do(step.TagLaunchTemplate{Template: ref, Put: map[string]string{"k": "v"}})
	e.do(createGroup(e, "web", ref, 1))
	e.clock.Advance(5 * time.Second)
	e.do(step.UpdateGroup{Name: "web", MaxSize: ptr[int32](7)})
	e.do(step.SetProcesses{Group: "web", Suspend: []string{"AZRebalance"}})
	e.do(step.TagGroup{Group: "web", Put: map[string]observed.GroupTag{"k": {Value: "v"}}})
	// This one has no client token, and is not sent again: it may have ended.
	if id := e.do(step.StartRefresh{Group: "web", Template: next, Preferences: intent.Refresh{Strategy: "Rolling"}}).RefreshID; id == "" {
		t.Error("the refresh whose answer was lost is not found")
	}
	e.do(step.CancelRefresh{Group: "web"})

	s := e.observe(query())
	if tpl := s.Templates["web"]; tpl.LatestVersion != 2 || tpl.DefaultVersion != 2 || tpl.Tags["k"] != "v" {
		t.Errorf("template %+v", tpl)
	}
	if g := s.Groups["web"]; g.MaxSize != 7 || len(g.Instances) != 1 || len(g.SuspendedProcesses) != 1 || g.Tags["k"].Value != "v" {
		t.Errorf("group %+v", g)
	}
	e.clock.Advance(time.Minute)
	e.do(step.DeleteGroup{Name: "web", Force: true})
	e.clock.Advance(time.Minute)
	e.do(step.DeleteLaunchTemplate{Template: ref})
	for op, n := range map[string]int{"ec2:CreateLaunchTemplate": 2, "autoscaling:CreateAutoScalingGroup": 2, "autoscaling:StartInstanceRefresh": 1, "ec2:DeleteLaunchTemplate": 2} {
		if got := e.cloud.AttemptCounts()[op] - before[op]; got != n {
			t.Errorf("%s was sent %d times, want %d", op, got, n)
		}
		if got := e.cloud.CallCounts()[op]; got != 1 {
			t.Errorf("%s counts as %d calls, want 1", op, got)
		}
	}
}

func TestFreshObjectsMayBeInvisible(t *testing.T) {
	e := start(t)
	ref := e.do(createTemplate(e, "web")).Template
	strike := func() {
		e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateAutoScalingGroup", Code: "ValidationError",
			Message: "Launch template lt-1 does not exist", Status: 400})
	}
	strike()
	if _, err := e.cloud.Execute(t.Context(), createGroup(e, "web", ref, 0)); kind(t, err) != observed.Transient {
		t.Errorf("a fresh template that is not visible: %v", err)
	}
	e.clock.Advance(2 * time.Minute)
	strike()
	if _, err := e.cloud.Execute(t.Context(), createGroup(e, "web", ref, 0)); kind(t, err) != observed.NotFound {
		t.Errorf("an old template that does not exist: %v", err)
	}
}

func TestThrottledCallsAreTriedAgain(t *testing.T) {
	e := start(t)
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Throttled, Operation: "DescribeLaunchTemplates"})
	e.observe(query())
	if got := e.cloud.AttemptCounts()["ec2:DescribeLaunchTemplates"]; got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Throttled, Operation: "DescribeLaunchTemplates", Times: 3})
	if _, err := e.cloud.Observe(t.Context(), query()); kind(t, err) != observed.Throttled {
		t.Errorf("throttled to the end: %v", err)
	}
}

func TestOpen(t *testing.T) {
	e := start(t)
	options := sdk.Options{Region: region, EndpointURL: e.url, Embedded: true}
	with := func(f func(*sdk.Options)) sdk.Options {
		o := options
		f(&o)
		return o
	}
	if e.cloud.Account() != "000000000000" || e.cloud.Region() != region {
		t.Errorf("opened %s in %s", e.cloud.Account(), e.cloud.Region())
	}
	t.Setenv("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:1") // what is given explicitly wins
	other := e.open(func(o *sdk.Options) {
		o.RoleARN = "arn:aws:iam::111122223333:role/weir"
		o.AccountID = "111122223333"
	})
	if other.Account() != "111122223333" {
		t.Errorf("the role's account is %s", other.Account())
	}
	if _, err := other.Observe(t.Context(), query()); err != nil {
		t.Error(err)
	}
	_, err := awscloud.Open(t.Context(), with(func(o *sdk.Options) { o.AccountID = "999999999999" }))
	if kind(t, err) != observed.Credentials || !strings.Contains(err.Error(), "000000000000") || !strings.Contains(err.Error(), "999999999999") {
		t.Errorf("another account: %v", err)
	}
	_, err = awscloud.Open(t.Context(), with(func(o *sdk.Options) { o.RoleARN = "arn:aws:iam::000000000000:role/none" }))
	if k := kind(t, err); k != observed.Denied {
		t.Errorf("a role that does not exist: %q %v", k, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = awscloud.Open(ended, options); kind(t, err) != observed.Cancelled {
		t.Errorf("a cancelled open: %v", err)
	}
}

// TestAnswersThatAreNotAWSs reads what a proxy says in AWS's place.
func TestAnswersThatAreNotAWSs(t *testing.T) {
	for status, want := range map[int]observed.ErrorKind{http.StatusBadGateway: observed.Transient, http.StatusTooManyRequests: observed.Throttled, http.StatusOK: observed.Unknown} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html><body><hr></body></html>")
		}))
		_, err := awscloud.Open(t.Context(), sdk.Options{Region: region, EndpointURL: proxy.URL, Embedded: true, Attempts: 1})
		if k := kind(t, err); k != want {
			t.Errorf("status %d: %q (%v), want %q", status, k, err, want)
		}
		proxy.CloseClientConnections()
		proxy.Close()
	}
}

func TestOnCall(t *testing.T) {
	var calls []sdk.CallInfo
	e := start(t, func(o *sdk.Options) { o.OnCall = func(c sdk.CallInfo) { calls = append(calls, c) } })
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Throttled, Operation: "ModifyLaunchTemplate"})
	calls = nil
	if _, err := e.cloud.Execute(t.Context(), step.SetDefaultVersion{Template: observed.TemplateRef{ID: "lt-00000000000000000", Version: "1"}}); kind(t, err) != observed.NotFound {
		t.Fatalf("got %v", err)
	}
	if len(calls) != 1 || calls[0].Service != "ec2" || calls[0].Operation != "ModifyLaunchTemplate" || calls[0].Kind != observed.NotFound || calls[0].Attempts != 2 || calls[0].Throttled != 1 || calls[0].Duration <= 0 {
		t.Errorf("told of %+v", calls)
	}
}

package awscloud_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

func TestTemplatesOfOthersAreRead(t *testing.T) {
	e := start(t)
	const image = "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
	a := e.do(step.CreateLaunchTemplate{Name: "one", Data: intent.TemplateData{ImageID: image, InstanceType: "m5.large", UserData: "c2VjcmV0"}}).Template
	e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: a.ID}, Data: intent.TemplateData{ImageID: image, KeyName: "k"}})
	b := e.do(step.CreateLaunchTemplate{Name: "two", Data: intent.TemplateData{InstanceType: "m5.large"}}).Template
	ctx := context.Background()
	byName := func(a, b resolve.Template) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}
	want := []resolve.Template{{ID: a.ID, Name: "one", Latest: 2, Default: 1}, {ID: b.ID, Name: "two", Latest: 1, Default: 1}}
	e.srv.ResetCalls()
	got, err := e.cloud.TemplatesByName(ctx, []string{"one", "two", "none"})
	slices.SortFunc(got, byName)
	if d := cmp.Diff(want, got); err != nil || d != "" || e.srv.CallCounts()["ec2:DescribeLaunchTemplates"] != 1 {
		t.Errorf("by name: %v, calls %v (-want +got):\n%s", err, e.srv.CallCounts(), d)
	}
	e.srv.ResetCalls()
	got, err = e.cloud.TemplatesByID(ctx, []string{a.ID, b.ID})
	slices.SortFunc(got, byName)
	if d := cmp.Diff(want, got); err != nil || d != "" || e.srv.CallCounts()["ec2:DescribeLaunchTemplates"] != 1 {
		t.Errorf("by id: %v, calls %v (-want +got):\n%s", err, e.srv.CallCounts(), d)
	}
	// One that is missing hides no other.
	got, err = e.cloud.TemplatesByID(ctx, []string{a.ID, "lt-00000000000000000", b.ID})
	slices.SortFunc(got, byName)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("by id with a missing one: %v (-want +got):\n%s", err, d)
	}

	// The image is as it was written, and user data stays out of it.
	v, found, err := e.cloud.TemplateVersion(ctx, a.ID, 1)
	if err != nil || !found || v.Data.ImageID != image || v.Data.InstanceType != "m5.large" || v.Data.UserData != "" {
		t.Errorf("version 1: %+v, %v, %v", v, found, err)
	}
	for _, missing := range []struct {
		id     string
		number int64
	}{{a.ID, 9}, {"lt-00000000000000000", 1}} {
		if _, found, err := e.cloud.TemplateVersion(ctx, missing.id, missing.number); err != nil || found {
			t.Errorf("%+v: found %v, %v", missing, found, err)
		}
	}
}

// weir tells a template that AWS does not let it see from one that does not exist.
func TestTemplatesOfOthersThatMayNotBeRead(t *testing.T) {
	for op, read := range map[string]func(e *env) error{
		"DescribeLaunchTemplates": func(e *env) error {
			_, err := e.cloud.TemplatesByID(context.Background(), []string{"lt-1", "lt-2"})
			return err
		},
		"DescribeLaunchTemplateVersions": func(e *env) error {
			_, _, err := e.cloud.TemplateVersion(context.Background(), "lt-1", 1)
			return err
		},
	} {
		e := start(t)
		e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "ec2", Operation: op, Code: "UnauthorizedOperation", Status: 403})
		if got := kind(t, read(e)); got != observed.Denied {
			t.Errorf("%s: %s", op, got)
		}
	}
}

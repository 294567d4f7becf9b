package awscloud_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// machineEnv has a group with instances in service.
func machineEnv(t *testing.T, size int32) (*env, observed.Group) {
	e := start(t)
	ref := e.do(createTemplate(e, "web")).Template
	e.do(createGroup(e, "web", ref, size))
	e.clock.Advance(65 * time.Second)
	g := e.observe(query()).Groups["web"]
	if len(g.Instances) != int(size) {
		t.Fatalf("the group has %d instances", len(g.Instances))
	}
	return e, g
}

func TestMachine(t *testing.T) {
	e, g := machineEnv(t, 1)
	in := g.Instances[0]
	var found []observed.Machine
	calls := e.counted(func() {
		var err error
		if found, err = e.cloud.Machines(t.Context(), in.ID, true); err != nil || len(found) != 1 {
			t.Fatalf("%d found, %v", len(found), err)
		}
	})
	m := found[0]
	if m.Type != "m5.large" || m.Zone != in.Zone || m.ImageID != e.image() || m.Market != "on-demand" || m.State != "running" || m.LaunchedAt.IsZero() ||
		m.PrivateIP == "" || !strings.HasSuffix(m.PrivateDNS, ".internal") || m.GroupName != "web" || m.Template.Version != "1" || m.Description != "weir:v1:x" {
		t.Errorf("machine %+v", m)
	}
	if listed, ok := m.InGroup(); !ok || listed.LifecycleState != "InService" {
		t.Errorf("in the group: %t, %+v", ok, listed)
	}
	if m.Image.Name == "" || m.Image.CreatedAt == "" || len(m.Notes) > 0 {
		t.Errorf("image %+v, notes %q", m.Image, m.Notes)
	}
	for call, n := range calls {
		if n != 1 {
			t.Errorf("%d calls of %s", n, call)
		}
	}
	if len(calls) != 4 {
		t.Errorf("calls %v", calls)
	}
}

func TestMachinesByPrefix(t *testing.T) {
	e, g := machineEnv(t, 2)
	found, err := e.cloud.Machines(t.Context(), g.Instances[0].ID[:10], false)
	if err != nil || len(found) != 1 || found[0].ID != g.Instances[0].ID || found[0].Image.Name == "" {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err = e.cloud.Machines(t.Context(), "i-", false); err != nil || len(found) != 2 || found[0].Image.Name != "" {
		t.Errorf("several: %+v, %v", found, err)
	}
	if found, err = e.cloud.Machines(t.Context(), "i-00000000000000000", true); err != nil || len(found) != 0 {
		t.Errorf("none: %+v, %v", found, err)
	}
}

func TestMachinesOf(t *testing.T) {
	e, g := machineEnv(t, 3)
	ids := []string{g.Instances[0].ID, g.Instances[2].ID, "i-00000000000000000"}
	var found []observed.Machine
	calls := e.counted(func() {
		var err error
		if found, err = e.cloud.MachinesOf(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
	})
	if len(found) != 2 || found[0].Image.Name == "" || found[1].Image.Name == "" || found[0].PrivateIP == "" || len(calls) != 2 {
		t.Errorf("%+v, calls %v", found, calls)
	}
	remove := e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "ec2", Operation: "DescribeImages", Times: -1, Code: "UnauthorizedOperation", Message: "no"})
	if found, err := e.cloud.MachinesOf(t.Context(), ids); err != nil || len(found) != 2 || len(found[1].Notes) != 1 || !strings.Contains(found[1].Notes[0], "UnauthorizedOperation") {
		t.Errorf("without images: %+v, %v", found, err)
	}
	remove()
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "ec2", Operation: "DescribeInstances", Times: -1, Code: "UnauthorizedOperation", Message: "no"})
	if _, err := e.cloud.MachinesOf(t.Context(), ids); kind(t, err) != observed.Denied {
		t.Error(err)
	}
}

// What AWS does not return of an instance is a note, and the rest is there.
func TestMachineWithoutAllFacts(t *testing.T) {
	for name, c := range map[string]struct {
		before func(e *env, id string)
		note   string
	}{
		"image denied": {func(e *env, _ string) {
			e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "ec2", Operation: "DescribeImages", Times: -1, Code: "UnauthorizedOperation", Message: "no"})
		}, "cannot be read: ec2:DescribeImages: UnauthorizedOperation"},
		"group denied": {func(e *env, _ string) {
			e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "autoscaling", Operation: "DescribeAutoScalingGroups", Times: -1, Code: "AccessDenied", Message: "no"})
		}, "the Auto Scaling group web cannot be read: autoscaling:DescribeAutoScalingGroups: AccessDenied"},
		"template gone": {func(e *env, _ string) {
			e.do(step.DeleteGroup{Name: "web", Force: true})
			e.do(step.DeleteLaunchTemplate{Template: e.observe(query()).Groups["web"].Template})
		}, "no longer exists"},
	} {
		t.Run(name, func(t *testing.T) {
			e, g := machineEnv(t, 1)
			c.before(e, g.Instances[0].ID)
			found, err := e.cloud.Machines(t.Context(), g.Instances[0].ID, true)
			if err != nil || len(found) != 1 || found[0].PrivateIP == "" {
				t.Fatalf("%+v, %v", found, err)
			}
			if !strings.Contains(strings.Join(found[0].Notes, "\n"), c.note) {
				t.Errorf("notes %q, want %q", found[0].Notes, c.note)
			}
		})
	}
}

// An instance may end after EC2 was read. Its group then does not list it.
func TestMachineEndsWhileItIsRead(t *testing.T) {
	e, g := machineEnv(t, 1)
	id := g.Instances[0].ID
	e.do(step.UpdateGroup{Name: "web", DesiredCapacity: ptr[int32](0)})
	for range 600 {
		e.clock.Advance(time.Second)
		found, err := e.cloud.Machines(t.Context(), id, true)
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		m := found[0]
		if strings.Contains(strings.Join(m.Notes, "\n"), "the Auto Scaling group web does not list the instance") {
			if m.State != "terminated" && m.State != "shutting-down" || m.StateReason == "" {
				t.Errorf("%s (%s)", m.State, m.StateReason)
			}
			return
		}
	}
	t.Error("the group always lists the instance")
}

// withoutImages answers a request for an image as AWS does if no image matches.
type withoutImages struct{ *http.Client }

func (w withoutImages) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.Contains(body, []byte("Action=DescribeImages")) {
		return w.Client.Do(r)
	}
	const none = `<DescribeImagesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId><imagesSet/></DescribeImagesResponse>`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader(none)), Request: r}, nil
}

func TestMachineWhoseImageIsGone(t *testing.T) {
	e, g := machineEnv(t, 1)
	cloud := e.open(func(o *sdk.Options) { o.Transport = withoutImages{http.DefaultClient} })
	found, err := cloud.Machines(t.Context(), g.Instances[0].ID, true)
	if err != nil || len(found) != 1 || !strings.Contains(strings.Join(found[0].Notes, "\n"), "no longer exists, or is not shared with this account") {
		t.Errorf("%+v, %v", found, err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestMachineRefused(t *testing.T) {
	for code, want := range map[string]observed.ErrorKind{"UnauthorizedOperation": observed.Denied, "RequestLimitExceeded": observed.Throttled} {
		e, g := machineEnv(t, 1)
		e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "ec2", Operation: "DescribeInstances", Times: -1, Code: code, Message: "no"})
		if _, err := e.cloud.Machines(t.Context(), g.Instances[0].ID, true); kind(t, err) != want {
			t.Errorf("%s: %v, want %s", code, err, want)
		}
	}
}

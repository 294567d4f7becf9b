package awscloud_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const region = "eu-west-1"

// bench is an emulator and a Cloud that is connected to it.
type env struct {
	t     testing.TB
	srv   *awsemu.Server
	url   string
	clock *awsemu.ManualClock
	cloud *awscloud.Cloud
}

func start(t testing.TB, change ...func(*sdk.Options)) *env {
	t.Helper()
	clock := awsemu.NewManualClock(time.Now())
	srv, err := awsemu.New(awsemu.Options{Clock: clock, Quotas: map[string]int{"auto-scaling-groups": 20000, "launch-templates": 20000}})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(srv)
	t.Cleanup(hs.Close)
	e := &env{t: t, srv: srv, url: hs.URL, clock: clock}
	e.cloud = e.open(change...)
	return e
}

// open connects another Cloud to the same emulator.
func (e *env) open(change ...func(*sdk.Options)) *awscloud.Cloud {
	e.t.Helper()
	// No file of the machine's user may have a say.
	if t, ok := e.t.(interface{ Setenv(string, string) }); ok {
		t.Setenv("AWS_CONFIG_FILE", "/dev/null")
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	}
	o := sdk.Options{Region: region, EndpointURL: e.url, Embedded: true, Now: e.clock.Now}
	for _, c := range change {
		c(&o)
	}
	c, err := awscloud.Open(context.Background(), o)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(c.Close)
	return c
}

func (e *env) do(a step.Action) step.Result {
	e.t.Helper()
	res, err := e.cloud.Execute(context.Background(), a)
	if err != nil {
		e.t.Fatalf("%T: %v", a, err)
	}
	return res
}

func (e *env) observe(q observed.Query) observed.State {
	e.t.Helper()
	s, err := e.cloud.Observe(context.Background(), q)
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

func (e *env) fill(s observed.State, n observed.Needs) observed.State {
	e.t.Helper()
	s, err := e.cloud.Fill(context.Background(), s, n)
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

// counted returns the calls that f makes.
func (e *env) counted(f func()) map[string]int {
	e.t.Helper()
	before := e.cloud.CallCounts()
	f()
	out := map[string]int{}
	for k, n := range e.cloud.CallCounts() {
		if n > before[k] {
			out[k] = n - before[k]
		}
	}
	return out
}

// subnets returns the ids of the default VPC's subnets.
func (e *env) subnets() []string {
	e.t.Helper()
	found, err := e.cloud.Subnets(context.Background(), []intent.Filter{{Name: "default-for-az", Values: []string{"true"}}})
	if err != nil {
		e.t.Fatal(err)
	}
	var ids []string
	for _, s := range found {
		ids = append(ids, s.ID)
	}
	return ids
}

// kind is the kind of an Execute error, "" for none.
func kind(t testing.TB, err error) observed.ErrorKind {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *observed.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *plan.Error", err)
	}
	return e.Kind
}

func tags(pool string) map[string]string {
	return map[string]string{observed.TagOwner: "prod", observed.TagTarget: "web", observed.TagSource: "0123456789ab", observed.TagPool: "default/" + pool}
}

func groupTags(pool string) map[string]observed.GroupTag {
	out := map[string]observed.GroupTag{}
	for k, v := range tags(pool) {
		out[k] = observed.GroupTag{Value: v}
	}
	return out
}

// query observes everything that the owner of tags has.
func query() observed.Query {
	return observed.Query{Owner: "prod", Groups: true, Templates: true}
}

// data is a template body that launches.
func (e *env) data() intent.TemplateData {
	return intent.TemplateData{ImageID: e.image(), InstanceType: "m5.large"}
}

// image is an id of an image that the emulator has.
func (e *env) image() string {
	e.t.Helper()
	const name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
	p, err := e.cloud.Parameters(context.Background(), []string{name})
	if err != nil || !strings.HasPrefix(p[name], "ami-") {
		e.t.Fatalf("parameters: %v, %v", p, err)
	}
	return p[name]
}

func ptr[T any](v T) *T { return &v }

package awsemu_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/model/modeltest"
)

// answered are the operations of which an answer was held against AWS's models:
// after all tests these are all that there are.
var answered modeltest.Operations

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if missing := answered.Missing(); code == 0 && len(missing) > 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
			fmt.Println("no test has seen an answer of", missing)
			code = 1
		}
		os.Exit(code)
	}))
}

// epoch is where the clock of each test starts.
var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// env is an emulator behind an HTTP server, with a clock that stands still.
type env struct {
	t     testing.TB
	srv   *awsemu.Server
	clock *awsemu.ManualClock
	cfg   aws.Config
}

// start starts an emulator; the clock is a ManualClock unless the options give one.
func start(t testing.TB, o awsemu.Options) *env {
	t.Helper()
	e := &env{t: t}
	if o.Clock == nil {
		e.clock = awsemu.NewManualClock(epoch)
		o.Clock = e.clock
	}
	srv, err := awsemu.New(o)
	if err != nil {
		t.Fatal(err)
	}
	e.srv = srv
	hs := httptest.NewServer(srv)
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		hs.Close()
	})
	e.cfg = aws.Config{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String(hs.URL),
		Credentials:  credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""),
		HTTPClient: httpbody.Client{Next: &modeltest.Client{
			Next: &http.Client{Transport: transport}, Answer: func(err error) { t.Error(err) }, Answered: answered.Add,
		}},
		// One attempt: a test wants to see each answer.
		Retryer: func() aws.Retryer { return retry.AddWithMaxAttempts(retry.NewStandard(), 1) },
	}
	return e
}

func (e *env) ec2() *ec2.Client                 { return ec2.NewFromConfig(e.cfg) }
func (e *env) autoscaling() *autoscaling.Client { return autoscaling.NewFromConfig(e.cfg) }
func (e *env) eks() *eks.Client                 { return eks.NewFromConfig(e.cfg) }
func (e *env) ssm() *ssm.Client                 { return ssm.NewFromConfig(e.cfg) }
func (e *env) sts() *sts.Client                 { return sts.NewFromConfig(e.cfg) }
func (e *env) iam() *iam.Client                 { return iam.NewFromConfig(e.cfg) }
func (e *env) elb() *elb.Client                 { return elb.NewFromConfig(e.cfg) }
func (e *env) quotas() *servicequotas.Client    { return servicequotas.NewFromConfig(e.cfg) }

// seed adds resources to eu-west-1.
func (e *env) seed(region string) {
	e.t.Helper()
	if err := e.srv.Seed(strings.NewReader(`{"regions": {"eu-west-1": ` + region + `}}`)); err != nil {
		e.t.Fatal(err)
	}
}

// in returns the same emulator seen from another region.
func (e *env) in(region string) *env {
	other := *e
	other.cfg = e.cfg.Copy()
	other.cfg.Region = region
	return &other
}

// as returns the same emulator seen with another access key.
func (e *env) as(key string) *env {
	other := *e
	other.cfg = e.cfg.Copy()
	other.cfg.Credentials = credentials.NewStaticCredentialsProvider(key, "secret", "token")
	return &other
}

// advance moves the clock.
func (e *env) advance(d time.Duration) { e.clock.Advance(d) }

// code is the AWS error code of an error, "" for nil.
func code(err error) string {
	if err == nil {
		return ""
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return "not an API error: " + err.Error()
}

// must returns a call's answer and ends the test on an error.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wantCode checks an error's AWS code.
func wantCode(t testing.TB, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("error code = %q, want %q (%v)", got, want, err)
	}
}

var ctx = context.Background()

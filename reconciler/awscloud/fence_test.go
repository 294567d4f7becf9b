package awscloud_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/execute"
	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awscloud/lookup"
	"github.com/weir-gitops/weir/reconciler/awscloud/probe"
	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/precondition"
)

// lease is a fence whose answers a test sets.
type lease struct {
	refuse atomic.Bool
	asked  atomic.Int64
	until  atomic.Pointer[time.Time]
}

func (l *lease) MayBegin() error {
	l.asked.Add(1)
	if l.refuse.Load() {
		return errors.New("the lease has ended")
	}
	return nil
}

func (l *lease) Until() time.Time {
	if t := l.until.Load(); t != nil {
		return *t
	}
	return time.Now().Add(time.Hour)
}

func (l *lease) end(at time.Time) { l.until.Store(&at) }

// wire is the network: what do says, for each request.
type wire struct {
	sent atomic.Int64
	do   func(*http.Request) (*http.Response, error)
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	w.sent.Add(1)
	return w.do(r)
}

func failing(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// fencedCalls are all operations of the adapter, by service and name, made with a fence
// over a network.
func fencedCalls(t *testing.T, w *wire, f sdk.Fence) (calls map[string]func(context.Context) error, config *aws.Config) {
	t.Helper()
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	usual := sdk.Around
	t.Cleanup(func() { sdk.Around = usual })
	sdk.Around = func(httpbody.Doer) httpbody.Doer { return w }
	client, err := sdk.Load(t.Context(), sdk.Options{Region: region, EndpointURL: "http://aws.invalid", Embedded: true, Attempts: 2, Fence: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	c := client.Config
	c.BaseEndpoint = aws.String("http://aws.invalid")
	var (
		ofEC2, ofGroups, ofEKS = ec2.NewFromConfig(c), autoscaling.NewFromConfig(c), eks.NewFromConfig(c)
		ofIAM, ofKMS           = iam.NewFromConfig(c), kms.NewFromConfig(c)
	)
	calls = map[string]func(context.Context) error{}
	for _, room := range []struct {
		service string
		calls   any
	}{
		{"ec2", execute.OfEC2(ofEC2)}, {"autoscaling", execute.OfAutoScaling(ofGroups)}, {"eks", execute.OfEKS(ofEKS)},
		{"ec2", read.OfEC2(ofEC2)}, {"autoscaling", read.OfAutoScaling(ofGroups)}, {"eks", read.OfEKS(ofEKS)},
		{"ec2", lookup.OfEC2(ofEC2)}, {"eks", lookup.OfEKS(ofEKS)}, {"iam", lookup.OfIAM(ofIAM)}, {"ssm", lookup.OfSSM(ssm.NewFromConfig(c))},
		{"ec2", probe.OfEC2(ofEC2)}, {"iam", probe.OfIAM(ofIAM)}, {"kms", probe.OfKMS(ofKMS)},
		{"elasticloadbalancing", probe.OfElasticLoadBalancing(elb.NewFromConfig(c))}, {"servicequotas", probe.OfServiceQuotas(servicequotas.NewFromConfig(c))},
		{"cloudwatch", read.OfCloudWatch(cloudwatch.NewFromConfig(c))},
		{"kms", awscloud.KMSCalls{Encrypt: ofKMS.Encrypt, Decrypt: ofKMS.Decrypt}},
	} {
		table := reflect.ValueOf(room.calls)
		for i := range table.NumField() {
			call := table.Field(i)
			calls[room.service+":"+table.Type().Field(i).Name] = func(ctx context.Context) error {
				in := reflect.New(call.Type().In(1).Elem())
				fill(in.Elem(), 9)
				err, _ := call.Call([]reflect.Value{reflect.ValueOf(ctx), in})[1].Interface().(error)
				return err
			}
		}
	}
	return calls, &client.Config
}

// fill sets all members of an input, so that none that is required is missing.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth)
			}
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.String:
		v.SetString("x")
	default:
	}
}

// Of all operations of the adapter those that a policy for reading does not allow are
// never sent without the fence's leave, at each attempt; all others are.
func TestNothingThatMayChangeAWSIsSentWithoutTheFence(t *testing.T) {
	f, w := &lease{}, &wire{do: failing}
	calls, config := fencedCalls(t, w, f)
	reads := map[string]bool{}
	policy := iampolicy.Make(iampolicy.Plan, iampolicy.Scope{Partition: "aws", Account: "000000000000", Regions: []string{region}, Instance: "weir",
		PassRoles: []iampolicy.PassRole{{ARN: "arn:aws:iam::000000000000:role/x"}}, KMSKeys: []string{"arn:aws:kms:eu-west-1:000000000000:key/x"}, SSMPrefixes: []string{"/weir"}, Alarms: true})
	for _, s := range policy.Statement {
		for _, action := range s.Action {
			reads[action] = true
		}
	}
	for _, action := range iampolicy.Calls() {
		if calls[action] == nil && action != "sts:AssumeRole" {
			t.Errorf("%s is not tried", action)
		}
	}
	for name, call := range calls {
		f.refuse.Store(true)
		f.asked.Store(0)
		w.sent.Store(0)
		err := call(t.Context())
		service, operation, _ := strings.Cut(name, ":")
		if reads[name] {
			if f.asked.Load() != 0 || w.sent.Load() == 0 {
				t.Errorf("%s reads, and asked the fence %d times and was sent %d times: %v", name, f.asked.Load(), w.sent.Load(), err)
			}
			continue
		}
		e := sdk.Classify(service, operation, err)
		if w.sent.Load() != 0 || f.asked.Load() != 1 || e == nil || e.Kind != observed.Fenced {
			t.Errorf("%s was sent %d times though the fence refused (asked %d times): %v", name, w.sent.Load(), f.asked.Load(), err)
		}
		// Each attempt asks: those that the SDK makes of itself, too.
		f.refuse.Store(false)
		f.asked.Store(0)
		err = call(t.Context())
		if n := w.sent.Load(); n < 2 || n != f.asked.Load() {
			t.Errorf("%s was sent %d times, and the fence asked %d times: %v", name, n, f.asked.Load(), err)
		}
	}
	// Credentials that take until the lease has ended: the signature is not the last word.
	f.refuse.Store(false)
	w.sent.Store(0)
	slow := config.Copy()
	slow.BaseEndpoint = aws.String("http://aws.invalid")
	slow.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		f.refuse.Store(true)
		return aws.Credentials{AccessKeyID: "weir", SecretAccessKey: "weir"}, nil
	})
	_, err := autoscaling.NewFromConfig(slow).DeleteAutoScalingGroup(t.Context(), &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("x")})
	if w.sent.Load() != 0 || err == nil {
		t.Errorf("sent %d times after the lease had ended: %v", w.sent.Load(), err)
	}
}

// A call that was signed in time and is held up on its way is cut when the lease is about
// to end, and nobody knows what came of it; one whose lease was renewed meanwhile is not.
func TestAnAttemptIsCutBeforeTheLeaseEnds(t *testing.T) {
	for name, renewed := range map[string]bool{"ended": false, "renewed": true} {
		t.Run(name, func(t *testing.T) {
			f, w := &lease{}, &wire{}
			calls, _ := fencedCalls(t, w, f)
			synctest.Test(t, func(t *testing.T) {
				const left, needs = 5100 * time.Millisecond, 12 * time.Second
				began := time.Now()
				f.end(began.Add(left - time.Second))
				w.do = func(r *http.Request) (*http.Response, error) {
					select {
					case <-r.Context().Done():
						return nil, r.Context().Err()
					case <-time.After(needs):
						return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<DeleteAutoScalingGroupResponse/>"))}, nil
					}
				}
				if renewed {
					time.AfterFunc(2*time.Second, func() { f.end(began.Add(time.Minute)) })
				}
				err := calls["autoscaling:DeleteAutoScalingGroup"](context.Background())
				took := time.Since(began)
				if renewed {
					if err != nil || took != needs {
						t.Errorf("after %s: %v", took, err)
					}
					return
				}
				e := sdk.Classify("autoscaling", "DeleteAutoScalingGroup", err)
				if e == nil || e.Kind != observed.Transient || e.Code != "LeaseEnded" || took != left-time.Second || w.sent.Load() != 1 {
					t.Errorf("after %s and %d attempts: %v", took, w.sent.Load(), err)
				}
			})
		})
	}
}

// slowly is a fence that takes its time when it is asked at first, as where it reads people's requests.
type slowly struct {
	lease
	takes []time.Duration
}

func (s *slowly) MayBegin() error {
	if len(s.takes) > 0 {
		time.Sleep(s.takes[0])
		s.takes = s.takes[1:]
	}
	return s.lease.MayBegin()
}

// What a call names is looked at by two seconds before it is sent at most, however long the fence takes; and where the fence always does, nothing is sent.
func TestALookIsRecentBehindASlowFence(t *testing.T) {
	const slow = 1900 * time.Millisecond
	for name, tc := range map[string]struct {
		takes []time.Duration
		sent  int64
	}{
		"at once":           {nil, 1},
		"slow once":         {[]time.Duration{slow}, 1},
		"slow twice":        {[]time.Duration{slow, slow}, 1},
		"slow all the time": {[]time.Duration{slow, slow, slow, slow, slow, slow, slow}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := &slowly{takes: tc.takes}, &wire{}
			calls, _ := fencedCalls(t, w, f)
			synctest.Test(t, func(t *testing.T) {
				f.end(time.Now().Add(time.Hour))
				looked := time.Now()
				time.Sleep(slow)
				ctx := precondition.With(context.Background(), func(context.Context) error {
					if time.Since(looked) >= precondition.Within-precondition.AtOnce {
						looked = time.Now()
					}
					return nil
				})
				w.do = func(*http.Request) (*http.Response, error) {
					if age := time.Since(looked); age > precondition.Within {
						t.Errorf("sent %s after the look", age)
					}
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<DeleteAutoScalingGroupResponse/>"))}, nil
				}
				err := calls["autoscaling:DeleteAutoScalingGroup"](ctx)
				if w.sent.Load() != tc.sent || (err == nil) != (tc.sent == 1) {
					t.Errorf("sent %d times: %v", w.sent.Load(), err)
				}
				if e := sdk.Classify("autoscaling", "DeleteAutoScalingGroup", err); err != nil && (e == nil || e.Kind != observed.Fenced) {
					t.Errorf("%v", e)
				}
			})
		})
	}
}

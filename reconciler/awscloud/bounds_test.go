package awscloud_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
)

// hostile speaks AWS's protocols and means harm. Only who asks is answered as it
// should be, so that a Cloud opens.
type hostile struct {
	calls, sent atomic.Int64
	answer      func(w http.ResponseWriter, operation string)
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	operation := ""
	switch {
	case r.Header.Get("X-Amz-Target") != "":
		_, operation, _ = strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	case strings.Contains(r.URL.Path, "/clusters"):
		operation = "eks"
	default:
		form := string(body)
		form = form[strings.Index(form, "Action=")+len("Action="):]
		operation, _, _ = strings.Cut(form, "&")
	}
	if operation == "GetCallerIdentity" {
		fmt.Fprint(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>000000000000</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
		return
	}
	h.calls.Add(1)
	h.answer(w, operation)
}

// write sends a body and counts what the client took of it.
func (h *hostile) write(w io.Writer, text string) error {
	n, err := io.WriteString(w, text)
	h.sent.Add(int64(n))
	return err
}

// around has text in the place of an answer's first member.
func around(operation, member string) string {
	switch operation {
	case "DescribeAutoScalingGroups", "DescribeInstanceRefreshes", "DescribeScalingActivities":
		return "<" + operation + "Response><" + operation + "Result>" + member + "</" + operation + "Result></" + operation + "Response>"
	default:
		return "<" + operation + "Response>" + member + "</" + operation + "Response>"
	}
}

// nextToken is an answer with nothing but a token.
func nextToken(operation, token string) string {
	switch operation {
	case "eks":
		return `{"nextToken":"` + token + `"}`
	case "DescribeParameters":
		return `{"NextToken":"` + token + `"}`
	case "DescribeAutoScalingGroups":
		return around(operation, "<NextToken>"+token+"</NextToken>")
	}
	return around(operation, "<nextToken>"+token+"</nextToken>")
}

func attack(t *testing.T, answer func(h *hostile, w http.ResponseWriter, operation string)) (*hostile, *awscloud.Cloud, string) {
	t.Helper()
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	h := &hostile{}
	h.answer = func(w http.ResponseWriter, operation string) { answer(h, w, operation) }
	hs := httptest.NewServer(h)
	t.Cleanup(hs.Close)
	c, err := awscloud.Open(context.Background(), sdk.Options{Region: region, EndpointURL: hs.URL, Embedded: true, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return h, c, hs.URL
}

// lists are all reads that have pages.
func lists(c *awscloud.Cloud) map[string]func(context.Context) error {
	state := observed.State{Templates: map[string]observed.Template{"t": {ID: "lt-1", Name: "t", LatestVersion: 3}}}
	fill := func(n observed.Needs) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.Fill(ctx, state, n); return err }
	}
	name := observed.NodegroupName{Cluster: "c", Name: "n"}
	return map[string]func(context.Context) error{
		"autoscaling:DescribeAutoScalingGroups": func(ctx context.Context) error {
			_, err := c.Observe(ctx, observed.Query{Owner: "prod", Groups: true})
			return err
		},
		"ec2:DescribeLaunchTemplates": func(ctx context.Context) error {
			_, err := c.Observe(ctx, observed.Query{Owner: "prod", Templates: true})
			return err
		},
		"eks:ListNodegroups": func(ctx context.Context) error {
			_, err := c.Observe(ctx, observed.Query{Owner: "prod", EKSClusters: []string{"c"}})
			return err
		},
		"ec2:DescribeLaunchTemplates, by name":        fill(observed.Needs{TemplateNames: []string{"x"}}),
		"autoscaling:DescribeAutoScalingGroups, all":  fill(observed.Needs{TemplateUsers: true}),
		"eks:ListUpdates":                             fill(observed.Needs{Updates: []observed.NodegroupName{name}}),
		"ec2:DescribeLaunchTemplateVersions":          fill(observed.Needs{Versions: []observed.TemplateRef{{Name: "t", Version: "2"}}}),
		"ec2:DescribeLaunchTemplateVersions, numbers": fill(observed.Needs{Numbers: []string{"t"}}),
		"ec2:DescribeInstances":                       fill(observed.Needs{Launched: []string{"i-1"}}),
		"ec2:DescribeImages": func(ctx context.Context) error {
			_, err := c.Images(ctx, resolve.ImageQuery{IDs: []string{"ami-1"}})
			return err
		},
		"ec2:DescribeInstanceTypes":  func(ctx context.Context) error { _, err := c.Architectures(ctx, []string{"m5.large"}); return err },
		"ec2:DescribeVpcs":           func(ctx context.Context) error { _, err := c.VPCs(ctx); return err },
		"ec2:DescribeSubnets":        func(ctx context.Context) error { _, err := c.Subnets(ctx, nil); return err },
		"ec2:DescribeSecurityGroups": func(ctx context.Context) error { _, err := c.SecurityGroups(ctx, nil); return err },
		"ec2:DescribeLaunchTemplates, foreign": func(ctx context.Context) error {
			_, err := c.TemplatesByName(ctx, []string{"x"})
			return err
		},
		"ssm:DescribeParameters": func(ctx context.Context) error {
			_, err := c.TaggedParameters(ctx, map[string]string{"k": "v"})
			return err
		},
	}
}

// someOf has a read of each protocol, and one that weir's own scanner reads.
func someOf(all map[string]func(context.Context) error) map[string]func(context.Context) error {
	maps.DeleteFunc(all, func(name string, _ func(context.Context) error) bool {
		return !slices.Contains([]string{"autoscaling:DescribeAutoScalingGroups", "ec2:DescribeInstances", "ec2:DescribeVpcs", "eks:ListNodegroups", "ssm:DescribeParameters"}, name)
	})
	return all
}

// TestEndlessLists: a list that never ends is an error of that read, which says
// what was asked and how often.
func TestEndlessLists(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	t.Run("same token", func(t *testing.T) {
		h, c, _ := attack(t, func(h *hostile, w http.ResponseWriter, operation string) {
			_ = h.write(w, nextToken(operation, "again"))
		})
		for name, read := range lists(c) {
			before := h.calls.Load()
			e := wantBound(t, name, read(ctx), "EndlessList")
			if n := h.calls.Load() - before; n > 2 || !strings.Contains(e.Message, "after 2 pages") {
				t.Errorf("%s: %d calls, %v", name, n, e)
			}
		}
	})
	t.Run("always another token", func(t *testing.T) {
		h, c, _ := attack(t, func(h *hostile, w http.ResponseWriter, operation string) {
			_ = h.write(w, nextToken(operation, fmt.Sprint("token-", h.calls.Load())))
		})
		for name, read := range someOf(lists(c)) {
			before := h.calls.Load()
			e := wantBound(t, name, read(ctx), "EndlessList")
			if n := h.calls.Load() - before; n > 1000 || !strings.Contains(e.Message, "1000 pages") {
				t.Errorf("%s: %d calls, %v", name, n, e)
			}
		}
	})
}

// wantBound checks that an error tells the bound and the operation.
func wantBound(t *testing.T, name string, err error, code string) *observed.Error {
	t.Helper()
	service, operation, _ := strings.Cut(name, ":")
	operation, _, _ = strings.Cut(operation, ",")
	var e *observed.Error
	if !errors.As(err, &e) || !errors.Is(err, sdk.ErrBound) || e.Code != code || e.Service != service || e.Operation != operation {
		t.Fatalf("%s: %v", name, err)
	}
	return e
}

// TestEndlessAnswers: an answer that goes on is left, and what was read of it is
// bounded.
func TestEndlessAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	blanks := strings.Repeat(" ", 1<<20)
	flood := func(status int) func(h *hostile, w http.ResponseWriter, operation string) {
		return func(h *hostile, w http.ResponseWriter, operation string) {
			w.WriteHeader(status)
			start := "<" + operation + "Response>"
			if operation == "eks" || operation == "DescribeParameters" || operation == "Decrypt" {
				start = "{"
			}
			for err := h.write(w, start); err == nil; err = h.write(w, blanks) {
				if h.sent.Load() > 200<<20 {
					return
				}
			}
		}
	}
	h, c, url := attack(t, flood(http.StatusOK))
	reads := someOf(lists(c))
	kms := awscloud.NewKMS(sdk.Options{Region: region, EndpointURL: url, Embedded: true, Attempts: 1})
	defer kms.Close()
	reads["kms:Decrypt"] = func(ctx context.Context) error {
		_, err := kms.Decrypt(ctx, "arn:aws:kms:eu-west-1:000000000000:key/1", []byte("x"), nil)
		return err
	}
	reads["iam:GetRole"] = func(ctx context.Context) error { _, _, err := c.Role(ctx, "r"); return err }
	for name, read := range reads {
		h.sent.Store(0)
		wantBound(t, name, read(ctx), "AnswerTooLarge")
		if sent := h.sent.Load(); sent > 64<<20 { // the bound, and what the network holds
			t.Errorf("%s: %d bytes were taken", name, sent)
		}
	}

	h, c, _ = attack(t, flood(http.StatusServiceUnavailable))
	for name, read := range someOf(lists(c)) {
		h.sent.Store(0)
		wantBound(t, name, read(ctx), "AnswerTooLarge")
		if sent := h.sent.Load(); sent > 32<<20 {
			t.Errorf("%s: %d bytes of a failure were taken", name, sent)
		}
	}
}

// TestManyNames: a list of which each name costs a call ends before it costs them.
func TestManyNames(t *testing.T) {
	names := `"n-0"`
	for i := range 6000 {
		names += fmt.Sprintf(`,"n-%d"`, i+1)
	}
	h, c, _ := attack(t, func(h *hostile, w http.ResponseWriter, _ string) {
		_ = h.write(w, `{"nodegroups":[`+names+`],"updateIds":[`+names+`],"clusters":[`+names+`]}`)
	})
	for _, name := range []string{"eks:ListNodegroups", "eks:ListUpdates"} {
		before := h.calls.Load()
		wantBound(t, name, lists(c)[name](context.Background()), "ListTooLong")
		if n := h.calls.Load() - before; n != 1 {
			t.Errorf("%s: %d calls", name, n)
		}
	}
}

// TestCredentialsAreBounded: a token service that floods, asked by the SDK's own
// chain and for a role that is assumed.
func TestCredentialsAreBounded(t *testing.T) {
	var sent atomic.Int64
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The SDK closes a request's body as soon as an answer begins. Where the
		// transport has not read to the body's end by then, it closes the
		// connection, and nothing is read up to a bound.
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(50 * time.Millisecond)
		blanks := strings.Repeat(" ", 1<<20)
		for n, err := 0, error(nil); err == nil && sent.Load() < 200<<20; sent.Add(int64(n)) {
			n, err = io.WriteString(w, blanks)
		}
	}))
	defer hs.Close()
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	check := func(o sdk.Options) {
		t.Helper()
		sent.Store(0)
		o.Region, o.Attempts = region, 1
		_, err := awscloud.Open(context.Background(), o)
		var e *observed.Error
		if !errors.As(err, &e) || e.Kind != observed.Credentials || !errors.Is(err, sdk.ErrBound) {
			t.Errorf("error: %v", err)
		}
		if n := sent.Load(); n > 64<<20 {
			t.Errorf("%d bytes were taken", n)
		}
	}
	check(sdk.Options{EndpointURL: hs.URL, Embedded: true, RoleARN: "arn:aws:iam::000000000000:role/r"})

	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("jwt"), 0o600); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:aws:iam::000000000000:role/r", "AWS_ENDPOINT_URL_STS": hs.URL,
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
	} {
		t.Setenv(k, v)
	}
	check(sdk.Options{})
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "")
	t.Setenv("AWS_ROLE_ARN", "")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", hs.URL)
	check(sdk.Options{})
}

// TestLongErrorTexts: a failure keeps its kind; its texts are cut where it is
// classified, and what is cut is not kept behind it either.
func TestLongErrorTexts(t *testing.T) {
	words := strings.Repeat("no such thing, ", 4<<20/15)
	for what, text := range map[string]string{"words": words, "one word": strings.Repeat("-", 4<<20), "base64": strings.Repeat("A", 4<<20)} {
		_, c, _ := attack(t, func(h *hostile, w http.ResponseWriter, operation string) {
			w.Header().Set("X-Amzn-Errortype", "ValidationException")
			w.Header().Set("X-Amzn-Requestid", strings.Repeat("r", 4000))
			w.WriteHeader(http.StatusBadRequest)
			switch operation {
			case "eks", "DescribeParameters":
				_ = h.write(w, `{"__type":"ValidationException","message":"`+text+`"}`)
			case "DescribeAutoScalingGroups":
				_ = h.write(w, "<ErrorResponse><Error><Code>ValidationException</Code><Message>"+text+"</Message></Error></ErrorResponse>")
			default:
				_ = h.write(w, "<Response><Errors><Error><Code>ValidationException</Code><Message>"+text+"</Message></Error></Errors></Response>")
			}
		})
		for name, read := range someOf(lists(c)) {
			err := read(context.Background())
			var e *observed.Error
			if !errors.As(err, &e) || e.Kind != observed.Invalid || e.Code != "ValidationException" {
				t.Fatalf("%s, %s: %.200v", name, what, err)
			}
			if len(e.Error()) > 5000 || what != "base64" && !strings.HasSuffix(e.Message, "… (cut)") {
				t.Errorf("%s, %s: %d bytes: %.200s", name, what, len(e.Error()), e.Message)
			}
			for behind := errors.Unwrap(e); behind != nil; behind = errors.Unwrap(behind) {
				if len(behind.Error()) > 5000 {
					t.Fatalf("%s, %s: %T is kept behind it with all of the text", name, what, behind)
				}
			}
		}
	}
}

// TestLongTexts: what AWS says to people is cut, a longer value of any other kind
// is an error.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("because ", 3<<20/8)
	_, c, _ := attack(t, func(h *hostile, w http.ResponseWriter, operation string) {
		switch operation {
		case "DescribeInstanceRefreshes":
			_ = h.write(w, around(operation, "<InstanceRefreshes><member><Status>Failed</Status><StatusReason>"+long+"</StatusReason></member></InstanceRefreshes>"))
		case "DescribeScalingActivities":
			_ = h.write(w, around(operation, "<Activities><member><Cause>"+long+"</Cause><Description>"+long+"</Description></member></Activities>"))
		case "eks":
			_ = h.write(w, `{"nodegroup":{"nodegroupName":"n","clusterName":"c","health":{"issues":[{"code":"x","message":"`+long+`"}]}}}`)
		case "DescribeAutoScalingGroups":
			_ = h.write(w, around(operation, "<AutoScalingGroups><member><AutoScalingGroupName>g</AutoScalingGroupName><Tags><member><Key>k</Key><Value>"+long+"</Value></member></Tags></member></AutoScalingGroups>"))
		case "DescribeLaunchTemplates":
			_ = h.write(w, around(operation, "<launchTemplates><item><launchTemplateName>"+long+"</launchTemplateName></item></launchTemplates>"))
		}
	})
	ctx := context.Background()
	query := observed.ActivityQuery{Group: "g"}
	name := observed.NodegroupName{Cluster: "c", Name: "n"}
	s, err := c.Fill(ctx, observed.State{}, observed.Needs{Refreshes: []string{"g"}, Activities: []observed.ActivityQuery{query}, Nodegroups: []observed.NodegroupName{name}})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Activities[query].List) == 0 {
		t.Fatal(s.Activities[query].Refused)
	}
	for what, text := range map[string]string{
		"reason": s.Refreshes["g"].Reason, "cause": s.Activities[query].List[0].Cause, "description": s.Activities[query].List[0].Description,
		"health": s.Nodegroups[name].HealthIssues[0].Message,
	} {
		if len(text) > 5000 || !strings.HasPrefix(text, "because because") || !strings.HasSuffix(text, "… (cut)") {
			t.Errorf("%s: %d bytes: %.100s", what, len(text), text)
		}
	}
	for operation, q := range map[string]observed.Query{"autoscaling:DescribeAutoScalingGroups": {Owner: "prod", Groups: true}, "ec2:DescribeLaunchTemplates": {Owner: "prod", Templates: true}} {
		_, err = c.Observe(ctx, q)
		wantBound(t, operation, err, "TextTooLong")
	}
}

package embedded

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// call makes one query call to EC2 and returns the status and the body's text.
func call(t *testing.T, base string, form url.Values) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	service := map[string]string{"2016-11-15": "ec2", "2011-01-01": "autoscaling"}[form.Get("Version")]
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20250101/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func run(t *testing.T, o Options) (base string, stop func()) {
	t.Helper()
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s.URL(), func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestStateSurvivesARestart(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	o := Options{Listen: "127.0.0.1:0", State: filepath.Join(dir, "state.json"), Seed: filepath.Join(dir, "seed.json")}
	seed := `{"regions":{"eu-west-1":{"parameters":{"/ours/ami":"ami-0123456789abcdef0"}}}}`
	if err := os.WriteFile(o.Seed, []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	create := url.Values{
		"Action": {"CreateLaunchTemplate"}, "Version": {"2016-11-15"}, "LaunchTemplateName": {"mine"},
		"LaunchTemplateData.InstanceType": {"m5.large"},
	}
	base, stop := run(t, o)
	if status, body := call(t, base, create); status != http.StatusOK {
		t.Fatalf("create: %d %s", status, body)
	}
	stop()
	base, stop = run(t, o)
	defer stop()
	if status, body := call(t, base, create); !strings.Contains(body, "AlreadyExists") {
		t.Errorf("the template of the run before is gone: %d %s", status, body)
	}
}

// Each call fails as the file says at that time.
func TestFaultsFollowTheirFile(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	file, seed := filepath.Join(dir, "faults.json"), filepath.Join(dir, "seed.json")
	if err := os.WriteFile(seed, []byte(`{"regions": {"eu-west-1": {"images": [{"id": "ami-0123456789abcdef0", "name": "ours", "architecture": "x86_64"}]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	base, stop := run(t, Options{Listen: "127.0.0.1:0", Faults: file, Seed: seed})
	defer stop()
	create := url.Values{"Action": {"CreateLaunchTemplate"}, "Version": {"2016-11-15"}, "LaunchTemplateName": {"mine"}, "LaunchTemplateData.InstanceType": {"m5.large"}, "LaunchTemplateData.ImageId": {"ami-0123456789abcdef0"}}
	if status, body := call(t, base, create); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	groups := 0
	// refused makes a group, and wants AWS to say why it has no machine.
	refused := func(text string) {
		t.Helper()
		groups++
		name := fmt.Sprint("group-", groups)
		group := url.Values{
			"Action": {"CreateAutoScalingGroup"}, "Version": {"2011-01-01"}, "AutoScalingGroupName": {name}, "LaunchTemplate.LaunchTemplateName": {"mine"},
			"MinSize": {"1"}, "MaxSize": {"1"}, "AvailabilityZones.member.1": {"eu-west-1a"},
		}
		if status, body := call(t, base, group); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		if _, body := call(t, base, url.Values{"Action": {"DescribeScalingActivities"}, "Version": {"2011-01-01"}, "AutoScalingGroupName": {name}}); !strings.Contains(body, text) {
			t.Errorf("want %q: %s", text, body)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused("PreInService")
	write(`{"launches": [{"instanceType": "m5.large", "code": "VcpuLimitExceeded", "message": "no vCPU left"}]}`)
	refused("no vCPU left")
	write(`{"launches": [{"code": "InstanceLimitExceeded", "message": "too many instances"}]}`)
	refused("too many instances")
	write(`{"launches`)
	refused("too many instances")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused("PreInService")
}

func TestNewRefuses(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"a broken state": {Listen: "127.0.0.1:0", State: broken},
		"a missing seed": {Listen: "127.0.0.1:0", Seed: broken + ".gone"},
		"an odd address": {Listen: "nowhere"},
		"an odd quota":   {Listen: "127.0.0.1:0", Quotas: map[string]int{"nope": 1}},
	} {
		if s, err := New(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
			_ = s.Close()
		}
	}
}

// TestConnectionsThatAskNothingFailNoStop: clients dial spare connections and may never
// use them, net/http waits for such a one for five seconds, and nothing is lost with it.
func TestConnectionsThatAskNothingFailNoStop(t *testing.T) {
	defer goleak.VerifyNone(t)
	base, stop := run(t, Options{Listen: "127.0.0.1:0"})
	spare, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = spare.Close() }() // nothing was asked on it
	if status, body := call(t, base, url.Values{"Action": {"DescribeLaunchTemplates"}, "Version": {"2016-11-15"}}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	stop()
}

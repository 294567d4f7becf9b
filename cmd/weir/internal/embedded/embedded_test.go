package embedded

import (
	"context"
	"io"
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
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20250101/eu-west-1/ec2/aws4_request, SignedHeaders=host, Signature=0")
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

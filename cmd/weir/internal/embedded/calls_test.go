package embedded

import (
	"io"
	"net/http"
	"net/url"
	"testing"

	"go.uber.org/goleak"
)

func TestCallsAreCounted(t *testing.T) {
	defer goleak.VerifyNone(t)
	base, stop := run(t, Options{Listen: "127.0.0.1:0"})
	defer stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+"/_calls", nil)
		if err != nil {
			t.Fatal(err)
		}
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
	for _, tt := range []struct {
		method, want string
		status       int
	}{
		{http.MethodGet, "{}\n", http.StatusOK},
		{http.MethodPost, "only GET\n", http.StatusMethodNotAllowed},
	} {
		if status, body := ask(tt.method); status != tt.status || body != tt.want {
			t.Errorf("%s before any call: %d %q", tt.method, status, body)
		}
	}
	for range 2 {
		call(t, base, url.Values{"Action": {"DescribeLaunchTemplates"}, "Version": {"2016-11-15"}})
	}
	call(t, base, url.Values{"Action": {"DescribeAutoScalingGroups"}, "Version": {"2011-01-01"}})
	want := "{\n  \"autoscaling:DescribeAutoScalingGroups\": 1,\n  \"ec2:DescribeLaunchTemplates\": 2\n}\n"
	if _, body := ask(http.MethodGet); body != want {
		t.Errorf("got %s want %s", body, want)
	}
}

package simulate

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/simulate"
)

// client is the daemons' way to AWS. The context says which daemon calls.
type client struct {
	w    *World
	next httpbody.Doer
}

// random are members of requests that differ in each run.
var random = regexp.MustCompile(`(?i)&?(client_?(request_?)?token)(=|":")[^&"]*`)

// Do implements the SDK's HTTP client.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	if r.URL.Host == simulate.Host { // what a daemon foresees happens in its own process
		return c.next.Do(r)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	d := caller(r.Context())
	if d == nil {
		c.w.fail("nobody knows who calls %s", operation(r, body))
		return nil, errDead
	}
	one := &call{daemon: d, service: "aws", region: regionOf(r.URL.Host), name: operation(r, body), body: random.ReplaceAllString(string(body), "")}
	one.write = isWrite(one.name)
	if d.runs(); one.write {
		c.w.begins(one)
	}
	var resp *http.Response
	err := c.w.ask(r.Context(), one, func() {
		if one.write {
			c.w.writes(one, body)
		}
		if f := one.fate.emu; f != nil {
			struck := *f
			struck.Times = 1
			defer c.w.aws.Faults().Add(struck)()
		}
		resp = c.w.serveAWS(r, body)
		c.w.answered(one, body, resp)
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

func (w *World) serveAWS(r *http.Request, body []byte) *http.Response {
	in := r.Clone(r.Context())
	in.Body, in.RequestURI = io.NopCloser(bytes.NewReader(body)), r.URL.RequestURI()
	rec := httptest.NewRecorder()
	rec.Header().Set("Date", w.aheadOf().Format(http.TimeFormat))
	w.aws.ServeHTTP(rec, in)
	resp := rec.Result()
	resp.Request = r
	return resp
}

func operation(r *http.Request, body []byte) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndex(target, ".")+1:]
	}
	if form, err := url.ParseQuery(string(body)); err == nil && form.Get("Action") != "" {
		return form.Get("Action")
	}
	return r.Method + " " + r.URL.Path
}

// regionOf is the region that a host of AWS serves.
func regionOf(host string) string {
	for _, region := range regions {
		if strings.Contains(host, "."+region+".") {
			return region
		}
	}
	return ""
}

func isWrite(operation string) bool {
	for _, prefix := range []string{"Describe", "Get", "List", "AssumeRole", http.MethodGet} {
		if strings.HasPrefix(operation, prefix) {
			return false
		}
	}
	return true
}

// person is the request of somebody at the console.
func (w *World) person(form url.Values) string {
	region := regions[0]
	if t := w.targetOfGroup(groupOf(form)); t != nil {
		region = t.region
	}
	return w.personIn(region, form)
}

func (w *World) personIn(region string, form url.Values) string {
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "https://autoscaling."+region+".amazonaws.com/", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	service, version := "autoscaling", "2011-01-01"
	if strings.Contains(form.Get("Action"), "LaunchTemplate") || strings.HasSuffix(form.Get("Action"), "Tags") && form.Has("ResourceId.1") || strings.HasSuffix(form.Get("Action"), "Instances") {
		service, version = "ec2", "2016-11-15"
	}
	form.Set("Version", version)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIAPERSON/20000101/"+region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=00")
	resp := w.serveAWS(r, []byte(form.Encode()))
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		w.trace("refused: %s: %s", form.Get("Action"), text)
		return ""
	}
	return string(text)
}

// gitServer serves the repository as git itself does. Daemons ask for the refs all the time, so it keeps the answer until they move.
func (w *World) gitServer() http.Handler {
	out, err := exec.CommandContext(w.t.Context(), "git", "--exec-path").Output()
	if err != nil {
		w.t.Skip("the git binary is not installed")
	}
	git := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Root: "/", Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + w.repo.root, "GIT_HTTP_EXPORT_ALL=1"},
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			git.ServeHTTP(rw, r)
			return
		}
		if w.repo.now == nil {
			w.repo.now = httptest.NewRecorder()
			git.ServeHTTP(w.repo.now, r)
		}
		answer := w.repo.now
		if r.Context().Value(staleKey{}) != nil && w.repo.before != nil {
			answer = w.repo.before
		}
		maps.Copy(rw.Header(), answer.Header().Clone())
		rw.WriteHeader(answer.Code)
		_, _ = rw.Write(answer.Body.Bytes())
	})
}

// staleKey is in the context of a question that is answered as it would have been before
// the last push.
type staleKey struct{}

// branchIn is the commit of the branch in what a server said of its refs.
func branchIn(said string) string {
	if i := strings.Index(said, " "+branch); i >= 40 {
		return strings.Clone(said[i-40 : i]) // and none of the rest
	}
	return ""
}

package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/instances"
	"github.com/weir-gitops/weir/status/statustest"
)

const oneInstance = "i-0fedcba9876543210"

// instanceBoard has a pool of 120 instances, and a pool with one.
func instanceBoard(t *testing.T) *current.State {
	b := testBoard("prod")
	many := statustest.Pool("prod", "many")
	many.Instances = nil
	for i := range 120 {
		many.Instances = append(many.Instances, plan.Instance{ID: fmt.Sprintf("i-0aaaaaaaaaaaaa%03d", i), TemplateVersion: "4", Zone: "eu-central-1a", State: "InService", Health: "Healthy"})
	}
	one := statustest.Pool("prod", "one")
	one.TemplateVersions = []plan.VersionNote{{Number: 3, Revision: "9c1f0d2", Subject: "bigger disks"}}
	one.Instances = []plan.Instance{{ID: oneInstance, TemplateVersion: "3", Zone: "eu-central-1b", Type: "c7g.large", State: "Terminating:Wait", Node: "ip-10-0-0-7", Why: "waits for its termination lifecycle hook"}}
	one.Draining = []plan.Draining{{Instance: oneInstance, Until: statustest.Noon.Add(time.Minute)}}
	b.Targets.Report(t.Context(), statustest.Report("prod", many, one))
	return b
}

func asked(b *current.State, o Options, path string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	Handler(b, o).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec
}

// fakeFacts answers as AWS.
type fakeFacts struct {
	machine observed.Machine
	err     error

	mu    sync.Mutex
	asked []string
}

func (f *fakeFacts) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, text)
}

func (f *fakeFacts) AddFacts(_ context.Context, a *instances.Answer) error {
	f.note(a.Target + " " + a.Instance.ID)
	if f.err == nil {
		a.Add(f.machine)
	}
	return f.err
}

func (f *fakeFacts) Facts(_ context.Context, target string, ids []string) (map[string]*instances.Facts, error) {
	f.note(fmt.Sprintf("%s %d", target, len(ids)))
	if f.err != nil {
		return nil, f.err
	}
	var a instances.Answer
	a.Add(f.machine)
	return map[string]*instances.Facts{ids[0]: a.AWS}, nil
}

func TestInstanceAPI(t *testing.T) {
	b := instanceBoard(t)
	for path, want := range map[string]struct {
		code int
		text string
	}{
		oneInstance:                  {200, `"why": "waits for its termination lifecycle hook"`},
		strings.ToUpper(oneInstance): {200, oneInstance},
		"i-0fedcba9":                 {200, oneInstance},
		"i-0fedcba98":                {200, oneInstance},
		"i-0aaaaaaaaaaaaa007":        {200, `"pool": "many"`},
		"i-0aaaaaaa":                 {409, "120 instances begin with i-0aaaaaaa: i-0aaaaaaaaaaaaa000, "},
		"i-0123456789abcdef0":        {404, "weir finds no instance i-0123456789abcdef0 in its pools: it may be terminated, be in a warm pool, or belong to another weir or to a pool that is no longer in Git"},
		"i-0123456":                  {400, "is not an instance id"},
		"i-0123456789abcdef01":       {400, "is not an instance id"},
		"i-0123456789abcdeg0":        {400, "is not an instance id"},
		"web":                        {400, "is not an instance id"},
	} {
		rec := asked(b, Options{}, "/api/v1/instances/"+path)
		if rec.Code != want.code || !strings.Contains(rec.Body.String(), want.text) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
		var wrong apiFault
		if err := json.Unmarshal(rec.Body.Bytes(), &wrong); err != nil || want.code != 200 && (wrong.Message == "" || wrong.Hint == "") {
			t.Errorf("%s: %v, %+v", path, err, wrong)
		}
	}
}

// The answer has the pool and the commit, and what AWS reports, or why AWS does not.
func TestInstanceAnswer(t *testing.T) {
	b := instanceBoard(t)
	ask := func(m observed.Machine, err error) (a instances.Answer) {
		f := &fakeFacts{machine: m, err: err}
		rec := asked(b, Options{Instances: f}, "/api/v1/instances/"+oneInstance)
		if strings.Join(f.asked, ",") != "prod "+oneInstance {
			t.Errorf("asked for %q", f.asked)
		}
		if e := json.Unmarshal(rec.Body.Bytes(), &a); e != nil || rec.Code != 200 {
			t.Fatalf("%d, %v", rec.Code, e)
		}
		return a
	}
	a := ask(observed.Machine{}, errors.New("ec2:DescribeInstances: RequestLimitExceeded"))
	if a.Schema != instances.Schema || a.Pool != "one" || a.Target != "prod" || a.Account != "111122223333" || a.Region != "eu-central-1" || a.CurrentTemplateVersion != "4" ||
		a.Commit == nil || a.Commit.Subject != "bigger disks" || a.Draining == nil || a.PoolsAt.IsZero() {
		t.Errorf("answer %+v", a)
	}
	if a.AWS != nil || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "RequestLimitExceeded") {
		t.Errorf("without AWS: %+v, %q", a.AWS, a.Notes)
	}
	a = ask(observed.Machine{ID: oneInstance, Market: "spot", PrivateIP: "10.0.0.7", ImageID: "ami-1", Image: observed.Image{ID: "ami-1", Name: "al2023", CreatedAt: "2026-01-02T03:04:05.000Z"}, GroupName: "g", Notes: []string{"n"}}, nil)
	if a.AWS == nil || a.AWS.Market != "spot" || a.AWS.Image.Name != "al2023" || a.AWS.Image.CreatedAt.IsZero() || a.Group != "g" || a.Instance.ImageID != "ami-1" || len(a.Notes) != 1 {
		t.Errorf("with AWS: %+v", a)
	}
}

func TestSearchForAnInstance(t *testing.T) {
	b := instanceBoard(t)
	for path, want := range map[string]string{
		"/?q=" + oneInstance:                  "/targets/prod/pools/default/one?instance=" + oneInstance + "#" + oneInstance,
		"/pools?q=+" + oneInstance + "+":      "/targets/prod/pools/default/one?instance=" + oneInstance + "#" + oneInstance,
		"/targets/prod?q=i-0aaaaaaaaaaaaa101": "/targets/prod/pools/default/many?instance=i-0aaaaaaaaaaaaa101#i-0aaaaaaaaaaaaa101",
		"/pools?q=i-0fedcba9":                 "", // the beginning of an id is a filter
		"/pools?q=i-0123456789abcdef0":        "",
		"/pools?q=one":                        "",
	} {
		rec := asked(b, Options{}, path)
		if code := map[bool]int{true: 200, false: 303}[want == ""]; rec.Code != code || rec.Header().Get("Location") != want {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Header().Get("Location"))
		}
	}
	if text := asked(b, Options{}, "/pools?q=I-0FEDCBA").Body.String(); !strings.Contains(text, ">one</a>") || strings.Contains(text, ">many</a>") {
		t.Error("the beginning of an id does not select the pool")
	}
}

func TestInstancesOfAPool(t *testing.T) {
	b := instanceBoard(t)
	f := &fakeFacts{machine: observed.Machine{Market: "spot", PrivateIP: "10.0.0.7", LaunchedAt: statustest.Noon.Add(-time.Hour), ImageID: "ami-9", Image: observed.Image{Name: "al2023"}}}
	has := func(path string, yes, no []string) {
		t.Helper()
		text := asked(b, Options{Instances: f}, path).Body.String()
		for _, s := range yes {
			if !strings.Contains(text, s) {
				t.Errorf("%s: %q is missing", path, s)
			}
		}
		for _, s := range no {
			if strings.Contains(text, s) {
				t.Errorf("%s: %q is there", path, s)
			}
		}
	}
	has("/targets/prod/pools/default/many", []string{`id="i-0aaaaaaaaaaaaa000"`, `id="i-0aaaaaaaaaaaaa049"`, "1 to 50 of 120 instances"}, []string{`id="i-0aaaaaaaaaaaaa050"`, "Private address", `class="selected"`, "10.0.0.7"})
	if f.asked != nil {
		t.Errorf("a page asks for %q by itself", f.asked)
	}
	has("/targets/prod/pools/default/many?page=3&facts=1", []string{"10.0.0.7", "spot", "launched", "ami-9", "al2023", "?page=2&amp;facts=1#h-machines"}, []string{"Show launch time"})
	if strings.Join(f.asked, ",") != "prod 20" {
		t.Errorf("asked for %q", f.asked)
	}
	f.err = errors.New("ec2:DescribeInstances: RequestLimitExceeded")
	has("/targets/prod/pools/default/many?facts=1", []string{"image name and addresses are missing", "RequestLimitExceeded", `id="i-0aaaaaaaaaaaaa000"`}, nil)
	f.err = nil
	has("/targets/prod/pools/default/many?page=3", []string{`id="i-0aaaaaaaaaaaaa119"`, "?page=2#h-machines"}, []string{`id="i-0aaaaaaaaaaaaa099"`})
	has("/targets/prod/pools/default/many?instance=i-0aaaaaaaaaaaaa101", []string{`id="i-0aaaaaaaaaaaaa101" class="selected"`, "10.0.0.7", "spot", "1 h ago"}, nil)
	has("/targets/prod/pools/default/many?instance=i-0aaaaaaaaaaaaa999", []string{"1 to 50 of 120 instances"}, []string{"10.0.0.7"})
	has("/targets/prod/pools/default/one", []string{"Terminating:Wait", "waits for its termination lifecycle hook", "ip-10-0-0-7", "v3", "9c1f0d2", "bigger disks", "draining, terminated at the latest", "c7g.large"}, nil)
}

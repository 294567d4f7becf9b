package page

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

// hostile is a state on which every text that comes from Git, AWS, a forge or the
// configuration is the same.
func hostile(t *testing.T, evil string) *current.State {
	b := testBoard()
	two := int32(50)
	p := statustest.Pool(evil, evil, statustest.Rolling(1, 1))
	p.Namespace, p.Cluster, p.Phase, p.LaunchTemplateID, p.LaunchTemplateVersion = evil, evil, plan.Phase(evil), evil, evil
	p.FailureReason, p.FailureMessage, p.ReadyFrom, p.Kind = evil, evil, evil, intent.PoolKind(evil)
	p.Conditions = []plan.Condition{{Type: evil, Status: evil, Severity: evil, Reason: evil, Message: evil}}
	p.ProviderIDList, p.NodeRefs = []string{evil, "aws:///" + evil + "/" + evil}, []plan.NodeRef{{Name: evil}}
	p.Instances = []plan.Instance{{
		ID: evil, TemplateVersion: evil, LaunchTemplateID: evil, LaunchConfiguration: evil, Zone: evil, Type: evil, ImageID: evil, State: evil, Health: evil, Node: evil, Why: evil,
	}, {ID: evil + "2", TemplateVersion: "3"}}
	p.Draining = []plan.Draining{{Instance: evil, Node: evil, Why: evil, Pods: []plan.DrainingPod{{Name: evil, Why: evil}}}}
	p.TemplateVersions = []plan.VersionNote{{Number: 3, Revision: evil, Subject: evil}}
	p.Nodegroup = &plan.NodegroupStatus{Name: evil, Status: evil, Version: evil, ReleaseVersion: evil, Replaces: []string{evil},
		Health: []plan.NodegroupIssueNote{{Code: evil, Message: evil, ResourceIDs: []string{evil}, Hint: evil}}}
	p.Rollout.Status, p.Rollout.Message, p.Rollout.MinHealthy = evil, evil, &two
	p.LastRollout = p.Rollout
	key := evil + "/" + evil
	evilStep := step.Step{
		Verb: step.Verb(evil), Resource: step.Resource(evil), Pool: key, Name: evil, Reason: evil, Held: step.Hold(evil), HeldReason: evil, Disruptive: true,
		LaunchConfig: key, Pools: []string{key}, Drift: &step.Drift{Cause: evil}, Do: step.StartRefresh{},
		Changes: []step.Change{{Field: evil, From: evil, To: map[string]any{evil: evil}, Origin: &diag.Position{File: evil, Line: 3}}},
	}
	r := statustest.With(statustest.Report(evil, p), step.Failed, evilStep)
	r.Subject, r.Revision, r.Err, r.Account, r.Region, r.Ref = evil, evil, errors.New(evil), evil, evil, evil
	r.Diagnostics = diag.List{{Summary: evil, Detail: evil, Code: evil, Object: "AWSMachinePool " + key, Position: diag.Position{File: evil}, Related: []diag.Related{{Position: diag.Position{File: evil}, Message: evil}}}}
	r.LaunchConfigs = []plan.LaunchConfigStatus{{Name: evil, Namespace: evil, Cluster: evil, Target: evil, LaunchTemplateID: evil, Pools: []string{key},
		Conditions: []plan.Condition{{Type: "Ready", Severity: "Error", Message: evil}}}}
	b.Configure([]current.Source{{Name: evil, URL: "https://github.com/" + evil, Ref: evil, Subject: evil, Revision: evil, Error: evil, WebURL: evil, Forge: evil}},
		[]current.Target{{Name: evil, Source: evil, Path: evil, Account: evil, Region: evil}})
	b.Targets.Report(t.Context(), r)
	b.Sources.Update(current.Source{Name: evil, URL: evil, Error: evil, Revision: evil, Subject: evil})
	b.Activity.Add(events.Event{Kind: evil, Level: kinds.Level(evil), Target: evil, Pool: key, Source: evil, Revision: evil, Reason: evil, Text: evil,
		Changes: []events.Change{{Field: evil, From: evil, To: evil, At: evil + ":3"}}, Facts: map[string]string{evil: evil}})
	b.Activity.Add(events.Event{Kind: "version-created", Target: evil, Pool: key, Revision: evil, Reason: evil, Facts: map[string]string{"version": "3"}, Changes: []events.Change{{Field: evil, From: evil}}})
	b.Pulls.Update(report.Pull{Source: evil, Number: 7, Title: evil, Author: evil, WebURL: "javascript:" + evil, HeadSHA: evil, BaseRef: evil, BaseSHA: evil, MergeSHA: evil,
		State: report.PullPlanned, Reason: evil, Reports: []*plan.Report{r}, Gone: []string{evil}, Digest: evil, Approved: evil, AsReviewed: true, Stale: evil, Differs: []string{evil}, Uncompared: []string{evil}})
	b.Daemon.ShowConfiguration("a: " + evil + "\n- " + evil + "\n")
	b.Daemon.RefuseConfiguration(evil)
	return b
}

func hostilePages(evil string) []string {
	e := url.PathEscape(evil)
	q := url.QueryEscape(evil)
	return []string{
		"/", "/?q=" + q, "/?state=" + q + "&only=" + q + "&sort=" + q, "/pools", "/pools?target=" + q + "&phase=" + q + "&kind=" + q,
		"/targets/" + e, "/targets/" + e + "/plan", "/targets/" + e + "/pools/" + e + "/" + e, "/targets/" + e + "/pools/" + e + "/none", "/targets/none" + e,
		"/pulls", "/pulls/" + e + "/7", "/pulls/" + e + "/x" + e, "/activity", "/activity?about=" + q + "&kind=" + q + "&since=" + q + "&pool=" + q, "/activity?show=passes",
		"/configuration", "/nowhere/" + e,
	}
}

func TestNothingBreaksOutOfAPage(t *testing.T) {
	for _, evil := range []string{
		`<script>alert(1)</script>"'><img src=x onerror=alert(2)>`, `javascript:alert(1)`, `"><svg onload=alert(1)>`, `</title></main><base href=//evil.example>`,
		"{{.}}`${1}`</style>", "' onmouseover='alert(1)", "a\x00b\u202ec\xff", "..%2f..%2f", "&lt;b&gt;",
	} {
		b := hostile(t, evil)
		h := Handler(b, Options{})
		for _, path := range hostilePages(evil) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			u, err := url.Parse(path)
			if err != nil {
				t.Fatal(err)
			}
			r.URL = u
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if rec.Code != http.StatusOK && rec.Code != http.StatusNotFound && rec.Code != http.StatusMovedPermanently && rec.Code != http.StatusTemporaryRedirect {
				t.Errorf("%q at %s gives %d: %s", evil, path, rec.Code, rec.Body)
			}
			for _, tag := range foreignMarkup(rec.Body.Bytes()) {
				t.Errorf("%q at %s lets markup through: %s", evil, path, tag)
			}
		}
	}
}

// foreignMarkup are the elements of a page that its templates do not write, and
// links that lead elsewhere than a page or to a forge.
func foreignMarkup(page []byte) (out []string) {
	elements := strings.Fields(`html head meta title link script noscript body a header div img span nav main section article h1 h2 h3 h4 p dl dt dd ul ol li code
		form input label select option button table thead tbody tr th td b svg rect path time progress details summary del ins pre footer`)
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		if z.Next() == html.ErrorToken {
			return out
		}
		token := z.Token()
		if token.Type != html.StartTagToken && token.Type != html.SelfClosingTagToken {
			continue
		}
		ok := slices.Contains(elements, token.Data)
		for _, a := range token.Attr {
			own := strings.HasPrefix(a.Val, "/assets/")
			link := strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//") || strings.HasPrefix(a.Val, "https://") || strings.HasPrefix(a.Val, "http://") || strings.HasPrefix(a.Val, "#")
			ok = ok && !strings.HasPrefix(a.Key, "on") && a.Key != "style" && (a.Key != "src" || own) && (a.Key != "href" && a.Key != "action" || link)
		}
		if !ok {
			out = append(out, token.String())
		}
	}
}

// Every page renders any text from outside and lets no markup through.
func TestNoTextBreaksAPage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		evil := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("ab \u202e\u2066\u2069\u200b\u200f\u061c\ufeff\u00ad\u0085")))).Draw(rt, "text")
		h := Handler(hostile(t, evil), Options{})
		for _, path := range hostilePages(evil) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			u, err := url.Parse(path)
			if err != nil {
				continue
			}
			r.URL = u
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if strings.ContainsFunc(rec.Body.String(), func(r rune) bool { return !strings.ContainsRune("\n\r\t", r) && visible.Hidden(r) }) {
				rt.Fatalf("%s hides something of %q", path, evil)
			}
			if rec.Code >= 500 || foreignMarkup(rec.Body.Bytes()) != nil {
				rt.Fatalf("%s gives %d and %v", path, rec.Code, foreignMarkup(rec.Body.Bytes()))
			}
		}
	})
}

package gates

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/gates/calendar"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
)

// hand moves a clock.
type hand struct{ at time.Time }

func (c *hand) now() time.Time { return c.at }

func newBook(t *testing.T) (*Recorder, *hand) {
	t.Helper()
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &hand{time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	return NewRecorder(db, clock.At(c.now)), c
}

func read(t *testing.T, b *Recorder) Records {
	t.Helper()
	r := b.Read()
	if r.Lost != nil {
		t.Fatal(r.Lost.Why)
	}
	return r
}

// known is a daemon with the targets that it names.
type known []string

func (k known) Knows(target string) bool                       { return slices.Contains(k, target) }
func (k known) Targets() []string                              { return k }
func (known) Pools(string) []string                            { return nil }
func (known) Planned(string) ([]Grant, []string, error)        { return nil, nil, nil }
func (known) Pass([]string)                                    {}
func (k known) Reconcile(t []string, _ bool) ([]string, error) { return t, nil }

func TestWhatIsAskedForEndsByItself(t *testing.T) {
	b, c := newBook(t)
	d := known{"prod", "dev"}
	for _, r := range []Request{
		{Target: "prod", Reason: "incident", For: "2h", By: "ann"}, {Target: "prod", Pool: "web", Reason: "test", For: "1h"}, {Target: "dev", Reason: "x", For: "3h"},
	} {
		if _, err := Suspend(b, d, r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Approve(b, d, Request{Digest: strings.Repeat("A1", 32)}); err != nil {
		t.Fatal(err)
	}
	if _, err := Reconcile(b, d, Request{Targets: []string{"dev"}, OverrideWindow: true}); err != nil {
		t.Fatal(err)
	}
	r := read(t, b)
	if len(r.Suspensions) != 3 || len(r.Approvals) != 1 || len(r.Overrides) != 1 || r.Approvals[0].By != "somebody" || r.Approvals[0].Digest != strings.Repeat("a1", 32) {
		t.Fatalf("records: %+v", r)
	}
	if got := r.Suspensions[1].Text(); got != "suspended by ann until 2 Mar 2026 12:00 UTC: incident" {
		t.Errorf("text: %s", got)
	}
	if r.Suspensions[2].Pool != "default/web" {
		t.Errorf("pool: %+v", r.Suspensions[2])
	}
	for _, step := range []struct {
		after                             time.Duration
		suspensions, approvals, overrides int
	}{{time.Hour - time.Second, 3, 1, 1}, {time.Hour, 2, 1, 0}, {2 * time.Hour, 1, 1, 0}, {approvalFor - time.Second, 0, 1, 0}, {approvalFor, 0, 0, 0}} {
		c.at = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC).Add(step.after)
		r := read(t, b)
		if len(r.Suspensions) != step.suspensions || len(r.Approvals) != step.approvals || len(r.Overrides) != step.overrides {
			t.Errorf("after %s: %+v", step.after, r)
		}
	}
	// The next change removes a suspension that has ended.
	if _, err := Suspend(b, d, Request{Target: "prod", Reason: "again", For: "1h"}); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(-approvalFor)
	if r := read(t, b); len(r.Suspensions) != 1 || len(r.Approvals) != 0 {
		t.Errorf("kept: %+v", r)
	}
}

func TestResume(t *testing.T) {
	b, _ := newBook(t)
	d := known{"prod", "prod2"}
	for _, r := range []Request{{Target: "prod"}, {Target: "prod", Pool: "a/web"}, {Target: "prod", Pool: "a/api"}, {Target: "prod2"}} {
		r.Reason, r.For = "x", "1h"
		if _, err := Suspend(b, d, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		in          Request
		ended, left int
	}{{Request{Target: "prod", Pool: "a/web"}, 1, 3}, {Request{Target: "prod", Pool: "a/web"}, 0, 3}, {Request{Target: "prod"}, 1, 2}, {Request{Target: "prod", All: true}, 1, 1}} {
		out, err := Resume(b, d, tc.in)
		if err != nil || len(out.Resumed) != tc.ended || len(read(t, b).Suspensions) != tc.left {
			t.Errorf("%+v: %+v, %v", tc.in, out, err)
		}
	}
}

func TestFaultsOfRequests(t *testing.T) {
	b, _ := newBook(t)
	d := known{"prod"}
	for name, tc := range map[string]struct {
		do   func(*Recorder, Daemon, Request) (Answer, error)
		in   Request
		want string
	}{
		"no target":        {Suspend, Request{Reason: "x", For: "1h"}, `there is no target ""`},
		"another target":   {Resume, Request{Target: "dev"}, `there is no target "dev"`},
		"no reason":        {Suspend, Request{Target: "prod", For: "1h"}, "a reason is required"},
		"no time":          {Suspend, Request{Target: "prod", Reason: "x"}, "is not a valid duration of a suspension"},
		"too long":         {Suspend, Request{Target: "prod", Reason: "x", For: "2161h"}, "is not a valid duration of a suspension"},
		"a bad pool":       {Suspend, Request{Target: "prod", Pool: "a/b/c", Reason: "x", For: "1h"}, "is not a valid name for a pool"},
		"no digest":        {Approve, Request{Digest: "abc"}, "is not a digest"},
		"a window for all": {Reconcile, Request{OverrideWindow: true}, "for named targets only"},
		"one unknown":      {Reconcile, Request{Targets: []string{"prod", "x\x1b[2J"}, Retry: true}, `there is no target "x [2J"`},
	} {
		if _, err := tc.do(b, d, tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := read(t, b); len(r.Suspensions)+len(r.Approvals)+len(r.Overrides) != 0 {
		t.Errorf("a fault left %+v", r)
	}
}

// TestEverythingIsSuspended: it holds beside the suspensions of targets and pools, ends
// alone, and what stays is said.
func TestEverythingIsSuspended(t *testing.T) {
	b, c := newBook(t)
	d := known{"prod", "dev"}
	for _, r := range []Request{{All: true}, {Target: "prod"}, {Target: "prod", Pool: "a/web"}} {
		r.Reason, r.For = "x", "1h"
		if _, err := Suspend(b, d, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []Request{{}, {All: true, Pool: "a/web"}} {
		r.Reason, r.For = "x", "1h"
		if _, err := Suspend(b, d, r); err == nil {
			t.Errorf("%+v is taken", r)
		}
	}
	if r := read(t, b); len(r.Suspensions) != 3 || r.Suspensions[0].Target != "" {
		t.Fatalf("%+v", r.Suspensions)
	}
	for _, tc := range []struct {
		in    Request
		ended int
		stays []string
	}{
		{Request{Target: "dev"}, 0, []string{"/"}},
		{Request{Target: "prod"}, 1, []string{"/", "prod/a/web"}},
		{Request{Target: "prod", Pool: "a/other"}, 0, []string{"/"}},
		{Request{All: true}, 1, []string{"prod/a/web"}},
		{Request{All: true}, 0, []string{"prod/a/web"}},
		{Request{Target: "prod", All: true}, 1, nil},
	} {
		out, err := Resume(b, d, tc.in)
		var stays []string
		for _, s := range out.Stays {
			stays = append(stays, s.Target+"/"+s.Pool)
		}
		if err != nil || len(out.Resumed) != tc.ended || !slices.Equal(stays, tc.stays) {
			t.Errorf("%+v: %d ended, %v stay, %v", tc.in, len(out.Resumed), stays, err)
		}
	}
	r := Request{All: true, Reason: "x", For: "1h"}
	if _, err := Suspend(b, d, r); err != nil {
		t.Fatal(err)
	}
	if c.at = c.at.Add(time.Hour); len(read(t, b).Suspensions) != 0 {
		t.Error("it does not end by itself")
	}
}

func TestGatesOfATarget(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	closed := []calendar.Window{{Days: []time.Weekday{time.Wednesday}, Start: 9 * 60, End: 17 * 60, Zone: time.UTC}}
	never := []calendar.Window{{Deny: true, End: 24 * 60, Zone: time.UTC}}
	grant := Grant{Approval: Approval{Digest: "d"}, Target: "prod", Revision: "r0", Rendered: "w0", Works: []string{"a/web"}}
	ready := Grant{Approval: Approval{Digest: "new"}, Target: "prod", Deletes: []string{"a/web"}}
	begun := &model.Grant{Digest: "d", Works: map[string]bool{"a/web": true}, Deletes: map[string]bool{}}
	exact := &model.Grant{Digest: "new", Exact: true, Works: map[string]bool{}, Deletes: map[string]bool{"a/web": true}}
	for name, tc := range map[string]struct {
		c         Conditions
		r         Records
		ready     map[string]Grant
		want      model.Gates
		suspended bool
	}{
		"nothing":                    {want: model.Gates{AsReviewed: true}},
		"suspended":                  {r: Records{Suspensions: []Suspension{{Target: "prod", By: "ann", Reason: "x", Until: now}}}, want: model.Gates{AsReviewed: true, Suspended: "suspended by ann until 2 Mar 2026 10:00 UTC: x", Resume: "weir resume prod, or the end of the suspension"}, suspended: true},
		"everything":                 {r: Records{Suspensions: []Suspension{{By: "ann", Reason: "x", Until: now}}}, want: model.Gates{AsReviewed: true, Suspended: "all targets are suspended by ann until 2 Mar 2026 10:00 UTC: x", Resume: "weir resume --all, or the end of the suspension"}, suspended: true},
		"another suspended":          {r: Records{Suspensions: []Suspension{{Target: "dev"}}}, want: model.Gates{AsReviewed: true}},
		"a pool":                     {r: Records{Suspensions: []Suspension{{Target: "prod", Pool: "a/web", By: "ann", Reason: "x", Until: now}}}, want: model.Gates{AsReviewed: true, Pools: map[string]string{"a/web": "suspended by ann until 2 Mar 2026 10:00 UTC: x"}}},
		"a closed window":            {c: Conditions{Windows: closed}, want: model.Gates{AsReviewed: true, Window: "the next window opens on Wed 4 Mar 09:00 UTC"}},
		"never open":                 {c: Conditions{Windows: never}, want: model.Gates{AsReviewed: true, Window: "no window opens within two weeks"}},
		"overridden":                 {c: Conditions{Windows: closed}, r: Records{Overrides: []Override{{Target: "prod"}}}, want: model.Gates{AsReviewed: true}},
		"another overridden":         {c: Conditions{Windows: closed}, r: Records{Overrides: []Override{{Target: "dev"}}}, want: model.Gates{AsReviewed: true, Window: "the next window opens on Wed 4 Mar 09:00 UTC"}},
		"a wave":                     {c: Conditions{DependsOn: []string{"canary"}}, want: model.Gates{AsReviewed: true, Wave: "waits for the target canary, which does not exist: a commit must add it, or dependsOn must name another target"}},
		"granted":                    {c: Conditions{Rendered: "w0"}, r: Records{Grants: []Grant{grant}}, want: model.Gates{AsReviewed: true, Grant: begun}},
		"granted for what it wanted": {c: Conditions{Rendered: "w1"}, r: Records{Grants: []Grant{grant}}, want: model.Gates{AsReviewed: true}},
		"granted for nothing known":  {r: Records{Grants: []Grant{{Target: "prod", Revision: "r1"}}}, want: model.Gates{AsReviewed: true}},
		"another granted":            {c: Conditions{Rendered: "w0"}, r: Records{Grants: []Grant{{Target: "dev", Rendered: "w0"}}}, want: model.Gates{AsReviewed: true}},
		"approved":                   {ready: map[string]Grant{"prod": ready}, want: model.Gates{AsReviewed: true, Grant: exact}},
		"approved again":             {c: Conditions{Rendered: "w0"}, r: Records{Grants: []Grant{grant}}, ready: map[string]Grant{"prod": ready}, want: model.Gates{AsReviewed: true, Grant: exact}},
		"another approved":           {ready: map[string]Grant{"dev": ready}, want: model.Gates{AsReviewed: true}},
	} {
		d := reconciler.Desired{Source: "s", Commit: content.Commit{Revision: "r1"}, Policy: model.Policy{Target: "prod", Gates: model.Gates{AsReviewed: true, Window: "of the pass before"}}}
		batches := []reconciler.Batch{{Targets: []reconciler.Desired{d}}}
		Gate(batches, map[string]Conditions{"prod": tc.c}, tc.r, Before{}, Pending{Ready: tc.ready}, clock.At(func() time.Time { return now })())
		got := batches[0].Targets[0].Policy
		if diff := cmp.Diff(tc.want, got.Gates); diff != "" || got.Suspended != tc.suspended {
			t.Errorf("%s: suspended %v (-want +got):\n%s", name, got.Suspended, diff)
		}
		// Made again of the same render, it is said once.
		Gate(batches, map[string]Conditions{"prod": tc.c}, tc.r, Before{}, Pending{Ready: tc.ready}, clock.At(func() time.Time { return now })())
		told := batches[0].Targets[0].Diagnostics
		if suspended := tc.want.Suspended != "" || tc.want.Pools != nil; (len(told) == 1) != suspended || suspended && told[0].Code != "suspended" {
			t.Errorf("%s: it is said %v", name, told)
		}
	}
}

func TestAnApprovalOfSeveralPlans(t *testing.T) {
	var before Before
	reports := []*plan.Report{}
	for _, name := range []string{"a", "b", "c"} {
		p := &plan.Plan{Target: name, Steps: []step.Step{{Verb: step.Update, Resource: step.AutoScalingGroup, Pool: "x/" + name, Name: name}}}
		if name == "c" {
			p.Steps = nil
		}
		r := &plan.Report{Target: name, Source: "s", Revision: "1", Touched: true, Plan: p}
		reports = append(reports, r)
		before.Note(r)
	}
	before.Note(&plan.Report{Target: "other", Source: "s", Revision: "1", Plan: &plan.Plan{Target: "other", Steps: reports[0].Plan.Steps}})
	targets := func(digest string) (out []string) {
		for _, g := range Approved(Approval{Digest: digest}, before) {
			out = append(out, g.Target)
		}
		return out
	}
	all := plan.CombinedDigest([]*plan.Plan{reports[0].Plan, reports[1].Plan, reports[2].Plan})
	for digest, want := range map[string][]string{
		reports[1].Plan.Digest(): {"b"}, all: {"a", "b"},
		plan.CombinedDigest([]*plan.Plan{reports[0].Plan, reports[1].Plan}): {"a", "b"},
		plan.CombinedDigest([]*plan.Plan{reports[0].Plan}):                  nil,
		reports[2].Plan.Digest():                                            nil, strings.Repeat("0", 64): nil, "": nil,
	} {
		if diff := cmp.Diff(want, targets(digest)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", digest, diff)
		}
	}
	// Without secrets there is no digest, and nothing to approve.
	for _, r := range reports {
		r.Plan.Secretless = true
	}
	if got := targets(""); got != nil {
		t.Errorf("plans without a digest are approved: %v", got)
	}
}

// A record that cannot be read may have been a suspension: nothing is written until
// somebody accepts that it is lost, and what can be read still holds then.
func TestALossHoldsEverything(t *testing.T) {
	for name, spoil := range map[string]func(*state.Tx) error{
		"another shape": func(tx *state.Tx) error { return state.Bucket[int](suspensions).Put(tx, "prod", 1) },
		"an approval":   func(tx *state.Tx) error { return state.Bucket[string](approvals).Put(tx, "d", "yes") },
		"a loss of the file": func(tx *state.Tx) error {
			return state.Bucket[state.Loss]{Name: "weir"}.Put(tx, "lost", state.Loss{Why: "weir.db is gone"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBook(t)
			if _, err := b.Suspend(Suspension{Target: "other", Reason: "r", By: "ann"}, time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := b.db.Update(spoil); err != nil {
				t.Fatal(err)
			}
			// A target that must stay can be suspended again before that.
			if _, err := b.Suspend(Suspension{Target: "again", Reason: "r", By: "ann"}, time.Hour); err != nil {
				t.Fatal(err)
			}
			r := b.Read()
			if r.Lost == nil || r.Lost.Why == "" {
				t.Fatalf("nothing is lost: %+v", r)
			}
			batches := []reconciler.Batch{{Targets: []reconciler.Desired{{Policy: model.Policy{Target: "prod"}}}}}
			pending := Pending{Ready: map[string]Grant{"prod": {Approval: Approval{Digest: "d"}, Target: "prod"}}, Begin: func(Grant) error { return nil }}
			Gate(batches, nil, r, Before{}, pending, clock.At(time.Now)())
			d := batches[0].Targets[0]
			if !d.Policy.Suspended || d.Policy.Gates.Grant != nil || d.Begin != nil || !strings.Contains(d.Policy.Gates.Suspended, "weir resume --all --after-loss") ||
				len(d.Diagnostics) != 1 || d.Diagnostics[0].Code != "state-lost" {
				t.Errorf("the target may do %+v, begin %t, says %v", d.Policy.Gates, d.Begin != nil, d.Diagnostics)
			}

			var wrong *Fault
			if _, err := Resume(b, pooled{"prod": {"a/b"}}, Request{AfterLoss: true, Target: "prod"}); !errors.As(err, &wrong) {
				t.Errorf("for one target: %v", err)
			}
			out, err := Resume(b, pooled{}, Request{AfterLoss: true, All: true})
			if err != nil || out.Accepted == nil {
				t.Fatalf("accepted %+v, %v", out.Accepted, err)
			}
			if r = b.Read(); r.Lost != nil || len(r.Suspensions) != 2 {
				t.Errorf("after that: %+v", r)
			}
			if _, err := Resume(b, pooled{}, Request{AfterLoss: true, All: true}); !errors.As(err, &wrong) || wrong.Message != "nothing was lost" {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

// pooled is a daemon whose targets have pools.
type pooled map[string][]string

func (p pooled) Knows(target string) bool                     { return p[target] != nil }
func (p pooled) Targets() []string                            { return slices.Collect(maps.Keys(p)) }
func (p pooled) Pools(target string) []string                 { return p[target] }
func (pooled) Planned(string) ([]Grant, []string, error)      { return nil, nil, nil }
func (pooled) Pass([]string)                                  {}
func (pooled) Reconcile(t []string, _ bool) ([]string, error) { return t, nil }

// A pool that a target does not have cannot be suspended; a name without a namespace
// stands for the one pool that has it.
func TestSuspendedPoolsExist(t *testing.T) {
	d := pooled{"prod": {"apps/web", "apps/db", "infra/web"}, "new": {}}
	for _, tc := range []struct{ target, name, want, wrong string }{
		{"prod", "db", "apps/db", ""},
		{"prod", "infra/web", "infra/web", ""},
		{"prod", "web", "", `has not exactly one pool "web"`},
		{"prod", "nope", "", `has not exactly one pool "nope"`},
		{"prod", "apps/nope", "", `has not exactly one pool "apps/nope"`},
		{"new", "web", "default/web", ""}, // nothing is known of it yet
	} {
		b, _ := newBook(t)
		out, err := Suspend(b, d, Request{Target: tc.target, Pool: tc.name, Reason: "x", For: "1h"})
		switch {
		case tc.wrong != "":
			var f *Fault
			if !errors.As(err, &f) || !strings.Contains(f.Message, tc.wrong) || f.Hint != "its pools are apps/web, apps/db, infra/web" {
				t.Errorf("%s: %v", tc.name, err)
			}
			if n := len(read(t, b).Suspensions); n != 0 {
				t.Errorf("%s: %d suspensions", tc.name, n)
			}
		case err != nil || out.Suspension.Pool != tc.want:
			t.Errorf("%s: %+v, %v", tc.name, out.Suspension, err)
		}
	}
	// A suspended pool that is gone can be resumed.
	b, _ := newBook(t)
	if _, err := Resume(b, d, Request{Target: "prod", Pool: "apps/gone"}); err != nil {
		t.Errorf("a pool that is gone: %v", err)
	}
}

package gates

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// planned is a plan of a target with one step.
func planned(target, revision string) *plan.Report {
	return &plan.Report{Target: target, Source: "s", Revision: revision, Touched: true, Plan: &plan.Plan{Target: target, Revision: revision, Steps: []step.Step{{
		Verb: step.Update, Resource: step.AutoScalingGroup, Pool: "x/web", Name: "web", Changes: []step.Change{{Field: "maxSize", From: 3, To: revision}},
	}}}}
}

// gated is a target as a process sees it that knows the book and, of the passes
// before, what is in before.
func gated(t *testing.T, b *Recorder, before Before, target, revision string, wants string) reconciler.Desired {
	t.Helper()
	r := read(t, b)
	pending := Pending{Ready: map[string]Grant{}, Begin: b.Begin}
	for _, a := range r.Approvals {
		for _, g := range Approved(a, before) {
			pending.Ready[g.Target] = g
		}
	}
	batches := []reconciler.Batch{{Targets: []reconciler.Desired{{Source: "s", Commit: content.Commit{Revision: revision}, Policy: model.Policy{Target: target, Gates: model.Gates{AsReviewed: true}}}}}}
	Gate(batches, map[string]Conditions{target: {Rendered: wants}}, r, before, pending, b.now())
	return batches[0].Targets[0]
}

// Wherever the process ends, an approval that has not begun lets run the plan with
// its digest alone, and one that has lets run what follows of it, as long as the
// target wants what it wanted then.
func TestAnApprovalIsExactUntilItBegins(t *testing.T) {
	b, _ := newBook(t)
	var before Before
	r := planned("prod", "r1")
	before.Note(r)
	if _, err := b.Approve(r.Plan.Digest(), "ann"); err != nil {
		t.Fatal(err)
	}
	// The next commit comes before anything has begun, and the process ends in its pass.
	if d := gated(t, b, before, "prod", "r2", "w2"); d.Policy.Gates.Grant == nil || !d.Policy.Gates.Grant.Exact || d.Begin == nil {
		t.Fatalf("another commit than the approved one: %+v", d.Policy.Gates.Grant)
	}
	if d := gated(t, b, Before{}, "prod", "r2", "w2"); d.Policy.Gates.Grant != nil || d.Begin != nil {
		t.Errorf("a process that begins after that: %+v", d.Policy.Gates.Grant)
	}
	if r := read(t, b); len(r.Approvals) != 1 || len(r.Grants) != 0 {
		t.Fatalf("the approval was used: %+v", r)
	}

	if err := gated(t, b, before, "prod", "r1", "w1").Begin(r.Plan); err != nil {
		t.Fatal(err)
	}
	got := read(t, b)
	if len(got.Approvals) != 0 || len(got.Grants) != 1 || got.Grants[0].By != "ann" || got.Grants[0].Revision != "r1" || !slices.Equal(got.Grants[0].Works, slices.Sorted(maps.Keys(plan.GrantOf(r.Plan).Works))) {
		t.Fatalf("begun: %+v", got)
	}
	for wants, holds := range map[string]bool{"w1": true, "w2": false, "": false} {
		d := gated(t, b, Before{}, "prod", "r1", wants)
		if g := d.Policy.Gates.Grant; (g != nil) != holds || holds && g.Exact || d.Begin != nil {
			t.Errorf("begun when the target wanted w1, it wants %q: %+v", wants, g)
		}
	}
	if err := b.Done("prod"); err != nil {
		t.Fatal(err)
	}
	if r := read(t, b); len(r.Approvals)+len(r.Grants) != 0 {
		t.Errorf("done: %+v", r)
	}
}

// The plans that are approved together begin one by one.
func TestAnApprovalOfSeveralPlansIsSplit(t *testing.T) {
	b, _ := newBook(t)
	var before Before
	reports := []*plan.Report{planned("a", "r1"), planned("b", "r1")}
	plans := []*plan.Plan{reports[0].Plan, reports[1].Plan}
	before.Note(reports[0])
	before.Note(reports[1])
	a, err := b.Approve(plan.CombinedDigest(plans), "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Split(a, Approved(a, before)); err != nil {
		t.Fatal(err)
	}
	if err := gated(t, b, before, "a", "r1", "w").Begin(plans[0]); err != nil {
		t.Fatal(err)
	}
	a.Digest, a.Of, a.For = plans[1].Digest(), a.Digest, "b"
	if got := read(t, b); len(got.Grants) != 1 || got.Grants[0].Target != "a" || !cmp.Equal(got.Approvals, []Approval{a}) {
		t.Errorf("a has begun: %+v", got)
	}
}

// A plan that runs by its own approval is not let run once more by one of several together, which waited for another target.
func TestAnApprovalThatIsSplitIsNoneOfWhatHasBegun(t *testing.T) {
	b, _ := newBook(t)
	var before Before
	first, second := planned("a", "r1"), planned("b", "r1")
	before.Note(first)
	ahead, err := b.Approve(plan.CombinedDigest([]*plan.Plan{first.Plan, second.Plan}), "ann")
	if err != nil {
		t.Fatal(err)
	}
	own := Approval{Digest: first.Plan.Digest()}
	if _, err = b.Approve(own.Digest, "bob", Approved(own, before)...); err != nil {
		t.Fatal(err)
	}
	if err := gated(t, b, before, "a", "r1", "w").Begin(first.Plan); err != nil {
		t.Fatal(err)
	}
	before.Note(second) // while the pass over a is under way
	if err := b.Split(ahead, Approved(ahead, before)); err != nil {
		t.Fatal(err)
	}
	if err := b.Done("a"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b).Approvals; len(got) != 1 || got[0].For != "b" {
		t.Errorf("approved are %+v", got)
	}
}

// A target that is no more has no pass in which an approval could be used.
func TestTargetsThatAreNoMoreAreForgotten(t *testing.T) {
	var before Before
	before.Note(planned("a", "r1"))
	before.Note(planned("gone", "r1"))
	before.Keep(map[string]Conditions{"a": {}})
	if got := Approved(Approval{Digest: planned("gone", "r1").Plan.Digest()}, before); len(got) != 0 || len(before.Standings) != 1 {
		t.Errorf("it is approved: %+v", got)
	}
	if got := Approved(Approval{Digest: planned("a", "r1").Plan.Digest()}, before); len(got) != 1 {
		t.Errorf("one that is there: %+v", got)
	}
}

// Two people approve the same: it runs once, whoever comes second, and each is told by whose approval.
func TestAnApprovalThatHasBegunIsNoneAnew(t *testing.T) {
	for name, targets := range map[string][]string{"one plan": {"prod"}, "several together": {"prod", "stage"}} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBook(t)
			var before Before
			var plans []*plan.Plan
			for _, target := range targets {
				r := planned(target, "r1")
				before.Note(r)
				plans = append(plans, r.Plan)
			}
			digest := plans[0].Digest()
			if len(plans) > 1 {
				digest = plan.CombinedDigest(plans)
			}
			approve := func(by, want string) {
				t.Helper()
				if a, err := b.Approve(digest, by); err != nil || a.By != want {
					t.Errorf("%s approves: %+v, %v", by, a, err)
				}
			}
			approve("ann", "ann")
			a := read(t, b).Approvals[0]
			ready := Approved(a, before)
			if len(ready) != len(targets) {
				t.Fatalf("%+v", ready)
			}
			if len(targets) > 1 {
				if err := b.Split(a, ready); err != nil {
					t.Fatal(err)
				}
				approve("bob", "ann")
			}
			for i, g := range ready {
				if err := b.Begin(g); err != nil {
					t.Fatal(err)
				}
				approve("bob", "ann")
				if r := read(t, b); len(r.Approvals) != len(ready)-1-i || len(r.Grants) != i+1 {
					t.Errorf("after %s: %+v", g.Target, r)
				}
			}
			for i, g := range ready {
				approve("bob", "ann")
				if err := b.Done(g.Target); err != nil {
					t.Fatal(err)
				}
				if r := read(t, b); len(r.Approvals) != 0 || len(r.Grants) != len(ready)-1-i {
					t.Errorf("after %s is done: %+v", g.Target, r)
				}
			}
			// The same plan once more is a new question.
			approve("bob", "bob")
		})
	}
}

// TestAnApprovalJoinsTheOneThatHasBegun for what the target wants still: what is left of either may
// run, and who takes one back ends both. One for something else takes its place.
func TestAnApprovalJoinsTheOneThatHasBegun(t *testing.T) {
	for name, tc := range map[string]struct {
		wants, takesBack string
		joins            bool
	}{
		"the same":                   {wants: "w1", joins: true},
		"something else":             {wants: "w2"},
		"the first is taken back":    {wants: "w1", joins: true, takesBack: "d1"},
		"the second is taken back":   {wants: "w1", joins: true, takesBack: "d2"},
		"what went before, replaced": {wants: "w2", takesBack: "d1"},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := newBook(t)
			for i, g := range []Grant{{Rendered: "w1", Works: []string{"a", "b"}, Deletes: []string{"x/a"}}, {Rendered: tc.wants, Works: []string{"b", "c"}, Deletes: []string{"x/b"}}} {
				a, err := b.Approve([]string{"d1", "d2"}[i], "ann")
				if err != nil {
					t.Fatal(err)
				}
				g.Approval, g.Target = a, "prod"
				if err := b.Begin(g); err != nil {
					t.Fatal(err)
				}
				c.at = c.at.Add(time.Minute)
			}
			g := read(t, b).Grants[0]
			want := []string{"b", "c"}
			if tc.joins {
				want = []string{"a", "b", "c"}
			}
			if !slices.Equal(g.Works, want) || len(g.Deletes) != len(want)-1 || g.Digest != "d2" || (len(g.Earlier) == 1) != tc.joins || len(read(t, b).InForce()) != len(want)-1 {
				t.Errorf("on record: %+v", g)
			}
			// A pass that acts under the first goes on under both.
			if first := (Grant{Approval: Approval{Digest: "d1", Since: c.at.Add(-2 * time.Minute)}, Target: "prod"}); g.Holds(first) != tc.joins {
				t.Errorf("holds by the first: %t", !tc.joins)
			}
			// Nobody approves either anew while it is on record.
			if a, err := b.Approve("d1", "bob"); err != nil || (a.By == "ann") != tc.joins {
				t.Errorf("approved anew: %+v, %v", a, err)
			}
			if tc.takesBack == "" {
				return
			}
			if _, begun, err := b.Withdraw(tc.takesBack, ""); err != nil || (len(begun) == 1) != (tc.joins || tc.takesBack == "d2") {
				t.Errorf("taken back: %+v, %v", begun, err)
			}
		})
	}
}

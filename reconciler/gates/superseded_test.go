package gates

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// TestASupersededPlanIsApprovedAnew when it comes back: what had begun of it at an earlier commit
// neither lets it run nor takes the new approval for its own.
func TestASupersededPlanIsApprovedAnew(t *testing.T) {
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
			// pass is one of all targets: what it may run begins.
			pass := func(wants string) (ran int) {
				t.Helper()
				for _, a := range read(t, b).Approvals {
					if ready := Approved(a, before); len(ready) > 1 {
						if err := b.Split(a, ready); err != nil {
							t.Fatal(err)
						}
					}
				}
				for _, target := range targets {
					d := gated(t, b, before, target, "r1", wants)
					if err := b.Supersede(Superseded([]reconciler.Desired{d}, map[string]Conditions{target: {Rendered: wants}}, read(t, b))); err != nil {
						t.Fatal(err)
					}
					if d.Policy.Gates.Grant != nil {
						ran++
					}
					if d.Begin != nil {
						if err := d.Begin(plans[slices.Index(targets, target)]); err != nil {
							t.Fatal(err)
						}
					}
				}
				return ran
			}
			approve := func(by, want string) {
				t.Helper()
				if a, err := b.Approve(digest, by); err != nil || a.By != want {
					t.Errorf("%s approves: %+v, %v", by, a, err)
				}
			}
			approve("ann", "ann")
			for range 2 {
				if ran := pass("w1"); ran != len(targets) {
					t.Fatalf("%d run by the first approval", ran)
				}
				approve("bob", "ann")
			}
			// Two commits later the plan is the same again; the approval of one that comes
			// before the first pass over them is of what had begun.
			for _, wants := range []string{"w2", "w1"} {
				if ran := pass(wants); ran != 0 {
					t.Errorf("%d run at %s, and nobody approved it", ran, wants)
				}
			}
			approve("bob", "bob")
			for range 2 {
				if ran := pass("w1"); ran != len(targets) {
					t.Errorf("%d run, though both were approved anew", ran)
				}
				approve("cid", "bob")
			}
			if r := read(t, b); len(r.Approvals) != 0 || len(r.Grants) != len(targets) {
				t.Errorf("left: %+v", r)
			}
		})
	}
}

// TestWhoIsBehindEndsNoGrant: neither a member that still has an earlier commit, nor one that does
// not know what is wanted, nor one that passes over other targets.
func TestWhoIsBehindEndsNoGrant(t *testing.T) {
	r := Records{Grants: []Grant{{Target: "prod", Rendered: "w2", Seq: 2}}}
	for name, c := range map[string]struct {
		Conditions
		target string
		ends   int
	}{
		"an earlier commit": {Conditions{Rendered: "w1", Seq: 1}, "prod", 0},
		"nothing known":     {Conditions{Seq: 3}, "prod", 0},
		"the same":          {Conditions{Rendered: "w2", Seq: 3}, "prod", 0},
		"another target":    {Conditions{Rendered: "w3", Seq: 3}, "stage", 0},
		"a configuration":   {Conditions{Rendered: "w3", Seq: 2}, "prod", 1},
		"a later commit":    {Conditions{Rendered: "w3", Seq: 3}, "prod", 1},
	} {
		pass := []reconciler.Desired{{Policy: model.Policy{Target: c.target}}}
		if ends := Superseded(pass, map[string]Conditions{"prod": c.Conditions}, r); len(ends) != c.ends {
			t.Errorf("%s: ends %+v", name, ends)
		}
	}
}

// TestAGrantThatBeganMeanwhileStays: what a pass read is older than what it ends.
func TestAGrantThatBeganMeanwhileStays(t *testing.T) {
	b, _ := newBook(t)
	var before Before
	r := planned("prod", "r1")
	before.Note(r)
	begin := func(wants string) Grant {
		t.Helper()
		if _, err := b.Approve(r.Plan.Digest(), "ann"); err != nil {
			t.Fatal(err)
		}
		if err := gated(t, b, before, "prod", "r1", wants).Begin(r.Plan); err != nil {
			t.Fatal(err)
		}
		return read(t, b).Grants[0]
	}
	old := begin("w1")
	if err := b.Supersede([]Grant{old}); err != nil {
		t.Fatal(err)
	}
	begin("w2")
	if err := b.Supersede([]Grant{old}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b).Grants; len(got) != 1 || got[0].Rendered != "w2" {
		t.Errorf("on record: %+v", got)
	}
}

// TestAPlanThatIsBackIsApprovedAnew with the others that it was approved with, though one of these
// has not begun.
func TestAPlanThatIsBackIsApprovedAnew(t *testing.T) {
	b, _ := newBook(t)
	var before Before
	one, two := planned("prod", "r1"), planned("stage", "r1")
	before.Note(one)
	before.Note(two)
	digest := plan.CombinedDigest([]*plan.Plan{one.Plan, two.Plan})
	a, err := b.Approve(digest, "ann")
	if err != nil {
		t.Fatal(err)
	}
	ready := Approved(a, before)
	if err := b.Split(a, ready); err != nil {
		t.Fatal(err)
	}
	if err := b.Begin(ready[0]); err != nil {
		t.Fatal(err)
	}
	// Who comes second approves nothing more, while it runs and after it.
	if a, err := b.Approve(digest, "bob"); err != nil || a.By != "ann" {
		t.Errorf("%+v, %v", a, err)
	}
	if err := b.Done("prod"); err != nil {
		t.Fatal(err)
	}
	if a, err := b.Approve(digest, "bob"); err != nil || a.By != "ann" || len(read(t, b).Approvals) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	// Somebody undoes in AWS what ran: both wait again, and are approved again.
	if a, err := b.Approve(digest, "bob", Approved(Approval{Digest: digest}, before)...); err != nil || a.By != "bob" || a.Digest != digest {
		t.Errorf("%+v, %v", a, err)
	}
	for _, target := range []string{"prod", "stage"} {
		if d := gated(t, b, before, target, "r1", "w1"); d.Begin == nil || d.Begin(one.Plan) != nil {
			t.Errorf("%s does not begin", target)
		}
	}
}

// TestWhatIsTakenBackStaysSo though a pass has read it before.
func TestWhatIsTakenBackStaysSo(t *testing.T) {
	b, _ := newBook(t)
	var before Before
	one, two := planned("prod", "r1"), planned("stage", "r1")
	before.Note(one)
	before.Note(two)
	digest := plan.CombinedDigest([]*plan.Plan{one.Plan, two.Plan})
	a, err := b.Approve(digest, "ann")
	if err != nil {
		t.Fatal(err)
	}
	ready := Approved(a, before)
	if _, err := Unapprove(b, known{}, Request{Digest: strings.ToUpper(digest)}); err != nil {
		t.Fatal(err)
	}
	if err := b.Split(a, ready); err != nil {
		t.Fatal(err)
	}
	if err := b.Begin(ready[0]); !errors.Is(err, ErrWithdrawn) {
		t.Errorf("begins: %v", err)
	}
	if r := read(t, b); len(r.Approvals)+len(r.Grants) > 0 {
		t.Errorf("on record: %+v", r)
	}

	// Of several together, what has begun goes with what has not.
	if _, err := b.Approve(digest, "ann", ready...); err != nil {
		t.Fatal(err)
	}
	if err := b.Begin(ready[0]); err != nil {
		t.Fatal(err)
	}
	out, err := Unapprove(b, known{}, Request{Digest: digest})
	if err != nil || len(out.Withdrawn) != 1 || out.Withdrawn[0].For != "stage" || len(out.Begun) != 1 || !slices.Equal(out.Plans, []string{"stage", "prod"}) {
		t.Errorf("%+v, %v", out, err)
	}
	var wrong *Fault
	if _, err := Unapprove(b, known{}, Request{Digest: digest}); !errors.As(err, &wrong) || wrong.Hint != "no approval is in force; weir history shows earlier approvals" {
		t.Errorf("once more: %v", err)
	}
	if _, err := b.Approve(one.Plan.Digest(), "ann", Grant{Approval: Approval{Digest: one.Plan.Digest()}, Target: "prod"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Unapprove(b, known{}, Request{Digest: digest}); !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Hint, "the approvals in force are "+one.Plan.Digest()[:12]+" of prod by ann") {
		t.Errorf("another one: %v, %+v", err, wrong)
	}
}

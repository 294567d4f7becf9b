package fleet

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

const tabled = `- name: '{1}'
  path: o/*
  vars: {MAX: '4'}
  varsFrom: [{file: '{1}.env'}]
  prune: {enabled: true}
  table:
    dev: {region: eu-west-1, accountID: '111111111111', roleARN: 'arn:aws:iam::111111111111:role/weir'}
    stage: {region: eu-west-1, accountID: '111111111111', roleARN: 'arn:aws:iam::111111111111:role/weir', vars: {MAX: '5'}}
    prod: {region: us-east-1, accountID: '222222222222', roleARN: 'arn:aws:iam::222222222222:role/weir', planRoleARN: 'arn:aws:iam::222222222222:role/plan'}
`

func newTabled(t *testing.T, targets string) *harness {
	t.Helper()
	h := newHarness(t, targets)
	for _, name := range []string{"dev", "stage", "prod", "new"} {
		if err := os.WriteFile(filepath.Join(h.dir, name+".env"), []byte("NAME="+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func codes(d reconciler.Desired) (out []string) {
	for _, one := range d.Diagnostics {
		out = append(out, one.Code)
	}
	return out
}

func TestEachDirectoryIsAppliedWhereItsRowSays(t *testing.T) {
	h := newTabled(t, tabled)
	view := View{Snapshot: snap("r1", pools("o/dev", "o/stage", "o/prod"))}
	c, _ := h.compose(view)
	var places []string
	for _, b := range c.Batches {
		for _, d := range b.Targets {
			places = append(places, fmt.Sprintf("%s %s %s %d %t", d.Policy.Target, d.Policy.Account, d.Policy.Region, d.Set.Pools[0].Group.MaxSize, d.Whole))
		}
	}
	slices.Sort(places)
	if diff := cmp.Diff([]string{"dev 111111111111 eu-west-1 4 true", "prod 222222222222 us-east-1 4 true", "stage 111111111111 eu-west-1 5 true"}, places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if len(c.Batches) != 2 {
		t.Errorf("%d scopes", len(c.Batches))
	}
	again, _ := h.compose(view)
	if !slices.Equal(c.Targets, again.Targets) {
		t.Error("the same targets are told anew")
	}
}

// A directory that the table lacks has no account, not even by default: it is told,
// and the others go on.
func TestADirectoryWithoutARow(t *testing.T) {
	for name, targets := range map[string]string{"as it is": tabled, "with a region for all": "- region: eu-west-1\n" + strings.Replace(tabled, "- name", "  name", 1)} {
		t.Run(name, func(t *testing.T) {
			h := newTabled(t, targets)
			before := View{Snapshot: snap("r1", pools("o/dev", "o/stage", "o/prod"))}
			h.compose(before)
			c, got := h.compose(View{Snapshot: snap("r2", pools("o/dev", "o/stage", "o/prod", "o/new"))})
			d := got["new"]
			if !slices.Equal(codes(d), []string{"row-missing"}) || d.Err != nil || d.Set != nil || d.Whole || d.Policy.Account != "" || d.Policy.Region != "" || !d.Touched {
				t.Errorf("%v, %v, %+v", d.Diagnostics, d.Err, d.Policy)
			}
			for _, b := range c.Batches {
				if b.Targets[0].Policy.Target == "new" && (b.Scope != nil || b.Key != reconciler.ScopeKey{}) {
					t.Errorf("an account is opened for it: %+v", b.Key)
				}
				for _, r := range reconciler.RunBatch(t.Context(), b, reconciler.PlanOnly) {
					if r.Target == "new" && (r.Err != nil || r.Plan != nil || !r.Diagnostics.HasErrors()) || r.Target != "new" && (r.Plan == nil || r.Plan.Empty()) {
						t.Errorf("%s: %v, %v", r.Target, r.Err, r.Diagnostics)
					}
				}
			}
			for _, other := range []string{"dev", "stage", "prod"} {
				if d := got[other]; !d.Whole || len(d.Diagnostics) > 0 {
					t.Errorf("%s: %v", other, d.Diagnostics)
				}
			}
			// A proposal says the same, and touches nothing else.
			base := View{Snapshot: snap("r1", pools("o/dev", "o/stage", "o/prod"))}
			h.compose(base)
			r := h.review(base, Proposal{Snapshot: snap("head", pools("o/dev", "o/stage", "o/prod", "o/new")), Owner: "pull 1", Untrusted: true})
			if !slices.Equal(r.Touched, []string{"new"}) || len(r.Batches) != 1 || r.Batches[0].Scope != nil || !slices.Equal(codes(r.Batches[0].Targets[0]), []string{"row-missing"}) || len(r.Roleless) > 0 {
				t.Errorf("touched %v, roleless %v, %+v", r.Touched, r.Roleless, r.Batches)
			}
		})
	}
}

// Where a row goes, what its target has stays, and is told by who looks there.
func TestARowThatGoesTakesNothingAlong(t *testing.T) {
	h := newTabled(t, tabled)
	view := View{Snapshot: snap("r1", pools("o/dev", "o/stage"))}
	c, _ := h.compose(view)
	apply := func(c *Composition) map[string]*plan.Report {
		out := map[string]*plan.Report{}
		for _, b := range c.Batches {
			for _, r := range reconciler.RunBatch(t.Context(), b, reconciler.Apply) {
				out[r.Target] = r
			}
		}
		return out
	}
	apply(c)
	after := newTabled(t, tabled) // for its configuration
	rows := maps.Clone(after.fleet.o.Config.Targets[0].Table)
	delete(rows, "dev")
	h.fleet.o.Config.Targets[0].Table = rows
	c, _ = h.compose(view)
	reports := apply(c)
	for name, r := range reports {
		for _, o := range r.Outcomes {
			t.Errorf("%s: %+v", name, o)
		}
	}
	var told []string
	for _, d := range reports["stage"].Diagnostics {
		if d.Code == "unknown-target" && strings.Contains(d.Summary, `"dev"`) {
			told = append(told, d.Summary)
		}
	}
	if len(told) != 2 || !reports["dev"].Diagnostics.HasErrors() {
		t.Errorf("of a group and a template is told %q; of the target itself %v", told, reports["dev"].Diagnostics)
	}
}

// Nor does a target that wants the same names take it over.
func TestWhatARowlessTargetHasIsNotTakenOver(t *testing.T) {
	h := newTabled(t, tabled)
	m := pools("o/dev")
	c, _ := h.compose(View{Snapshot: snap("r1", m)})
	for _, r := range reconciler.RunBatch(t.Context(), c.Batches[0], reconciler.Apply) {
		if len(r.Outcomes) != 2 || r.Err != nil {
			t.Fatalf("%v, %v", r.Err, r.Outcomes)
		}
	}
	rows := maps.Clone(h.fleet.o.Config.Targets[0].Table)
	delete(rows, "dev")
	h.fleet.o.Config.Targets[0].Table = rows
	m["o/stage/pool.yaml"] = m["o/dev/pool.yaml"]
	c, _ = h.compose(View{Snapshot: snap("r2", m)})
	for _, b := range c.Batches {
		for _, r := range reconciler.RunBatch(t.Context(), b, reconciler.Apply) {
			for _, o := range r.Outcomes {
				if o.Status == step.Done {
					t.Errorf("%s: %+v", r.Target, o)
				}
			}
			if text := fmt.Sprint(r.Diagnostics); r.Target == "stage" && !strings.Contains(text, "names no account and region") {
				t.Error(text)
			}
		}
	}
}

// Nor where its source cannot be read, so that nobody knows which directories lack a row.
func TestWhatARowlessTargetHasIsNotTakenOverUnread(t *testing.T) {
	h := newTabled(t, tabled+"- {name: plain, path: plain, region: us-east-1, accountID: '000000000000', source: other}\n- {name: devs, path: devs, region: eu-west-1, source: other}\n")
	h.fleet.o.Config.Sources = []string{"s", "other"}
	m := pools("o/dev", "plain")
	views := func(own, other View) map[string]View {
		own.ID, other.ID = "id", "other"
		return map[string]View{"s": own, "other": other}
	}
	pass := func(v map[string]View) map[string]*plan.Report {
		t.Helper()
		c, err := h.fleet.Compose(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		h.accounts.Attach(t.Context(), c.Batches)
		out := map[string]*plan.Report{}
		for _, b := range c.Batches {
			for _, r := range reconciler.RunBatch(t.Context(), b, reconciler.Apply) {
				out[r.Target] = r
			}
		}
		return out
	}
	for i := range h.fleet.o.Config.Targets[0].Table { // the emulator is one account
		row := h.fleet.o.Config.Targets[0].Table[i]
		row.AccountID, row.RoleARN = "000000000000", ""
		h.fleet.o.Config.Targets[0].Table[i] = row
	}
	if r := pass(views(View{Snapshot: snap("r1", m)}, View{Snapshot: snap("o1", m)}))["dev"]; len(r.Outcomes) != 2 || r.Err != nil {
		t.Fatalf("%v, %v", r.Err, r.Outcomes)
	}
	// Only prod has a row left, elsewhere, and the source cannot be read.
	rows := maps.Clone(h.fleet.o.Config.Targets[0].Table)
	delete(rows, "dev")
	delete(rows, "stage")
	h.fleet.o.Config.Targets[0].Table = rows
	m["devs/pool.yaml"] = m["o/dev/pool.yaml"]
	r := pass(views(View{Err: errors.New("no answer")}, View{Snapshot: snap("o2", m)}))["devs"]
	for _, o := range r.Outcomes {
		if o.Status == step.Done {
			t.Errorf("%+v", o)
		}
	}
	if text := fmt.Sprint(r.Diagnostics); !strings.Contains(text, "may be unreadable now") {
		t.Errorf("%v: %s", r.Err, text)
	}
}

func TestRowsWithoutADirectoryAreWarnedOf(t *testing.T) {
	h := newTabled(t, tabled)
	_, got := h.compose(View{Snapshot: snap("r1", pools("o/dev", "o/prod"))})
	if d := got["dev"]; !slices.Equal(codes(d), []string{"row-unused"}) || !strings.Contains(d.Diagnostics[0].Summary, `"stage"`) || !d.Whole {
		t.Errorf("whole %t, %v", d.Whole, d.Diagnostics)
	}
	_, got = h.compose(View{Snapshot: snap("r2", pools("x"))})
	if d := got["{1}"]; !slices.Equal(codes(d), []string{"path-missing", "row-unused", "row-unused", "row-unused"}) {
		t.Errorf("nothing matches: %v", d.Diagnostics)
	}
	_, got = h.compose(View{Err: errors.New("gone")})
	if d := got["{1}"]; len(d.Diagnostics) > 0 {
		t.Errorf("nobody knows: %v", d.Diagnostics)
	}
}

// A review says nothing of rows without a directory: that is about the configuration, and who proposes a change cannot mend it. Targets that the
// proposal adds still find their rows.
func TestAReviewIsSilentAboutRows(t *testing.T) {
	h := newTabled(t, tabled)
	m := pools("o/dev", "o/prod")
	base := View{Snapshot: snap("base", m)}
	if _, got := h.compose(base); !slices.Equal(codes(got["dev"]), []string{"row-unused"}) {
		t.Fatalf("before: %v", got["dev"].Diagnostics)
	}
	for name, tc := range map[string]struct {
		changes map[string]string
		want    []string
	}{
		"a change where a row is unused": {map[string]string{"o/dev/pool.yaml": strings.ReplaceAll(m["o/dev/pool.yaml"], "${MAX:=3}", "${MAX:=2}") + "# changed\n"}, []string{"dev"}},
		"one more of which the row is":   {pools("o/stage"), []string{"stage"}},
		"one less":                       {map[string]string{"o/prod/pool.yaml": "", "o/dev/pool.yaml": m["o/dev/pool.yaml"] + "# changed\n"}, []string{"dev"}},
	} {
		r := h.review(base, Proposal{Snapshot: snap("head", with(m, tc.changes)), Owner: "pull 1"})
		if !slices.Equal(r.Touched, tc.want) {
			t.Errorf("%s: %v", name, r.Touched)
		}
		for _, b := range r.Batches {
			for _, d := range b.Targets {
				if len(d.Diagnostics) > 0 || d.Set == nil {
					t.Errorf("%s: %s: %v", name, d.Policy.Target, d.Diagnostics)
				}
			}
		}
	}
	if _, got := h.compose(base); !slices.Equal(codes(got["dev"]), []string{"row-unused"}) {
		t.Errorf("the warning went with a review: %v", got["dev"].Diagnostics)
	}
}

// While nobody knows which directories there are, nothing is deleted in any place that
// the table names, and elsewhere all goes on.
func TestNothingIsDeletedWhereATableMayLead(t *testing.T) {
	others := `- {name: here, path: here, region: us-east-1, accountID: '222222222222', roleARN: 'arn:aws:iam::222222222222:role/weir'}
- {name: there, path: here, region: us-east-1, accountID: '333333333333', roleARN: 'arn:aws:iam::333333333333:role/weir'}
`
	h := newHarness(t, others+tabled)
	c := h.fleet.o.Config
	c.Sources = append(c.Sources, "t")
	c.Targets[0].Source, c.Targets[1].Source = "t", "t"
	for name, unknown := range map[string]View{"not read yet": {}, "unreadable": {Err: errors.New("gone")}, "no directory": {Snapshot: snap("r1", pools("x"))}} {
		c, err := h.fleet.Compose(t.Context(), map[string]View{"s": unknown, "t": {ID: "t", Snapshot: snap("r1", pools("here"))}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, b := range c.Batches {
			for _, d := range b.Targets {
				got[d.Policy.Target] = d.Whole
			}
		}
		if diff := cmp.Diff(map[string]bool{"here": false, "there": true, "{1}": false}, got); diff != "" {
			t.Errorf("%s: whole (-want +got):\n%s", name, diff)
		}
	}
}

package pulls

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// weir names the other changes of a merge, whichever target reports first.
func TestAMergeIsComparedOnceAllOfItIsKnown(t *testing.T) {
	b, head := started(t, "", "")
	b.round()
	b.merge(1, head, map[string]string{"o/two/pool.yaml": pool("two", "maxSize: 3", "maxSize: 9")})
	var later []*plan.Report
	for _, batch := range b.compose() {
		for _, r := range reconciler.RunBatch(t.Context(), batch, reconciler.Apply) {
			if r.Target == "one" {
				b.w.Reported(r)
			} else {
				later = append(later, r)
			}
		}
	}
	b.round()
	if p := b.display.last(); p.State != report.PullMerged || p.Compared || b.w.pulls.open[1] == nil {
		t.Fatalf("told in the middle of the pass: %+v", p)
	}
	for _, r := range later {
		b.w.Reported(r)
	}
	b.round()
	want := []string{"two: it is changed too, which the review did not show; the plan updates 1 pool"}
	if p := b.display.last(); !p.Compared || !cmp.Equal(p.Differs, want) || b.w.pulls.open[1] != nil {
		t.Errorf("told: %+v", p)
	}
}

// weir also compares a merge whose plan showed no change, or was never made.
func TestAMergeOfWhatWasNotPlanned(t *testing.T) {
	change := map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 9")}
	broken := map[string]string{"o/one/pool.yaml": "a: [\n"}
	changed := "one: it is changed too, which the review did not show; the plan updates 1 pool"
	for name, tc := range map[string]struct {
		files, byHand map[string]string
		fork          bool
		state         report.PullState
		differs       []string // how its lines begin
	}{
		"unaffected, and it is":      {map[string]string{"README.md": "x"}, nil, false, report.PullUnaffected, nil},
		"unaffected, and it is not":  {map[string]string{"README.md": "x"}, change, false, report.PullUnaffected, []string{changed}},
		"unaffected, and it breaks":  {map[string]string{"README.md": "x"}, broken, false, report.PullUnaffected, []string{"one: it cannot be planned: o/one/pool.yaml:"}},
		"a fork that nobody allowed": {change, nil, true, report.PullWaiting, []string{"no plan of the merged commit ", "one: the plan updates 1 pool"}},
		"failing, and it does":       {broken, nil, false, report.PullFailing, nil},
		"failing, and it is mended":  {broken, change, false, report.PullFailing, []string{"one: the review showed no plan for it; the plan updates 1 pool"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := started(t, "", "")
			head := b.propose(2, tc.files, func(p *forge.PullRequest) { p.Fork = tc.fork })
			b.forge.pulls[1].State = forge.Closed
			b.round()
			if p := b.display.last(); p.Number != 2 || p.State != tc.state {
				t.Fatalf("told: %+v", p)
			}
			b.merge(2, head, tc.byHand)
			batches := b.compose()
			b.round() // which comes before the pass is over
			for _, batch := range batches {
				for _, r := range reconciler.RunBatch(t.Context(), batch, reconciler.Apply) {
					b.w.Reported(r)
				}
			}
			b.round()
			p := b.display.last()
			if p.State != report.PullMerged || len(p.Differs) != len(tc.differs) || !p.Compared || b.w.pulls.open[2] != nil {
				t.Fatalf("told: %+v", p)
			}
			for i, line := range tc.differs {
				if !strings.HasPrefix(p.Differs[i], line) {
					t.Errorf("differs: %q", p.Differs[i])
				}
			}
		})
	}
}

// A target that cannot be planned is not waited for for ever, nor passed over.
func TestAMergeThatIsNeverPlanned(t *testing.T) {
	b, head := started(t, "", "")
	b.round()
	b.merge(1, head)
	b.compose()
	b.round()
	b.clock = b.clock.Add(waiting)
	b.round()
	want := []string{"one: it was not planned within 24 hours of the merge"}
	if p := b.display.last(); p.State != report.PullMerged || p.Compared || !cmp.Equal(p.Uncompared, want) || len(p.Differs) != 0 || b.w.pulls.open[1] != nil {
		t.Errorf("told: %+v", p)
	}
}

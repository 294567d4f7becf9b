package pulls

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// started is a bench with two converged targets and an open pull request that
// changes the first.
func started(t *testing.T, pullRequests, extra string, edit ...func(*forge.PullRequest)) (b *bench, head string) {
	t.Helper()
	b = newBench(t, pullRequests, extra)
	b.main(map[string]string{"o/one/pool.yaml": pool("one"), "o/two/pool.yaml": pool("two")})
	b.converge()
	head = b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 5")}, edit...)
	return b, head
}

// steps are what the reports of a pull request would do.
func steps(p report.Pull) string {
	var out []string
	for _, r := range p.Reports {
		for _, s := range r.Plan.Steps {
			out = append(out, r.Target+" "+string(s.Verb)+" "+string(s.Resource))
		}
	}
	return strings.Join(out, ", ")
}

func TestAPullRequestIsPlanned(t *testing.T) {
	b, head := started(t, "", "")
	b.round()
	p := b.display.last()
	if p.State != report.PullPlanned || p.HeadSHA != head || p.BaseSHA != b.repo.Tip("main") || p.Unaffected != 1 || p.Title != "a title" {
		t.Fatalf("told: %+v", p)
	}
	if got := steps(p); got != "one update auto-scaling-group" {
		t.Errorf("steps: %s", got)
	}
	if want := plan.CombinedDigest([]*plan.Plan{p.Reports[0].Plan}); p.Digest == "" || p.Digest != want {
		t.Errorf("digest %s, want %s", p.Digest, want)
	}
	if diff := cmp.Diff([]string{"1 " + head}, b.display.begun); diff != "" {
		t.Errorf("begun: %s", diff)
	}
	for _, r := range p.Reports {
		for _, s := range r.Plan.Steps {
			for _, c := range s.Changes {
				if c.Origin == nil || c.Origin.File != "o/one/pool.yaml" || c.Origin.Line == 0 {
					t.Errorf("%s has no origin: %+v", c.Field, c.Origin)
				}
			}
		}
	}
	// Looking again says nothing more, and asks nobody for what is known.
	told, calls := len(b.display.shown), len(b.aws.Calls())
	for range 3 {
		b.round()
	}
	if len(b.display.shown) != told || len(b.aws.Calls()) != calls {
		t.Errorf("%d more told, %d more calls to AWS", len(b.display.shown)-told, len(b.aws.Calls())-calls)
	}
	if n := b.forge.asked["pull"]; n != 0 {
		t.Errorf("%d calls for an unchanged pull request", n)
	}
}

// weir applies the plan that it showed: the plan after the merge has its digest.
func TestTheReviewedPlanIsApplied(t *testing.T) {
	b, head := started(t, "", "")
	b.round()
	b.merge(1, head)
	b.pass()
	b.round()
	p := b.display.last()
	if p.State != report.PullMerged || !p.Compared || len(p.Differs) != 0 || p.MergeSHA != b.repo.Tip("main") {
		t.Fatalf("told: %+v", p)
	}
	if b.w.pulls.open[1] != nil {
		t.Error("the pull request is not forgotten")
	}
	if records, err := b.w.pulls.all(); err != nil || len(records) != 0 {
		t.Errorf("records: %v, %v", records, err)
	}
}

// The order in which weir hears of a merge and applies it does not matter.
func TestAMergeThatIsHeardOfBeforeItIsApplied(t *testing.T) {
	b, head := started(t, "", "")
	b.round()
	b.merge(1, head)
	b.round()
	if p := b.display.last(); p.State != report.PullMerged || p.Compared || len(p.Differs) != 0 {
		t.Fatalf("told: %+v", p)
	}
	if b.w.pulls.open[1] == nil {
		t.Fatal("forgotten before it was applied")
	}
	b.restart() // nothing of it is lost
	b.round()
	b.pass()
	b.round()
	if p := b.display.last(); p.State != report.PullMerged || len(p.Differs) != 0 || b.w.pulls.open[1] != nil {
		t.Fatalf("told: %+v", p)
	}
}

func TestAPlanThatDiffersAfterTheMergeIsSaid(t *testing.T) {
	b, head := started(t, "", "")
	b.round()
	b.merge(1, head, map[string]string{
		"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 6"),
		"o/two/pool.yaml": pool("two", "maxSize: 3", "maxSize: 9"),
	})
	b.pass()
	b.round()
	p := b.display.last()
	want := []string{
		"one: the plan is not the reviewed one; it updates 1 pool",
		"two: it is changed too, which the review did not show; the plan updates 1 pool",
	}
	if diff := cmp.Diff(want, p.Differs); p.State != report.PullMerged || diff != "" || len(p.Uncompared) != 0 {
		t.Errorf("told %s: %s %s", p.State, diff, p.Uncompared)
	}
	if len(b.events) != 2 || b.events[0].Kind != "plan-differs" {
		t.Errorf("events: %+v", b.events)
	}
}

func TestWhatBecomesOfAPullRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		edit  func(*forge.PullRequest)
		state report.PullState
		says  string
	}{
		"no target":      {map[string]string{"README.md": "x"}, nil, report.PullUnaffected, ""},
		"broken":         {map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: many")}, nil, report.PullFailing, "one: o/one/pool.yaml:"},
		"not even YAML":  {map[string]string{"o/one/pool.yaml": "a: [\n"}, nil, report.PullFailing, "one: o/one/pool.yaml:"},
		"a conflict":     {map[string]string{"shared": "theirs"}, nil, report.PullConflict, "update the branch: shared: added on both sides"},
		"a fork":         {map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 5")}, func(p *forge.PullRequest) { p.Fork = true }, report.PullWaiting, "pull requests from forks are not planned here"},
		"another branch": {map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 5")}, func(p *forge.PullRequest) { p.BaseRef = "release" }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", "")
			b.main(map[string]string{"o/one/pool.yaml": pool("one"), "o/two/pool.yaml": pool("two")})
			if tc.edit == nil {
				tc.edit = func(*forge.PullRequest) {}
			}
			b.propose(1, tc.files, tc.edit)
			b.main(map[string]string{"shared": "ours"})
			b.pass()
			calls := len(b.aws.Calls())
			b.round()
			p := b.display.last()
			if p.State != tc.state || !strings.Contains(p.Reason, tc.says) {
				t.Errorf("told %q: %s", p.State, p.Reason)
			}
			if tc.state == report.PullWaiting && len(b.aws.Calls()) != calls {
				t.Error("AWS was asked for what nobody allowed")
			}
			if tc.state == report.PullFailing && strings.Contains(p.Reason, "/tmp/") {
				t.Errorf("a path of this machine: %s", p.Reason)
			}
		})
	}
}

func TestATargetThatIsTakenAway(t *testing.T) {
	b, _ := started(t, "", "")
	b.repo.Switch("pull-1")
	b.repo.Remove("o/one/pool.yaml")
	b.propose(1, map[string]string{"other": "x"})
	b.round()
	p := b.display.last()
	if p.State != report.PullPlanned || !cmp.Equal(p.Gone, []string{"one"}) || len(p.Reports) != 0 || p.Unaffected != 1 {
		t.Errorf("told: %+v", p)
	}
}

func TestDraftsWaitWhereTheyAreAskedTo(t *testing.T) {
	draft := func(p *forge.PullRequest) { p.Draft = true }
	b, _ := started(t, "", "", draft)
	if b.round(); b.display.last().State != report.PullPlanned {
		t.Errorf("a draft: %+v", b.display.last())
	}
	b, _ = started(t, "drafts: wait", "", draft)
	if b.round(); b.display.last().State != report.PullWaiting || !strings.HasPrefix(b.display.last().Reason, "a draft") {
		t.Errorf("a draft: %+v", b.display.last())
	}
	b.forge.pulls[1].Draft = false
	b.forge.version++
	if b.round(); b.display.last().State != report.PullPlanned {
		t.Errorf("ready for review: %+v", b.display.last())
	}
}

func TestNewHeadsAndMovedBases(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	first := b.display.last()
	// A commit that has nothing to do with it: the plan stays, nobody is told and AWS is not asked.
	told := len(b.display.shown)
	b.main(map[string]string{"README.md": "x"})
	b.pass()
	calls := len(b.aws.Calls())
	b.round()
	if len(b.display.shown) != told || len(b.aws.Calls()) != calls {
		t.Errorf("%d more told, %d calls", len(b.display.shown)-told, len(b.aws.Calls())-calls)
	}
	// One that changes another target.
	b.main(map[string]string{"o/two/pool.yaml": pool("two", "maxSize: 3", "maxSize: 4")})
	b.pass()
	calls = len(b.aws.Calls())
	if b.round(); len(b.display.shown) != told || len(b.aws.Calls()) != calls {
		t.Errorf("%d more told, %d calls", len(b.display.shown)-told, len(b.aws.Calls())-calls)
	}
	// A push.
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 7")})
	b.round()
	if p := b.display.last(); p.State != report.PullPlanned || p.Digest == first.Digest || p.BaseSHA != b.repo.Tip("main") {
		t.Errorf("after a push: %+v", p)
	}
	// A commit on the same path.
	b.main(map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 8")})
	b.pass()
	b.round()
	if p := b.display.last(); p.State != report.PullConflict {
		t.Errorf("after the same path: %+v", p)
	}
}

// A change of the target's base is planned anew though the proposal is the same.
func TestTheBaseOfTheTargetMoves(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	first := b.display.last()
	b.main(map[string]string{"o/one/more.yaml": pool("more")})
	b.converge()
	b.round()
	if p := b.display.last(); p.BaseSHA == first.BaseSHA || p.State != report.PullPlanned || steps(p) != "one update auto-scaling-group" {
		t.Errorf("told: %s %s", p.State, steps(p))
	}
}

func TestAWSMovesUnderAPlan(t *testing.T) {
	b, _ := started(t, "", "")
	b.pass()
	b.round()
	first := b.display.last()
	b.drift("a-one-does-not-matter")
	b.round()
	p := b.display.last()
	if p.Digest != first.Digest {
		t.Errorf("a plan changed though nothing did: %s", steps(p))
	}
	b.drift("one")
	// The pass sees the drift and puts it right: both times the target moved.
	b.pass()
	told := len(b.display.shown)
	b.round()
	if len(b.display.shown) == told {
		t.Error("the plan was not made again")
	}
}

// weir tries again to plan a pull request after a failure that passes.
func TestAPlanThatFailsIsTriedAgain(t *testing.T) {
	b, _ := started(t, "", "")
	b.repo.Git("update-ref", "refs/pull/1/head", b.repo.Tip("main"))
	b.round()
	if len(b.display.shown) != 0 {
		t.Errorf("what the forge will mend was told: %+v", b.display.last())
	}
	b.repo.Git("update-ref", "refs/pull/1/head", b.forge.pulls[1].HeadSHA)
	b.clock = b.clock.Add(time.Hour)
	b.round()
	if b.display.last().State != report.PullPlanned {
		t.Errorf("told: %+v", b.display.last())
	}
}

func TestTheForgeIsAway(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	told := len(b.display.shown)
	b.forge.err = errors.New("away")
	b.round()
	if len(b.display.shown) != told || b.w.pulls.open[1] == nil {
		t.Errorf("told: %+v", b.display.last())
	}
	b.forge.err = nil
	b.forge.pulls[1].State = forge.Closed
	b.forge.version++
	b.round()
	if b.display.last().State != report.PullClosed || b.w.pulls.open[1] != nil {
		t.Errorf("told: %+v", b.display.last())
	}
}

func TestARetargetedPullRequest(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	b.forge.pulls[1].BaseRef = "release"
	b.forge.version++
	b.round()
	if p := b.display.last(); p.State != report.PullClosed || p.Reason != "its target branch has changed" {
		t.Errorf("told: %+v", p)
	}
	b.forge.pulls[1].BaseRef = "main"
	b.forge.version++
	if b.round(); b.display.last().State != report.PullPlanned {
		t.Errorf("told: %+v", b.display.last())
	}
}

// A pull request that is merged while weir is away is seen to its end.
func TestMergedWhileAway(t *testing.T) {
	b, head := started(t, "", "")
	b.round()
	b.merge(1, head)
	b.restart()
	b.pass() // the first one of the process, of which nobody knows what came before
	b.round()
	if p := b.display.last(); p.State != report.PullMerged || len(p.Differs) != 0 || b.w.pulls.open[1] != nil {
		t.Errorf("told: %+v", p)
	}
}

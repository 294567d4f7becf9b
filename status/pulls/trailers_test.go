package pulls

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

const allowOne = "\n\nWeir-Allow-Prune: one\n"

// six has a target of six pools, of which a pull request takes all but one away.
func six(t *testing.T) (b *bench, most map[string]string) {
	t.Helper()
	b = newBench(t, "", "")
	var all []string
	for i := range 6 {
		all = append(all, pool(fmt.Sprintf("pool-%d", i)))
	}
	b.main(map[string]string{"o/one/pool.yaml": strings.Join(all, "---\n")})
	b.converge()
	return b, map[string]string{"o/one/pool.yaml": all[0]}
}

// settle makes passes and looks for a while, and returns how many groups are left, what
// the last pass found, and what the pull request's record says in the end.
func (b *bench) settle() (groups int, last *plan.Report, told report.Pull) {
	b.t.Helper()
	b.free = true
	defer func() { b.free = false }()
	for range 12 {
		for _, r := range b.pass() {
			if r.Err != nil {
				b.t.Fatal(r.Err)
			}
			last = r
		}
		b.round()
		b.awsClock.Advance(time.Minute)
	}
	return len(last.Pools) + len(deletes(last.Plan)), last, b.display.last()
}

// deletes are the groups that a plan would delete.
func deletes(p *plan.Plan) (out []step.Step) {
	for _, s := range p.Steps {
		if s.Verb == step.Delete && s.Resource == step.AutoScalingGroup {
			out = append(out, s)
		}
	}
	return out
}

func codes(r *plan.Report) (out []string) {
	for _, d := range r.Diagnostics {
		out = append(out, d.Code)
	}
	return out
}

// A trailer counts on the merge of a pull request for what its plan showed as allowed,
// however it was merged, and for nothing else.
func TestATrailerCountsForWhatWasShown(t *testing.T) {
	for name, tc := range map[string]struct {
		proposal, message string
		merge             func(b *bench, head string)
		left              int
		// ignored is in the diagnostics, differs in the pull request's record.
		ignored, differs string
	}{
		"in the head and in the squash": {proposal: "less" + allowOne, message: "less (#1)" + allowOne, left: 1},
		"in the head and in the merge commit": {proposal: "less" + allowOne, message: "Merge pull request #1" + allowOne, left: 1,
			merge: func(b *bench, head string) { b.merge(1, head) }},
		"first in the squash":       {message: "less (#1)" + allowOne, left: 6, ignored: "its plan did not show their deletion as allowed"},
		"first in the merge commit": {message: "Merge" + allowOne, left: 6, merge: func(b *bench, head string) { b.merge(1, head) }, ignored: "its plan did not show"},
		"as prose in the squash":    {message: "less (#1)\n\nTo let it through, write\nWeir-Allow-Prune: one\ninto it.", left: 6},
		"as prose in the head":      {proposal: "less\n\nnot meant:\nWeir-Allow-Prune: one\n", message: "less" + allowOne, left: 6, ignored: "its plan did not show"},
		"in the head alone":         {proposal: "less" + allowOne, message: "less (#1)", left: 6, differs: "the review showed no step as held, and 10 steps (prune-limit) are held"},
		"for another target":        {proposal: "less\n\nWeir-Allow-Prune: two\n", message: "less" + allowOne, left: 6, ignored: "its plan did not show"},
		"of a commit that was not shown": {proposal: "less" + allowOne, message: "less (#1)" + allowOne, left: 6, ignored: "was shown", differs: "and 10 steps (prune-limit) are held",
			merge: func(b *bench, _ string) {
				head := b.propose(1, map[string]string{"o/one/more.txt": "pushed right before the merge"})
				b.squash(1, head)
			}},
		"merged by hand": {proposal: "less" + allowOne, message: "by hand" + allowOne, left: 1, merge: func(b *bench, head string) {
			b.merge(1, head)
			b.forge.pulls[1].State, b.forge.pulls[1].MergeSHA = forge.Open, "" // nobody tells the forge
		}},
		"merged by hand, first there": {message: "by hand" + allowOne, left: 6, ignored: "its plan did not show", merge: func(b *bench, head string) {
			b.merge(1, head)
			b.forge.pulls[1].State, b.forge.pulls[1].MergeSHA = forge.Open, ""
		}},
		"in the head and in a squash that nobody reports": {proposal: "less" + allowOne, message: "less (#1)" + allowOne, left: 1,
			merge: func(b *bench, head string) { b.squashCommit(head) }},
		"first in a squash that nobody reports": {message: "less (#1)" + allowOne, left: 6, ignored: "its plan did not show",
			merge: func(b *bench, head string) { b.squashCommit(head) }},
		"moved forward to the head": {proposal: "less" + allowOne, left: 1, merge: func(b *bench, head string) {
			b.repo.Branch("main", head)
			p := b.forge.pulls[1]
			p.State, p.MergeSHA, p.UpdatedAt = forge.Merged, head, b.now()
			b.forge.version++
		}},
		"with a later commit on top": {proposal: "less" + allowOne, message: "less (#1)" + allowOne, left: 6, differs: "and 10 steps (prune-limit) are held", merge: func(b *bench, head string) {
			b.squash(1, head)
			b.main(map[string]string{"README.md": "later"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, most := six(t)
			b.proposal, b.message = tc.proposal, tc.message
			head := b.propose(1, most)
			b.round()
			shown, allowed := b.display.last(), strings.HasSuffix(tc.proposal, allowOne)
			if shown.Digest == "" && allowed || len(shown.Reports) != 1 || len(deletes(shown.Reports[0].Plan)) != 5 {
				t.Fatalf("shown: %s %s %+v", shown.State, shown.Reason, shown.Reports)
			}
			for _, s := range deletes(shown.Reports[0].Plan) {
				if (s.Held == "") != allowed || strings.Contains(s.Reason, "trailer") != allowed {
					t.Errorf("shown: %s is held for %q: %s", s.Name, s.Held, s.Reason)
				}
			}
			if has := slices.Contains(codes(shown.Reports[0]), "trailer-counts"); has != allowed {
				t.Errorf("the reader is told of the trailer: %t", has)
			}
			if tc.merge == nil {
				tc.merge = func(b *bench, head string) { b.squash(1, head) }
			}
			tc.merge(b, head)
			left, last, told := b.settle()
			if left != tc.left {
				t.Errorf("left: got %d, want %d: %v", left, tc.left, last.Diagnostics)
			}
			if text := fmt.Sprint(last.Diagnostics); !strings.Contains(text, tc.ignored) || slices.Contains(codes(last), "trailer-ignored") != (tc.ignored != "") {
				t.Errorf("diagnostics: %s", text)
			}
			if differs := strings.Join(told.Differs, "; "); !strings.Contains(differs, tc.differs) || tc.differs == "" && differs != "" {
				t.Errorf("told %s: %q", told.State, differs)
			}
		})
	}
}

// A plan that showed the deletion of some pools allows no deletion of others that the same commit removes.
func TestATrailerCountsForThePoolsThatWereShown(t *testing.T) {
	b, most := six(t)
	b.proposal = "less" + allowOne
	most["o/one/pool.yaml"] += "---\n" + pool("pool-1") + "---\n" + pool("pool-2") + "---\n" + pool("pool-3")
	head := b.propose(1, most)
	b.round()
	// The forge's merge holds more than that: somebody solved a conflict.
	b.repo.Switch("main")
	b.repo.Write(map[string]string{"o/one/pool.yaml": pool("pool-0")})
	sha := b.repo.Commit("less" + allowOne)
	p := b.forge.pulls[1]
	p.State, p.MergeSHA, p.UpdatedAt, p.HeadSHA = forge.Merged, sha, b.now(), head
	b.forge.version++
	left, last, told := b.settle()
	if left != 4 || !strings.Contains(fmt.Sprint(last.Diagnostics), "no effect for 3 of 5 pools") {
		t.Errorf("left %d: %v", left, last.Diagnostics)
	}
	if differs := strings.Join(told.Differs, "; "); !strings.Contains(differs, "not the reviewed one") || !strings.Contains(differs, "6 steps (prune-limit) are held") {
		t.Errorf("told %s: %s", told.State, differs)
	}
}

// Nothing goes before it is known what a commit is, and a forge that does not know yet
// is asked again.
func TestATrailerWaitsForTheForge(t *testing.T) {
	held := func(b *bench) map[step.Hold]int {
		out := map[step.Hold]int{}
		for _, r := range b.pass() {
			for _, s := range deletes(r.Plan) {
				out[s.Held]++
			}
		}
		return out
	}
	t.Run("pushed without a pull request", func(t *testing.T) {
		b, most := six(t)
		b.repo.Switch("main")
		b.repo.Write(most)
		b.repo.Commit("less" + allowOne)
		if got := held(b); got[step.HeldWaiting] != 5 {
			t.Errorf("before the forge was asked: %v", got)
		}
		b.clock = b.clock.Add(asking)
		b.w.round(t.Context())
		if got := held(b); got[step.HeldWaiting] != 5 {
			t.Errorf("right after the push: %v", got)
		}
		if left, last, _ := b.settle(); left != 1 {
			t.Errorf("left %d: %v", left, last.Diagnostics)
		}
	})
	for name, tc := range map[string]struct {
		byHand map[string]string
		hold   step.Hold
	}{
		// Git knows: the commit is what merging the pull request gives.
		"the forge tells of the merge late":                        {nil, step.HeldPruneLimit},
		"the forge tells late of a merge that somebody had edited": {map[string]string{"README.md": "x"}, step.HeldWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			b, most := six(t)
			b.message = "less" + allowOne
			head := b.propose(1, most)
			b.round()
			before := b.repo.Tip("main")
			sha := b.squashCommit(head)
			if tc.byHand != nil {
				tree := b.main(tc.byHand) + "^{tree}"
				sha = b.repo.Git("commit-tree", b.repo.Git("rev-parse", tree), "-p", before, "-m", b.message)
				b.repo.Branch("main", sha)
			}
			b.pass()
			b.clock = b.clock.Add(asking)
			b.w.round(t.Context())
			if got := held(b); got[tc.hold] != 5 {
				t.Errorf("while the forge has it open: %v", got)
			}
			b.merged(1, sha)
			if left, last, _ := b.settle(); left != 6 {
				t.Errorf("left %d: %v", left, last.Diagnostics)
			}
		})
	}
	t.Run("opened and merged between two looks", func(t *testing.T) {
		b, most := six(t)
		b.proposal, b.message = "less"+allowOne, "less"+allowOne
		b.squash(1, b.propose(1, most))
		if left, last, _ := b.settle(); left != 6 || !strings.Contains(fmt.Sprint(last.Diagnostics), "no plan of it was shown") {
			t.Errorf("left %d: %v", left, last.Diagnostics)
		}
	})
	t.Run("the forge is away", func(t *testing.T) {
		b, most := six(t)
		b.repo.Switch("main")
		b.repo.Write(most)
		b.repo.Commit("less" + allowOne)
		b.forge.err = errors.New("away")
		if left, last, _ := b.settle(); left != 6 || !slices.Contains(codes(last), "prune-waits") || slices.Contains(codes(last), "prune-refused") {
			t.Errorf("left %d: %v", left, last.Diagnostics)
		}
		if n := b.forge.asked["pulls"]; n > 20 {
			t.Errorf("it was asked %d times in six minutes", n)
		}
		b.forge.err, b.forge.cut = nil, true
		if left, last, _ := b.settle(); left != 6 {
			t.Errorf("with a list that is cut off: left %d: %v", left, last.Diagnostics)
		}
		b.clock = b.clock.Add(waiting)
		if left, last, _ := b.settle(); left != 6 || !strings.Contains(fmt.Sprint(last.Diagnostics), "within 24 hours the forge has not said") {
			t.Errorf("a day later: left %d: %v", left, last.Diagnostics)
		}
	})
}

// Whenever the process ends between the merge and the last deletion, the next one
// knows the same.
func TestATrailerAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		proposal string
		left     int
	}{"shown": {"less" + allowOne, 1}, "not shown": {"", 6}} {
		for when, stop := range []func(b *bench){
			func(b *bench) { b.restart() },                                // before anything of the merge was seen
			func(b *bench) { b.pass(); b.restart() },                      // while it is asked about
			func(b *bench) { b.pass(); b.round(); b.restart() },           // it is known, nothing is deleted
			func(b *bench) { b.pass(); b.round(); b.pass(); b.restart() }, // in the middle
			func(b *bench) { b.pass(); b.round(); b.pass(); b.round(); b.restart() },
		} {
			t.Run(fmt.Sprint(name, " ", when), func(t *testing.T) {
				b, most := six(t)
				b.proposal, b.message = tc.proposal, "less"+allowOne
				head := b.propose(1, most)
				b.round()
				b.squash(1, head)
				b.free = true
				stop(b)
				if left, last, _ := b.settle(); left != tc.left {
					t.Errorf("left %d: %v", left, last.Diagnostics)
				}
			})
		}
	}
}

package pulls

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// A merge is seen in three places, in any order: Git has it, the forge reports it, and
// weir applies it. The forge may be early or late, and its hook may be missing.

// ways are how a pull request comes into main: each gives the commit that did it, of
// which the forge does not know yet.
var ways = map[string]func(b *bench, head string) string{
	"merge commit": func(b *bench, head string) string { return b.mergeCommit(head) },
	"squash":       func(b *bench, head string) string { return b.squashCommit(head) },
	"rebase":       func(b *bench, head string) string { return b.squashCommit(head) }, // of one commit
	"fast-forward": func(b *bench, head string) string { b.repo.Branch("main", head); return head },
}

// glance has the watcher look a moment later, as after a hook.
func (b *bench) glance() {
	b.t.Helper()
	b.clock = b.clock.Add(time.Second)
	b.w.Changed(1)
	b.w.round(b.t.Context())
	b.finish()
}

// stop ends the process as it should end, and begins another one.
func (b *bench) stop() {
	b.t.Helper()
	b.w.commits.save()
	b.restart()
}

// do does what letters say, one after the other:
//
//	G  the merge is in Git        F  the forge reports it
//	P  weir follows and applies   C  until it has converged
//	L  weir looks at the forge, as after a hook
//	R  it looks by itself, half a minute later
//	X  weir ends and is started again
func (b *bench) do(letters string, merge func() string) {
	b.t.Helper()
	sha := ""
	for _, letter := range letters {
		switch letter {
		case 'G':
			sha = merge()
		case 'F':
			b.merged(1, sha)
		case 'P':
			b.pass()
		case 'C':
			b.converge()
		case 'L':
			b.glance()
		case 'R':
			b.round()
		case 'X':
			b.stop()
		}
	}
}

// permutations of letters.
func permutations(letters string) (out []string) {
	if letters == "" {
		return []string{""}
	}
	for i := range letters {
		for _, rest := range permutations(letters[:i] + letters[i+1:]) {
			out = append(out, letters[i:i+1]+rest)
		}
	}
	return out
}

// In any order of events, weir says once that a merge is what was reviewed, and nothing else on the way.
func TestTheOrderInWhichAMergeIsSeenDoesNotMatter(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(ways))
	for i, order := range permutations("FPLR") {
		kind := kinds[i%len(kinds)]
		if at := i % 7; at <= len(order) {
			order = order[:at] + "X" + order[at:]
		}
		if i%3 == 0 {
			order = strings.Replace(order, "P", "C", 1)
		}
		t.Run(order+", "+kind, func(t *testing.T) {
			t.Parallel()
			b, head := started(t, "", "")
			b.round()
			reviewed := b.display.last()
			b.do("G"+order+"PRR", func() string { return ways[kind](b, head) })
			b.oneVerdict(reviewed, strings.Contains(strings.Split(order, "F")[0], "R"))
		})
	}
}

// oneVerdict fails unless the pull request was told of as merged, and as reviewed, and
// as nothing else since it was reviewed. If a forge is late, weir may first say that
// nothing is left to do.
func (b *bench) oneVerdict(reviewed report.Pull, late bool) {
	b.t.Helper()
	p := b.display.last()
	if p.State != report.PullMerged || !p.Compared || len(p.Differs)+len(p.Uncompared) > 0 || b.w.pulls.open[1] != nil {
		b.t.Errorf("told in the end: %s, compared %t: %q %q", p.State, p.Compared, p.Differs, p.Uncompared)
	}
	if p.Digest != reviewed.Digest || p.BaseSHA != reviewed.BaseSHA || p.MergeSHA == "" {
		b.t.Errorf("told of another plan: %s upon %s, merged as %q", p.Digest, p.BaseSHA, p.MergeSHA)
	}
	verdicts := 0
	for _, p := range b.display.shown {
		switch {
		case p.State == report.PullUnaffected && !late || p.State == report.PullConflict || len(p.Differs)+len(p.Uncompared) > 0:
			b.t.Errorf("told on the way: %s %s %q %q", p.State, p.Reason, p.Differs, p.Uncompared)
		case p.Compared:
			verdicts++
		}
	}
	if verdicts != 1 {
		b.t.Errorf("the verdict was told %d times", verdicts)
	}
	for _, e := range b.events {
		b.t.Errorf("event: %s", e.Text)
	}
}

// A forge that reports a merge minutes later, when the pull request has been planned
// anew upon the merge itself and found to change nothing, raises no alarm.
func TestAForgeThatReportsAMergeLate(t *testing.T) {
	for i, kind := range slices.Sorted(maps.Keys(ways)) {
		for j, order := range []string{"GPRRRRFR", "GCRRRRXRRFRR", "GPRXRRRFRR"} {
			if (i+j)%2 == 0 {
				continue
			}
			t.Run(order+", "+kind, func(t *testing.T) {
				t.Parallel()
				b, head := started(t, "", "")
				b.round()
				reviewed := b.display.last()
				b.do(order, func() string { return ways[kind](b, head) })
				p := b.display.last()
				if p.State != report.PullMerged || !p.Compared || len(p.Differs)+len(p.Uncompared) > 0 || p.Digest != reviewed.Digest || len(b.events) > 0 {
					t.Errorf("told: %s, compared %t, digest %q: %q %q", p.State, p.Compared, p.Digest, p.Differs, p.Uncompared)
				}
			})
		}
	}
}

// Not every forge says that a pull request was merged that a person merged and pushed,
// or as which commit.
func TestAMergeThatTheForgeDoesNotReportAsOne(t *testing.T) {
	for name, say := range map[string]func(p *forge.PullRequest){
		"closed":                   func(p *forge.PullRequest) { p.State = forge.Closed },
		"merged without a commit":  func(p *forge.PullRequest) { p.State, p.MergeSHA = forge.Merged, "" },
		"merged as its own commit": func(p *forge.PullRequest) { p.State, p.MergeSHA = forge.Merged, p.HeadSHA },
	} {
		for _, order := range []string{"GFPR", "GPRFR", "GPRRRRFR"} {
			t.Run(name+", "+order, func(t *testing.T) {
				t.Parallel()
				b, head := started(t, "", "")
				b.round()
				before, after, _ := strings.Cut(order, "F")
				b.do(before, func() string { return b.mergeCommit(head) })
				if name == "closed" && !strings.Contains(before, "P") {
					b.pass() // what is not in Git yet was closed, as far as anybody knows
				}
				say(b.forge.pulls[1])
				b.forge.version++
				b.do(after+"RR", nil)
				if p := b.display.last(); p.State != report.PullMerged || !p.Compared || len(p.Differs)+len(p.Uncompared) > 0 || b.w.pulls.open[1] != nil {
					t.Errorf("told %s, compared %t: %q %q %s", p.State, p.Compared, p.Differs, p.Uncompared, p.Reason)
				}
			})
		}
	}
	t.Run("merged, and never as which commit", func(t *testing.T) {
		b, head := started(t, "", "")
		b.round()
		b.squashCommit(head)
		b.forge.pulls[1].State = forge.Merged
		b.forge.version++
		b.do("PRR", nil)
		b.clock = b.clock.Add(waiting)
		b.round()
		p := b.display.last()
		if p.State != report.PullMerged || p.Compared || len(p.Differs) > 0 || b.w.pulls.open[1] != nil {
			t.Errorf("told: %+v", p)
		}
		begin(t, "untold", p.Uncompared, []string{"the forge does not say as which commit it was merged"})
	})
	t.Run("closed without being merged", func(t *testing.T) {
		b, _ := started(t, "", "")
		b.round()
		b.forge.pulls[1].State = forge.Closed
		b.forge.version++
		b.do("PR", nil)
		if p := b.display.last(); p.State != report.PullClosed {
			t.Errorf("told: %+v", p)
		}
	})
}

// A process that dies while it applies a merge leaves nobody who knows what was planned
// first: that is said, and is no alarm.
func TestAProcessThatDiesWhileItAppliesAMerge(t *testing.T) {
	b, head := started(t, "", "")
	b.round()
	b.do("GFP", func() string { return b.mergeCommit(head) })
	b.restart() // nothing of the pass was written down
	b.do("PRR", nil)
	p := b.display.last()
	if p.State != report.PullMerged || p.Compared || len(p.Differs) > 0 || len(b.events) > 0 {
		t.Errorf("told: %s %q", p.State, p.Differs)
	}
	begin(t, "untold", p.Uncompared, []string{"one: weir restarted while it applied the merge"})
}

// renew makes the fleet anew, as a new process and a new configuration do: it takes all
// targets for changed by the commit that it begins with.
func (b *bench) renew() {
	b.fleet = fleet.New(fleet.Options{Config: b.config, Accounts: b.accounts, Logger: slog.New(slog.DiscardHandler)})
}

// The reviewed plan outlives the process, and targets that a new process takes for changed are no difference.
func TestAMergeWhileWeirIsAway(t *testing.T) {
	for name, do := range map[string]func(b *bench, head string){
		"away when it is merged": func(b *bench, head string) {
			b.do("GFX", func() string { return b.mergeCommit(head) })
			b.renew()
		},
		"away when it is reported": func(b *bench, head string) {
			b.do("GPXF", func() string { return b.squashCommit(head) })
			b.renew()
		},
		"away once it has looked": func(b *bench, head string) {
			b.do("GPLFLX", func() string { return b.squashCommit(head) })
			b.renew()
		},
		"a new configuration in between": func(b *bench, head string) {
			b.do("GP", func() string { return b.squashCommit(head) })
			b.renew()
			b.pass()
			b.merged(1, b.repo.Tip("main"))
		},
		"away before, and nothing known": func(b *bench, head string) {
			b.do("GF", func() string { return b.mergeCommit(head) })
			err := b.db.Update(func(tx *state.Tx) error {
				return keptCommits.Remove(tx, func(keptCommit, error) bool { return true })
			})
			if err != nil {
				b.t.Fatal(err)
			}
			b.restart()
			b.renew()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, head := started(t, "", "")
			b.round()
			reviewed := b.display.last()
			do(b, head)
			b.do("PRPRRR", nil)
			b.oneVerdict(reviewed, true)
		})
	}
	t.Run("what came with it is not known", func(t *testing.T) {
		t.Parallel()
		b, head := started(t, "", "")
		b.round()
		b.merge(1, head)
		b.stop()
		b.renew()
		b.drift("two")
		b.do("PRR", nil)
		p := b.display.last()
		begin(t, "differs", p.Differs, nil)
		begin(t, "untold", p.Uncompared, []string{"two: weir started after the merge"})
	})
}

// A merge before its plan was made, and one of a fork that nobody let be planned.
func TestAMergeBeforeAPlanWasShown(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	head := b.propose(2, map[string]string{"o/two/pool.yaml": pool("two", "maxSize: 3", "maxSize: 9")})
	b.clock = b.clock.Add(time.Second)
	b.w.Changed(2)
	b.w.round(t.Context()) // its plan is begun
	sha := b.squashCommit(head)
	b.merged(2, sha)
	b.w.Changed(2)
	b.w.round(t.Context())
	b.finish()
	b.do("PRR", nil)
	var p report.Pull
	for _, s := range b.display.shown {
		if s.Number == 2 {
			p = s
		}
	}
	if p.State != report.PullMerged {
		t.Errorf("told: %+v", p)
	}
	begin(t, "differs", p.Differs, []string{"no plan of the merged commit " + head[:7] + " was shown before the merge", "two: the plan updates 1 pool"})
}

// Where plans wait for an approval, nothing of this lets one run, in any order.
func TestAMergeHoldsUntilItIsApproved(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(ways))
	for i, order := range permutations("FPL") {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			b, head := started(t, "", ", apply: as-reviewed")
			b.round()
			b.do("G"+order+"PRR", func() string { return ways[kinds[i%len(kinds)]](b, head) })
			p := b.display.last()
			if p.State != report.PullMerged || !p.Compared || len(p.Differs)+len(p.Uncompared) > 0 {
				t.Errorf("told %s: %q %q", p.State, p.Differs, p.Uncompared)
			}
			for _, r := range b.pass() {
				for _, o := range r.Outcomes {
					if o.Status == step.Done {
						t.Errorf("%s: %s %s ran though nobody approved it", r.Target, o.Step.Verb, cmp.Or(o.Step.Name, o.Step.Pool))
					}
				}
			}
		})
	}
}

package pulls

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/report"
)

// weir tells a merge apart from commits that come with it or before it.
func TestWhatComesWithAMerge(t *testing.T) {
	two := map[string]string{"o/two/pool.yaml": pool("two", "maxSize: 3", "maxSize: 9")}
	for name, tc := range map[string]struct {
		do func(b *bench, head string)
		// differs and untold have how each line begins, after the target.
		differs, untold []string
	}{
		"a commit that was pushed before it": {do: func(b *bench, head string) {
			b.main(map[string]string{"README.md": "x"})
			b.squash(1, head)
		}},
		"a commit that was pushed after it": {do: func(b *bench, head string) {
			b.squash(1, head)
			b.main(map[string]string{"README.md": "x"})
		}},
		"one that changes another target": {do: func(b *bench, head string) {
			b.squash(1, head)
			b.main(two)
		}, untold: []string{"two: it is changed too, by the merge or by another of the commits up to "}},
		"one that changes the same target": {do: func(b *bench, head string) {
			b.squash(1, head)
			b.main(map[string]string{"o/one/more.yaml": pool("more")})
		}, untold: []string{"one: it was planned together with other commits, up to "}},
		"one that reverts it": {do: func(b *bench, head string) {
			b.squash(1, head)
			b.main(map[string]string{"o/one/pool.yaml": pool("one")})
		}, differs: []string{"one: together with the other commits up to "}},
		"one that reverts it, later": {do: func(b *bench, head string) {
			b.squash(1, head)
			b.pass()
			b.main(map[string]string{"o/one/pool.yaml": pool("one")})
		}},
		"a change by hand in the merge itself": {do: func(b *bench, head string) {
			b.merge(1, head, two)
		}, differs: []string{"two: it is changed too, which the review did not show"}},
		"one that was followed before it": {do: func(b *bench, head string) {
			b.main(two)
			b.pass()
			b.squash(1, head)
		}},
		"nothing, where it is rebased and AWS changed since": {do: func(b *bench, _ string) {
			head := b.propose(1, map[string]string{"README.md": "the second commit"})
			b.round()
			b.drift("one")
			b.rebase(1, head)
		}, differs: []string{"one: the plan is not the reviewed one"}},
		"nothing, where it is rebased": {do: func(b *bench, _ string) {
			head := b.propose(1, map[string]string{"README.md": "the second commit"})
			b.round()
			b.rebase(1, head)
		}},
		"another commit, where it is rebased and AWS changed since": {do: func(b *bench, _ string) {
			head := b.propose(1, map[string]string{"README.md": "the second commit"})
			b.round()
			b.drift("one")
			b.main(map[string]string{"another": "x"})
			b.rebase(1, head)
		}, untold: []string{"one: it was planned together with other commits, up to "}},
		"a push right before it": {do: func(b *bench, _ string) {
			b.squash(1, b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 7")}))
		}, differs: []string{"the merged commit ", "one: the plan is not the reviewed one"}},
		"a push right before it that changes no plan": {do: func(b *bench, _ string) {
			b.squash(1, b.propose(1, map[string]string{"README.md": "x"}))
		}},
		"a push that the forge tells of after the merge was applied": {do: func(b *bench, _ string) {
			head := b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 7")})
			sha := b.squashCommit(head)
			b.pass()
			b.glance() // and sees an open pull request with another head, upon its own merge
			b.merged(1, sha)
		}, differs: []string{"the merged commit ", "one: the plan is not the reviewed one"}},
		"a main that is moved away from it": {do: func(b *bench, head string) {
			before := b.repo.Tip("main")
			b.squash(1, head)
			b.glance()
			b.clock = b.clock.Add(time.Second)
			b.repo.Branch("main", before)
			b.main(map[string]string{"README.md": "x"})
		}, untold: []string{"main was moved to "}},
		"a main that is moved away from it once it was applied": {do: func(b *bench, head string) {
			before := b.repo.Tip("main")
			b.squash(1, head)
			b.pass()
			b.repo.Branch("main", before)
			b.main(map[string]string{"README.md": "x"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, head := started(t, "", "")
			b.round()
			tc.do(b, head)
			b.do("PRPRRR", nil)
			p := b.display.last()
			if p.State != report.PullMerged || b.w.pulls.open[1] != nil || p.Compared != (tc.untold == nil) {
				t.Errorf("told %s, compared %t", p.State, p.Compared)
			}
			begin(t, "differs", p.Differs, tc.differs)
			begin(t, "untold", p.Uncompared, tc.untold)
			if len(b.events) != len(tc.differs) {
				t.Errorf("events: %+v", b.events)
			}
		})
	}
}

// rebase merges a pull request of two commits as two commits.
func (b *bench) rebase(number int64, head string) {
	b.t.Helper()
	tip := b.repo.Tip("main")
	for _, commit := range []string{head + "~1", head} {
		tree := b.repo.Git("merge-tree", "--write-tree", tip, commit)
		tip = b.repo.Git("commit-tree", tree, "-p", tip, "-m", "rebased")
	}
	b.repo.Branch("main", tip)
	b.merged(number, tip)
}

func begin(t *testing.T, what string, lines, want []string) {
	t.Helper()
	if len(lines) != len(want) {
		t.Errorf("%s: %q, want %q", what, lines, want)
		return
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("%s: %q, want %q", what, line, want[i])
		}
	}
}

// Of several pull requests that are merged between two looks at the source only the
// last commit is applied. Each is compared with what it showed.
func TestSeveralMergesBetweenTwoLooks(t *testing.T) {
	for name, tc := range map[string]struct {
		second         map[string]string
		first, another []string // what could not be told
	}{
		"of two targets": {second: map[string]string{"o/two/pool.yaml": pool("two", "maxSize: 3", "maxSize: 9")}},
		"of the same target": {
			second:  map[string]string{"o/one/more.yaml": pool("more")},
			first:   []string{"one: it was planned together with other commits, up to "},
			another: []string{"one: it was planned together with other commits, up to "},
		},
	} {
		for _, order := range []string{"12", "21", "1R2", "2R1", "P1R2", "P2R1", "PRX12"} {
			t.Run(name+", "+order, func(t *testing.T) {
				t.Parallel()
				b, head := started(t, "", "")
				other := b.propose(2, tc.second)
				b.round()
				shas := map[rune]string{'1': b.squashCommit(head), '2': b.mergeCommit(other)}
				for _, letter := range order {
					if sha := shas[letter]; sha != "" {
						b.merged(int64(letter-'0'), sha)
						continue
					}
					b.do(string(letter), nil)
				}
				b.do("PRRR", nil)
				seen := map[int64]report.Pull{}
				for _, p := range b.display.shown {
					seen[p.Number] = p
				}
				for number, want := range map[int64][]string{1: tc.first, 2: tc.another} {
					p := seen[number]
					if p.State != report.PullMerged || p.Compared != (want == nil) || len(p.Differs) > 0 || b.w.pulls.open[number] != nil {
						t.Errorf("%d: told %s, compared %t: %q", number, p.State, p.Compared, p.Differs)
					}
					begin(t, fmt.Sprint(number), p.Uncompared, want)
				}
				if len(b.events) > 0 {
					t.Errorf("events: %+v", b.events)
				}
			})
		}
	}
}

// A commit that merges nothing is compared with nothing, whatever it changes.
func TestAPushWithoutAPullRequestRaisesNoAlarm(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	told := len(b.display.shown)
	b.main(map[string]string{"o/two/pool.yaml": pool("two", "maxSize: 3", "maxSize: 9")})
	b.do("PRPRR", nil)
	if len(b.display.shown) != told || len(b.events) > 0 {
		t.Errorf("told: %+v, events: %+v", b.display.last(), b.events)
	}
}

package pulls

import "testing"

// Each case is what is known of a target after a merge, and what follows from it. The cases of a
// block show what decides if several things are true.
func TestAgreementsOfAPlanWithItsReview(t *testing.T) {
	// of sets the facts of most plans: the target was planned, and the review had a plan.
	of := func(f planFacts) planFacts {
		f.planned, f.reviewed, f.digested = true, true, true
		return f
	}
	shown := func(f planFacts) planFacts {
		f.shown, f.comparable = true, true
		return of(f)
	}
	for _, tc := range []struct {
		name string
		is   planFacts
		want agreement
	}{
		{"the commit changes it, and its pass is still to come", planFacts{touched: true, together: true, shown: true}, awaited},
		{"a later commit undid what was shown", planFacts{together: true, shown: true}, nothingLeft},
		{"the merge leaves it alone", planFacts{shown: true}, notChanged},

		{"it fails since the merge", shown(planFacts{failed: true}), failsNow},
		{"it fails, which the review did not show", of(planFacts{failed: true, failing: true}), failsNow},
		{"it fails, and the review said so", shown(planFacts{failed: true, failing: true}), failsAsShown},

		{"the reviewed plan", shown(planFacts{same: true}), samePlan},
		{"the reviewed plan, although with other commits", shown(planFacts{same: true, together: true}), samePlan},
		{"the reviewed plan, after a restart", shown(planFacts{same: true, unsure: true}), samePlan},

		{"not shown, and nothing to do", of(planFacts{empty: true, unsure: true}), emptyUnshown},
		{"not shown here, but by a pull request that came with it", of(planFacts{together: true, explained: true}), fromOthers},
		{"not shown here, but by one that was merged before weir started", of(planFacts{began: true, explained: true}), fromOthers},
		{"not shown here, but by one before a restart", of(planFacts{unsure: true, explained: true}), fromOthers},
		{"not shown, weir restarted", of(planFacts{unsure: true, began: true}), afterRestart},
		{"not shown, weir started after the merge", of(planFacts{began: true, together: true}), mergedBefore},
		{"not shown, other commits came with it", of(planFacts{together: true}), changedWith},
		{"no plan was shown", planFacts{planned: true, digested: true}, noReview},
		{"not shown, and the merge came alone", of(planFacts{}), changedUnshown},
		{"another pull request showed the same, but the merge came alone", of(planFacts{explained: true}), changedUnshown},

		{"shown, weir restarted", shown(planFacts{unsure: true, together: true}), afterRestart},
		{"shown without a digest", of(planFacts{shown: true, together: true}), shownUnplanned},
		{"shown with a digest, planned without secrets", planFacts{planned: true, shown: true, comparable: true, together: true}, withoutSecrets},
		{"shown, other commits came with it", shown(planFacts{together: true}), plannedWith},
		{"shown, weir started after the merge", shown(planFacts{began: true}), otherPlan},
		{"shown, and the plan is another", shown(planFacts{}), otherPlan},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.is.agreement(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Held steps are compared only if both plans are of the same changes.
func TestHeldStepsAreComparedWithTheReview(t *testing.T) {
	for _, tc := range []struct {
		name string
		is   planFacts
		want bool
	}{
		{"the reviewed plan", planFacts{planned: true, shown: true, same: true}, true},
		{"the reviewed plan, although with other commits", planFacts{planned: true, shown: true, same: true, together: true}, true},
		{"another plan", planFacts{planned: true, shown: true}, true},
		{"another plan, with other commits", planFacts{planned: true, shown: true, together: true}, false},
		{"after a restart", planFacts{planned: true, shown: true, same: true, unsure: true}, false},
		{"a failure", planFacts{planned: true, shown: true, failed: true}, false},
		{"the review did not show it", planFacts{planned: true}, false},
		{"no plan", planFacts{shown: true}, false},
	} {
		if got := tc.is.holdsComparable(); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

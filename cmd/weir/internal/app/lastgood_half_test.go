package app

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// What weir itself has written for a later commit is no drift from the one that the target
// is held to, also for a daemon that knows by its record alone what had converged.
func TestHalfOfALaterCommitIsNotTakenBack(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"by the same daemon": false, "by the next one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quickAWS())
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3), "api": pool("api", "m5.large", 3)}))
			first := w.repo.Commit("first")
			a, stop := w.start()
			defer func() { stop() }()
			converged(t, a, first, 2)

			w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateLaunchTemplateVersion", Code: "InvalidParameterValue", Status: 400, Times: -1})
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5), "api": pool("api", "m5.xlarge", 3)}))
			second := w.repo.Commit("second")
			w.told(second, "fleet/apply", "failure", "")
			w.corrected("web", 5)
			if restart {
				stop()
			}
			before := len(w.writes())
			broken := w.breaks("api")
			if restart {
				a, stop = w.start()
			}
			heldTo(t, a, broken, first)
			anotherPass(t, a)
			if got := w.maxOf("web"); got != "5" {
				t.Errorf("what the second commit brought was taken back: %s; %v", got, w.writes()[before:])
			}
			w.byHand("api", 7) // of this pool nothing else was ever wanted
			if !restart {
				w.corrected("api", 3)
			}
		})
	}
}

// A commit that names an image which AWS does not have was never applied: the search for the
// last good one goes on behind it.
func TestABrokenCommitAfterOneWithoutItsImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	w.repo.Write(overlay(map[string]string{"web": strings.Replace(pool("web", "m5.large", 3), "eksLookupType: AmazonLinux2023", "id: ami-0123456789abcdef0", 1)}))
	w.told(w.repo.Commit("second"), "fleet/apply", "failure", "ami-0123456789abcdef0")
	before := len(w.writes())
	heldTo(t, a, w.breaks("web"), first)
	w.byHand("web", 9)
	w.corrected("web", 3)
	w.harmless(before)
}

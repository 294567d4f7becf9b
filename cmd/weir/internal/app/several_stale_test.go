package app

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
)

// TestAMemberThatStartsKnowsOnlyWhatIsRecordedNow: its clone is of the time when it stopped. While Git is
// away it does not take back what others have applied since, and what people have asked others for holds
// it from its first pass on.
func TestAMemberThatStartsKnowsOnlyWhatIsRecordedNow(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	size := func(n int) map[string]string { return overlay(map[string]string{"web": pool("web", "m5.large", n)}) }
	s.repo.Write(size(3))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	for _, m := range []*member{a, b} {
		converged(t, m.App, first, 1)
	}
	b.stop()
	s.repo.Write(size(4))
	second := s.repo.Commit("second")
	converged(t, a.App, second, 1)

	// b has the first commit on its disk, and owns everything.
	s.repo.Down(true)
	a.stop()
	s.aws.ResetCalls()
	b = s.member("b")
	s.owned(s.scope(), b)
	if last, ok := b.gen.Load().followers["pools"].Git.Last(); !ok || last.Revision != first {
		t.Fatalf("its clone is at %q", last.Revision)
	}
	time.Sleep(2 * time.Second) // several passes of the interval here
	if did := s.writes(); len(did) > 0 {
		t.Errorf("it took back what was applied: %v", did)
	}
	if at, _ := b.current.Targets.Find("prod"); at.Last != nil && at.Last.Revision == first && at.Last.Plan != nil && !at.Last.Suspended {
		t.Errorf("it goes by the first commit: %+v", at.Last.Plan.Steps)
	}
	s.repo.Down(false)
	converged(t, b.App, second, 1)
	if did := s.writes(); len(did) > 0 {
		t.Errorf("nothing was to do: %v", did)
	}

	// While it is gone again, another is asked to hold the target.
	a = s.member("a")
	converged(t, a.App, second, 1)
	b.stop()
	s.owned(s.scope(), a)
	command(t, a.App, commands.SuspendPath, gates.Request{Target: "prod", Reason: "night", For: "1h", By: "ann"})
	a.stop()
	s.repo.Write(size(5))
	third := s.repo.Commit("third")
	b = s.member("b")
	defer b.stop()
	heldBy(t, b.App, "prod", third, step.HeldSuspended, "by ann")
	if did := s.writes(); len(did) > 0 {
		t.Errorf("it wrote what is held: %v", did)
	}
	command(t, b.App, commands.ResumePath, gates.Request{Target: "prod"})
	converged(t, b.App, third, 1)
	if did := s.writes(); strings.Join(did, " ") != "CreateOrUpdateTags UpdateAutoScalingGroup" {
		t.Errorf("it wrote %v", did)
	}
}

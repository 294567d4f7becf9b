package app

import (
	"testing"
	"time"
)

// What the previous owner's last calls still do after somebody else owns the account and region is seen at once, not an interval later: for one lease
// an owner looks as often as while something moves.
func TestALateWriteOfThePreviousOwnerIsPutRight(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.rest = time.Hour
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	s.owned(s.scope(), b)
	converged(t, b.App, first, 1)
	s.aws.ResetCalls()
	b.stop()
	s.owned(s.scope(), a)
	eventually(t, "the new owner's first pass", func() string {
		if s.aws.CallCounts()["autoscaling:DescribeAutoScalingGroups"] == 0 {
			return "none yet"
		}
		return ""
	})
	s.byHand("web", 9)
	s.corrected("web", 3)
}

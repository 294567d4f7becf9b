package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// An engine that has no records, while AWS holds resources of the instance, has lost them: weir only looks until a person says so.
func TestAnEmptyEngineIsALossWhereAWSHoldsSomething(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a := s.member("a")
	converged(t, a.App, first, 1)
	a.stop()

	s.store = coordtest.NewMemory()
	s.give(map[string]string{s.source(): "b", s.scope(): "b"})
	s.aws.ResetCalls()
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	second := s.repo.Commit("second")
	b := s.member("b")
	defer b.stop()
	eventually(t, "the loss, and a plan that is held", func() string {
		lost := b.recorder.Read().Lost
		r, _ := b.current.Targets.Find("prod")
		if lost == nil || !strings.Contains(lost.Why, "had no records, although AWS has resources") || r.Last == nil || r.Last.Revision != second || r.Last.Plan == nil || r.Last.Plan.Runnable() > 0 {
			return fmt.Sprintf("%+v, %+v", lost, r.Last)
		}
		return ""
	})
	if wrote := s.writes(); len(wrote) > 0 {
		t.Errorf("written though suspensions may be lost: %v", wrote)
	}
	if _, err := b.recorder.AcceptLoss(); err != nil {
		t.Fatal(err)
	}
	converged(t, b.App, second, 1)
}

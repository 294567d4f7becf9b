package app

import (
	"testing"
	"time"
)

// A refresh that one owner cancelled because Git wanted something else was not cancelled by
// anybody else: once Git wants it again, the next owner rolls it out, and so does a process
// that starts anew.
func TestWhatAnEarlierOwnerCancelledIsRolledOutAgain(t *testing.T) {
	t.Parallel()
	o := quickAWS()
	// Long enough that a busy machine cancels before the last batch. A machine may be replaced
	// by then, and the way back is a refresh too: nothing here counts refreshes.
	o.Timings.RefreshBatch = 4 * time.Second
	s := newSeveralOn(t, o)
	wants := func(instanceType string) string {
		t.Helper()
		s.repo.Write(overlay(map[string]string{"web": pool("web", instanceType, 3)}))
		return s.repo.Commit(instanceType)
	}
	// while wants the instance type and returns once AWS was asked for the action anew.
	while := func(instanceType, action string) string {
		t.Helper()
		count := func() int { return s.aws.CallCounts()["autoscaling:"+action] }
		before := count()
		revision := wants(instanceType)
		eventually(t, action, func() string {
			if count() == before {
				return "not called"
			}
			return ""
		})
		return revision
	}
	first := wants("m5.large")
	a, b := s.member("a"), s.member("b")
	converged(t, b.App, first, 1)
	while("m6i.large", "StartInstanceRefresh")
	back := while("m5.large", "CancelInstanceRefresh")
	converged(t, b.App, back, 1)
	b.stop()
	s.owned(s.scope(), a)
	while("m6i.large", "StartInstanceRefresh")
	back = while("m5.large", "CancelInstanceRefresh")
	converged(t, a.App, back, 1)
	a.stop()
	c := s.member("c")
	defer c.stop()
	again := wants("m6i.large")
	converged(t, c.App, again, 1)
}

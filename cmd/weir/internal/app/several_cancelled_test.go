package app

import (
	"fmt"
	"testing"
	"time"
)

// A refresh that one owner cancelled because Git wanted something else was not cancelled by
// anybody else: once Git wants it again, the next owner rolls it out, and so does a process
// that starts anew.
func TestWhatAnEarlierOwnerCancelledIsRolledOutAgain(t *testing.T) {
	o := quickAWS()
	o.Timings.RefreshBatch = 2 * time.Second
	s := newSeveralOn(t, o)
	wants := func(instanceType string) string {
		t.Helper()
		s.repo.Write(overlay(map[string]string{"web": pool("web", instanceType, 3)}))
		return s.repo.Commit(instanceType)
	}
	called := func(action string, n int) {
		t.Helper()
		eventually(t, action, func() string {
			if got := s.aws.CallCounts()["autoscaling:"+action]; got < n {
				return fmt.Sprint("called ", got, " times")
			}
			return ""
		})
	}
	first := wants("m5.large")
	a, b := s.member("a"), s.member("b")
	converged(t, b.App, first, 1)
	wants("m6i.large")
	called("StartInstanceRefresh", 1)
	back := wants("m5.large")
	called("CancelInstanceRefresh", 1)
	converged(t, b.App, back, 1)
	b.stop()
	s.owned(s.scope(), a)
	wants("m6i.large")
	called("StartInstanceRefresh", 2)
	back = wants("m5.large")
	called("CancelInstanceRefresh", 2)
	converged(t, a.App, back, 1)
	a.stop()
	c := s.member("c")
	defer c.stop()
	again := wants("m6i.large")
	converged(t, c.App, again, 1)
	if n := s.aws.CallCounts()["autoscaling:StartInstanceRefresh"]; n != 3 {
		t.Errorf("%d refreshes were started", n)
	}
}

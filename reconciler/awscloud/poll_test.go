package awscloud_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

const refreshes = "autoscaling:DescribeInstanceRefreshes"

// limits are weir's: who waits for a token moves the clock.
func (e *env) limits() *sdk.Limits {
	return sdk.NewLimits(sdk.LimitOptions{Now: e.clock.Now, Sleep: func(_ context.Context, d time.Duration) error {
		e.clock.Advance(d)
		return nil
	}})
}

// limited is connected within weir's limits.
func limited(t *testing.T) *env {
	e := start(t)
	e.cloud = e.open(func(o *sdk.Options) { o.Limits = e.limits() })
	return e
}

// known is a state with n refreshes that move, the last of which was asked about the
// longest ago: each a second before the one before it.
func (e *env) known(n int, since time.Duration) (observed.State, observed.Needs) {
	s, needs := observed.State{Refreshes: map[string]observed.Refresh{}}, observed.Needs{}
	for i := range n {
		name := fmt.Sprintf("g%03d", i)
		needs.Polls = append(needs.Polls, name)
		s.Refreshes[name] = observed.Refresh{ID: name, Status: "InProgress", ReadAt: e.clock.Now().Add(-since - time.Duration(i)*time.Second)}
	}
	return s, needs
}

// Polls take what is to spare of the limit on reads, the oldest first, and leave the
// rest for what a step needs; none of them waits.
func TestPollsLeaveCallsForOthers(t *testing.T) {
	e := limited(t)
	s, needs := e.known(100, time.Minute)
	began := e.clock.Now()
	got := e.counted(func() { s = e.fill(s, needs) })
	if got[refreshes] != 30 || !e.clock.Now().Equal(began) {
		t.Errorf("%d of 100 were asked about in %v, want the half of 60 at once", got[refreshes], e.clock.Now().Sub(began))
	}
	for i, name := range needs.Polls {
		if r := s.Refreshes[name]; r.ReadAt.Equal(began) != (i >= 70) || r.ReadAt.IsZero() {
			t.Errorf("%s was asked about %v", name, r.ReadAt)
		}
	}
	// All the same weir reads at once what a step needs.
	must := observed.Needs{Polls: needs.Polls}
	for i := range 25 {
		must.Refreshes = append(must.Refreshes, fmt.Sprintf("new%d", i))
	}
	got = e.counted(func() { s = e.fill(s, must) })
	if got[refreshes] != 25 || !e.clock.Now().Equal(began) {
		t.Errorf("%d questions in %v, want the 25 that a step needs, at once", got[refreshes], e.clock.Now().Sub(began))
	}
	// A flow of six a second is to spare again.
	e.clock.Advance(10 * time.Second)
	if got = e.counted(func() { s = e.fill(s, needs) }); got[refreshes] < 30 {
		t.Errorf("%d questions after ten seconds", got[refreshes])
	}
}

// However little AWS leaves, each pass asks about one refresh that nobody has been
// told of for long.
func TestAPollThatIsLateIsARead(t *testing.T) {
	e := limited(t)
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.Throttled, Operation: "DescribeAutoScalingGroups", Times: 2})
	e.observe(query()) // AWS says "too fast": the bucket is empty, and flows at a quarter
	s, needs := e.known(20, time.Minute)
	if got := e.counted(func() { s = e.fill(s, needs) }); got[refreshes] != 0 {
		t.Errorf("%d questions with nothing to spare", got[refreshes])
	}
	e.clock.Advance(2 * time.Second)
	s, needs = e.known(20, 3*time.Minute)
	for n := range 3 {
		if got := e.counted(func() { s = e.fill(s, needs) }); got[refreshes] != 1 || s.Refreshes[needs.Polls[19-n]].ID != "" {
			t.Errorf("pass %d: %d questions, want one about the oldest", n, got[refreshes])
		}
	}
}

// A plan that is only looked at reads as much as those leave who write, and comes to
// its end all the same; a pass that nobody asked for lets the limits recover first.
func TestWhoYieldsLeavesCallsForOthers(t *testing.T) {
	e := start(t)
	limits := e.limits()
	e.cloud = e.open(func(o *sdk.Options) { o.Limits = limits })
	review := e.open(func(o *sdk.Options) { o.Limits, o.Yields = limits, true })
	needs := observed.Needs{}
	for i := range 100 {
		needs.Refreshes = append(needs.Refreshes, fmt.Sprintf("g%03d", i))
	}
	if d := e.cloud.UntilSpare(); d != 0 {
		t.Errorf("at rest, a pass waits for %v", d)
	}
	began := e.clock.Now()
	if _, err := review.Fill(t.Context(), observed.State{}, needs); err != nil {
		t.Fatal(err)
	}
	// 30 at once, the others as they flow: six a second.
	if took := e.clock.Now().Sub(began); took < 11*time.Second || took > 13*time.Second {
		t.Errorf("100 reads of a plan took %v", took)
	}
	if d := e.cloud.UntilSpare(); d < 2*time.Second || d > 3*time.Second {
		t.Errorf("with half of the reads left, a pass waits for %v", d)
	}
	began = e.clock.Now()
	for range 15 {
		e.observe(query())
	}
	if !e.clock.Now().Equal(began) {
		t.Errorf("reads of a pass waited for %v behind a plan's", e.clock.Now().Sub(began))
	}
}

// The hooks of many groups are read anew when they are due as far as there are calls
// to spare, and those that were not read first in the next pass.
func TestHooksThatAreDueWaitForNobody(t *testing.T) {
	const n = 50
	e := limited(t)
	tmpl := e.do(step.CreateLaunchTemplate{Name: "shared", Data: e.data(), Tags: tags("web")}).Template
	needs := observed.Needs{}
	for i := range n {
		name := fmt.Sprintf("g%02d", i)
		g := observed.Group{Name: name, MaxSize: 1, SubnetIDs: e.subnets()[:1], Template: tmpl, Tags: groupTags(name)}
		g.Tags[observed.TagHooks] = observed.GroupTag{Value: "drain"}
		e.do(step.CreateGroup{Group: g})
		needs.Hooks = append(needs.Hooks, name)
	}
	e.fill(e.observe(query()), needs)
	const reads = "autoscaling:DescribeLifecycleHooks"
	e.clock.Advance(11 * time.Minute)
	began, seen := e.clock.Now(), 0
	for pass := range 4 {
		var s observed.State
		got := e.counted(func() { s = e.observe(query()) })[reads]
		if seen += got; len(s.Hooks) != n || !e.clock.Now().Equal(began) {
			t.Errorf("pass %d knows %d hooks after %v", pass, len(s.Hooks), e.clock.Now().Sub(began))
		}
		if want := []int{29, 21, 0, 0}[pass]; got != want {
			t.Errorf("pass %d read %d, want %d", pass, got, want)
		}
		e.clock.Advance(4 * time.Second)
		began = e.clock.Now()
	}
	if seen != n {
		t.Errorf("%d of %d were read", seen, n)
	}
}

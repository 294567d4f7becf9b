package awscloud_test

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

func TestRefreshLife(t *testing.T) {
	e := start(t)
	ref := e.do(createTemplate(e, "web")).Template
	create := createGroup(e, "web", ref, 2)
	create.LifecycleHooks = nil
	e.do(create)
	e.clock.Advance(5 * time.Second)
	data := e.data()
	data.InstanceType = "m5.xlarge"
	next := e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: ref.ID, Name: "web"}, Data: data}).Template
	begin := step.StartRefresh{Group: "web", Template: next, Preferences: intent.Refresh{Strategy: "Rolling", MinHealthyPercentage: ptr[int32](50)}}
	id := e.do(begin).RefreshID
	if again := e.do(begin).RefreshID; again != id {
		t.Errorf("the same refresh again is %s, not %s", again, id)
	}
	other := begin
	other.Template.Version = "1"
	if _, err := e.cloud.Execute(t.Context(), other); kind(t, err) != observed.Busy {
		t.Errorf("another refresh meanwhile: %v", err)
	}
	newest := func() observed.Refresh {
		return e.fill(e.observe(query()), observed.Needs{Refreshes: []string{"web"}}).Refreshes["web"]
	}
	if r := newest(); !r.Active() || r.ID != id || r.Template != next || r.StartedAt.IsZero() {
		t.Errorf("the running refresh is %+v", r)
	}
	if g := e.observe(query()).Groups["web"]; g.Template != ref {
		t.Errorf("the group was moved to %+v before the refresh succeeded", g.Template)
	}
	for range 30 {
		e.clock.Advance(2 * time.Second)
		newest()
	}
	if r := newest(); r.Status != "Successful" || r.Percentage != 100 || r.EndedAt.IsZero() {
		t.Errorf("the refresh ended as %+v", r)
	}
	g := e.observe(query()).Groups["web"]
	if g.Template != next {
		t.Errorf("the group runs %+v, want %+v", g.Template, next)
	}
	for _, in := range g.Instances {
		if in.Template != next {
			t.Errorf("the instance %s runs %+v", in.ID, in.Template)
		}
	}
	e.do(step.CancelRefresh{Group: "web"}) // nothing is left to cancel
	begin.Template = ref
	e.do(begin)
	e.do(step.CancelRefresh{Group: "web"})
	e.clock.Advance(time.Minute)
	if r := newest(); r.Status != "Cancelled" {
		t.Errorf("the cancelled refresh is %+v", r)
	}
	s := e.fill(e.observe(query()), observed.Needs{Refreshes: []string{"none"}})
	if r, ok := s.Refreshes["none"]; !ok || r.ID != "" {
		t.Errorf("the refresh of a group that does not exist is %+v, %v", r, ok)
	}
}

// A rollback that was taken is done, also where its answer was lost or it is asked for
// twice; a refresh that ended, or another one that runs now, is not what was to go back.
func TestRollback(t *testing.T) {
	e := start(t)
	ref := e.do(createTemplate(e, "web")).Template
	create := createGroup(e, "web", ref, 2)
	create.LifecycleHooks = nil
	e.do(create)
	e.clock.Advance(5 * time.Second)
	data := e.data()
	data.InstanceType = "m5.xlarge"
	next := e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: ref.ID, Name: "web"}, Data: data}).Template
	begin := step.StartRefresh{Group: "web", Template: next, Preferences: intent.Refresh{Strategy: "Rolling", MinHealthyPercentage: ptr[int32](50)}}
	newest := func() observed.Refresh {
		return e.fill(e.observe(query()), observed.Needs{Refreshes: []string{"web"}}).Refreshes["web"]
	}
	first := e.do(begin).RefreshID
	e.clock.Advance(time.Second)
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.LoseAnswer, Operation: "RollbackInstanceRefresh"})
	e.srv.ResetCalls()
	for range 2 { // the answer to the first is lost
		if id := e.do(step.RollbackRefresh{Group: "web", RefreshID: first}).RefreshID; id != first {
			t.Errorf("rolled %s back", id)
		}
	}
	if n := e.srv.CallCounts()["autoscaling:RollbackInstanceRefresh"]; n != 2 {
		t.Errorf("asked for %d times", n)
	}
	if r := newest(); r.Status != "RollbackInProgress" {
		t.Errorf("the refresh is %+v", r)
	}
	e.clock.Advance(time.Minute)
	if r, g := newest(), e.observe(query()).Groups["web"]; r.Status != "RollbackSuccessful" || g.Template != ref {
		t.Errorf("the refresh is %+v, the group at %+v", r, g.Template)
	}
	e.do(step.RollbackRefresh{Group: "web", RefreshID: first})
	begun := e.do(begin).RefreshID
	e.do(step.CancelRefresh{Group: "web"})
	e.clock.Advance(time.Minute)
	if _, err := e.cloud.Execute(t.Context(), step.RollbackRefresh{Group: "web", RefreshID: begun}); kind(t, err) != observed.Busy {
		t.Errorf("one that was cancelled: %v", err)
	}
	// One that AWS does not take back ends at least.
	begun = e.do(begin).RefreshID
	e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "RollbackInstanceRefresh", Code: "IrreversibleInstanceRefresh", Message: "no"})
	e.do(step.RollbackRefresh{Group: "web", RefreshID: begun})
	if r := newest(); r.ID != begun || r.Status != "Cancelling" {
		t.Errorf("one that AWS does not roll back is %+v", r)
	}
}

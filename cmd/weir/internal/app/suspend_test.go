package app

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/gates"
)

// suspends suspends something once, as weir suspend does, when told to.
type suspends struct {
	once sync.Once
	app  *App
	asks gates.Request
	err  atomic.Pointer[error]
}

func (s *suspends) now() {
	s.once.Do(func() {
		if _, err := gates.Suspend(s.app.recorder, s.app.daemon, s.asks); err != nil {
			s.err.Store(&err)
		}
	})
}

// TestASuspensionHoldsTheNextWriteOfADaemonAlone, which comes in the middle of its pass: neither
// the next step of a pool nor the next attempt of a call begins.
func TestASuspensionHoldsTheNextWriteOfADaemonAlone(t *testing.T) {
	for name, asks := range map[string]gates.Request{
		"target": {Target: "prod"},
		"pool":   {Target: "prod", Pool: "web"},
		"all":    {All: true},
	} {
		for _, throttled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " throttled ", throttled), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, quickAWS())
				asks.Reason, asks.For, asks.By = "incident", "1h", "ann"
				s := suspends{asks: asks}
				armed := make(chan struct{})
				w.before = func(body string) {
					select {
					case <-armed:
					default:
						return
					}
					if strings.Contains(body, "Action=CreateLaunchTemplateVersion") {
						s.now()
					}
				}
				w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
				first := w.repo.Commit("first")
				a, stop := w.start()
				defer stop()
				converged(t, a, first, 1)
				s.app = a
				w.aws.ResetCalls()
				if throttled {
					w.aws.Faults().Add(awsemu.Fault{Operation: "CreateLaunchTemplateVersion", Kind: awsemu.Throttled, Times: 1})
				}
				close(armed)
				w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.xlarge", 3)}))
				second := w.repo.Commit("second")
				eventually(t, "the plan that is held", func() string {
					r, _ := a.current.Targets.Find("prod")
					if r.Last == nil || r.Last.Revision != second || r.Last.Plan == nil || r.Last.Plan.Empty() || r.Last.Plan.Runnable() > 0 {
						return fmt.Sprintf("%+v", r.Last)
					}
					return ""
				})
				if s.err.Load() != nil {
					t.Fatal(*s.err.Load())
				}
				var tried []string
				for _, c := range w.aws.Calls() {
					if c.Write {
						tried = append(tried, c.Operation)
					}
				}
				if !slices.Equal(tried, []string{"CreateLaunchTemplateVersion"}) {
					t.Errorf("tried to write: %v", tried)
				}
				command(t, a, "/api/v1/resume", gates.Request{Target: s.asks.Target, Pool: s.asks.Pool, All: s.asks.All})
				converged(t, a, second, 1)
				if got, want := w.writes(), []string{"CreateLaunchTemplateVersion", "StartInstanceRefresh", "ModifyLaunchTemplate"}; !slices.Equal(got, want) {
					t.Errorf("written in the end: %v, want %v", got, want)
				}
			})
		}
	}
}

// TestASuspensionHoldsTheNextEviction of a daemon alone.
func TestASuspensionHoldsTheNextEviction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	d := newDrainage(t, w)
	var s suspends
	d.cluster.Before(func(method, _ string) {
		if method == http.MethodPatch {
			s.now()
		}
	})
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	s.app, s.asks = a, gates.Request{Target: "prod", Reason: "incident", For: "1h", By: "ann"}
	converged(t, a, first, 1)
	id := d.end()
	eventually(t, "the suspension", func() string {
		if r, _ := a.current.Targets.Find("prod"); s.err.Load() != nil || r.Last == nil || !r.Last.Suspended {
			return fmt.Sprint(r.Last, s.err.Load())
		}
		return ""
	})
	if got := d.cluster.Evicted(); len(got) > 0 {
		t.Errorf("evicted while suspended: %v", got)
	}
	for _, c := range w.aws.Calls() {
		if c.Operation == "CompleteLifecycleAction" {
			t.Error("the machine was let go while suspended")
		}
	}
	if _, err := gates.Resume(a.recorder, a.daemon, gates.Request{Target: "prod"}); err != nil {
		t.Fatal(err)
	}
	a.requests.passAll()
	d.cluster.AddBudget("shop", "cart", "app", "cart", 1)
	d.gone(id)
	if got := d.cluster.Evicted(); len(got) != 2 {
		t.Error(errors.New("evicted"), got)
	}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/gates"
)

// way is one member's way to the engine.
type way struct {
	*coordtest.Memory
	cut atomic.Bool
}

func (w *way) err() error {
	if w.cut.Load() {
		return errCut
	}
	return nil
}

func (w *way) Enter(ctx context.Context, random string, m coord.Member, ttl time.Duration) (coord.Entered, error) {
	if err := w.err(); err != nil {
		return coord.Entered{}, err
	}
	return w.Memory.Enter(ctx, random, m, ttl)
}

func (w *way) Renew(ctx context.Context, session string, m *coord.Member) (time.Duration, error) {
	if err := w.err(); err != nil {
		return 0, err
	}
	return w.Memory.Renew(ctx, session, m)
}

func (w *way) Poll(ctx context.Context) (coord.Poll, error) {
	if err := w.err(); err != nil {
		return coord.Poll{}, err
	}
	return w.Memory.Poll(ctx)
}

func (w *way) Commit(ctx context.Context, t coord.Txn) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.Memory.Commit(ctx, t)
}

// A member that cannot reach the engine writes nothing, though it still reaches AWS and Git:
// not while it has its lease, as it cannot read what people asked for, and not afterwards.
// The other one takes over when the lease has surely ended.
func TestAMemberThatIsCutOffWritesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set: this test waits until a lease ends")
	}
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	ways := &way{Memory: s.store}
	a, b := s.member("a"), s.memberOver("b", ways)
	defer a.stop()
	converged(t, b.App, first, 1)
	key := func() reconciler.ScopeKey {
		b.passes.mu.Lock()
		defer b.passes.mu.Unlock()
		for key := range b.passes.loops.of {
			return key
		}
		t.Fatal("nothing is owned")
		return reconciler.ScopeKey{}
	}()
	if err := b.passes.fence(key).MayBegin(); err != nil {
		t.Fatal(err)
	}
	ways.cut.Store(true)
	cut := time.Now()
	time.Sleep(coord.InputsWithin)
	if err := b.passes.fence(key).MayBegin(); err == nil {
		t.Error("a member that is cut off may write")
	}
	s.aws.ResetCalls()
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	s.owned(s.scope(), a)
	took := time.Since(cut)
	if least := coord.TTL - coord.RenewEvery - time.Second; took < least {
		t.Errorf("it was taken over after %s", took)
	}
	converged(t, a.App, second, 1)
	t.Logf("taken over %s and applied %s after the cut", took, time.Since(cut))
	for _, c := range s.aws.Calls() {
		if c.Write && c.Time.Before(cut.Add(coord.TTL-coord.RenewEvery)) {
			t.Errorf("%s is written %s after the cut", c.Operation, c.Time.Sub(cut))
		}
	}
	ways.cut.Store(false)
	converged(t, b.App, second, 1) // it shows again what the other one does
	eventually(t, "its return", func() string {
		if b.member.Keeper.Session() == nil {
			return "it has not joined again"
		}
		return ""
	})
	b.stop()
}

// A member that starts while the engine is away waits for it, and says so. One that the engine refuses does not.
func TestAMemberThatStartsWhileTheEngineIsAway(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	said := &logged{}
	s.log = slog.New(slog.NewTextHandler(said, nil))
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	ways := &way{Memory: s.store}
	ways.cut.Store(true)
	go func() {
		for !strings.Contains(said.String(), "weir waits for it") {
			time.Sleep(10 * time.Millisecond)
		}
		ways.cut.Store(false)
	}()
	b := s.memberOver("b", ways)
	defer b.stop()
	converged(t, b.App, first, 1)

	s.engine, s.name = coord.New(denying{s.store}, coord.Options{}), "c"
	began := time.Now()
	_, err := New(t.Context(), Options{Config: s.settings("c"), Logger: s.log, Version: "test", Engine: s.engine, Member: s.name, Getenv: func(string) string { return "" }})
	if err == nil || !strings.Contains(err.Error(), "access denied") || time.Since(began) > reachWithin/2 {
		t.Errorf("%v, after %s", err, time.Since(began))
	}
}

// denying is an engine that lets nobody in.
type denying struct{ *coordtest.Memory }

func (denying) Enter(context.Context, string, coord.Member, time.Duration) (coord.Entered, error) {
	return coord.Entered{}, errors.New("access denied")
}

// If the engine is restored from a backup or wiped while daemons run, a suspension may be lost or an
// old approval be back. The daemons write nothing until a person accepts the loss.
func TestAnEngineThatForgetsBeneathDaemons(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short is set: this test waits until leases end")
	}
	for name, forget := range map[string]func(*several) func(){
		"restored": func(s *several) func() { return s.store.Save() },
		"wiped":    func(s *several) func() { return s.store.Wipe },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSeveral(t)
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			first := s.repo.Commit("first")
			a, b := s.member("a"), s.member("b")
			defer a.stop()
			defer b.stop()
			converged(t, b.App, first, 1)
			back := forget(s)
			if _, err := a.recorder.Suspend(gates.Suspension{Target: "prod", Reason: "incident", By: "somebody"}, time.Hour); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the suspension", func() string {
				if len(b.recorder.Read().Suspensions) == 0 {
					return "it is not known"
				}
				return ""
			})
			s.aws.ResetCalls()
			back()
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
			s.repo.Commit("second")
			for _, m := range []*member{a, b} {
				eventually(t, "the loss", func() string {
					if r := m.recorder.Read(); r.Lost == nil || len(r.Suspensions) > 0 {
						return fmt.Sprintf("%+v", r)
					}
					return ""
				})
			}
			var owner *member
			eventually(t, "an owner", func() string {
				for _, m := range []*member{a, b} {
					if m.member.Leases.Get(s.scope()) != nil && m.member.Keeper.Session() != nil {
						owner = m
						return ""
					}
				}
				return "there is none"
			})
			began := time.Now()
			eventually(t, "a plan that is held", func() string {
				r, _ := owner.current.Targets.Find("prod")
				if r.Last == nil || r.Last.StartedAt.Before(began) || r.Last.Plan == nil || r.Last.Plan.Runnable() > 0 {
					return fmt.Sprintf("%+v", r.Last)
				}
				return ""
			})
			if wrote := s.writes(); len(wrote) > 0 {
				t.Errorf("written though a suspension is gone: %v", wrote)
			}
			if lost, err := a.recorder.AcceptLoss(); err != nil || lost == nil {
				t.Fatalf("accepted %+v, %v", lost, err)
			}
			eventually(t, "the change", func() string {
				if got := s.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(got, "<MaxSize>5</MaxSize>") {
					r, _ := owner.current.Targets.Find("prod")
					return fmt.Sprintf("%s\nphase %s, last pass %+v\nrecords %+v", got, r.Phase, r.Last, owner.recorder.Read())
				}
				return ""
			})
			for _, m := range []*member{a, b} { // the one that does not own the account hears of it a moment later
				eventually(t, "that nothing is lost", func() string {
					if lost := m.recorder.Read().Lost; lost != nil {
						return fmt.Sprintf("%+v", lost)
					}
					return ""
				})
			}
		})
	}
}

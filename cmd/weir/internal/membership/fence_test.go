package membership

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/state"
)

// A write does not start if people forbid it, or with less than five seconds of the lease left.
func TestWhatAWriteNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, wire := joined(t, coordtest.NewMemory(), "a", "scope/k")
		time.Sleep(30 * time.Second)
		var forbidden error
		fence := Fence{Member: a, Key: func() string { return "scope/k" }, May: func() error { return forbidden }}
		if err := fence.MayBegin(); err != nil {
			t.Fatal(err)
		}
		if err := (Fence{Member: a, Key: func() string { return "scope/other" }}).MayBegin(); err == nil {
			t.Error("what this member does not own may be written")
		}
		forbidden = errors.New("prod is suspended")
		if err := fence.MayBegin(); !errors.Is(err, forbidden) {
			t.Errorf("what people forbid: %v", err)
		}
		forbidden = nil
		wire.Arm(func(call string) coordtest.Fault { return coordtest.Fault{LoseRequest: call == "Renew"} })
		for fence.MayBegin() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		l := a.Leases.Get("scope/k")
		if l == nil {
			t.Fatal("the lease has ended already")
		}
		if left := a.Keeper.Session().Left(); left > 5*time.Second || left < 4900*time.Millisecond {
			t.Errorf("the last write began with %s of the lease left", left)
		}
		var fenced *coord.FencedError
		if err := fence.MayBegin(); !errors.As(err, &fenced) {
			t.Errorf("refused because of %v", err)
		}
	})
}

// If the engine goes back to an earlier state, a suspension may be gone. No work starts before this loss is on record, even while it cannot be recorded.
func TestAnEngineThatWentBackIsALossBeforeAnyWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		var a *Member
		var begun atomic.Int64
		lost := func() (why *state.Loss) {
			if err := a.Store.View(func(tx *state.Tx) (err error) { why, err = state.LossOf(tx); return err }); err != nil {
				t.Error(err)
			}
			return why
		}
		var restored atomic.Bool
		a, wire := joinedAs(t, memory, "a", "scope/k", func(o *Options) {
			o.Begin = func(*coord.Lease) {
				if begun.Add(1); restored.Load() && lost() == nil {
					t.Error("work starts before the loss is recorded")
				}
			}
		})
		time.Sleep(30 * time.Second)
		if begun.Load() != 1 || lost() != nil {
			t.Fatalf("begun %d times, lost %v", begun.Load(), lost())
		}
		restore := memory.Save()
		if _, err := a.Keeper.Session().Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "state/r/suspensions/prod", Value: []byte("={}"), If: 0}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		restored.Store(true)
		restore()
		var took atomic.Bool
		wire.Arm(func(call string) coordtest.Fault {
			owners, err := memory.Owners(t.Context())
			if err != nil || call != "Commit" {
				return coordtest.Fault{}
			}
			s := a.Keeper.Session()
			if s != nil && owners[0].Session == s.ID() {
				took.Store(true)
			} // it may take the key, and write nothing then
			return coordtest.Fault{LoseRequest: took.Load()}
		})
		time.Sleep(time.Minute)
		if !took.Load() {
			t.Fatal("it never took the key again")
		}
		if l, done := a.Leases.Use("scope/k"); l != nil {
			t.Error("it is used before the loss is on record")
			done()
		}
		wire.Mend()
		time.Sleep(30 * time.Second)
		if l, done := a.Leases.Use("scope/k"); l == nil || lost() == nil {
			t.Errorf("afterwards: %v, lost %v", l, lost())
		} else {
			done()
		}
	})
}

// A loss that people have accepted is not recorded again by a member that gets its first lease afterwards.
func TestAnAcceptedLossIsNotRecordedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		a, _ := joined(t, memory, "a", "scope/k")
		b, _ := joined(t, memory, "b", "scope/later")
		time.Sleep(5 * time.Second)
		if err := b.Keeper.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		restore := memory.Save()
		if _, err := a.Keeper.Session().Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "state/r/suspensions/prod", Value: []byte("={}"), If: 0}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		restore()
		lost := func() (loss *state.Loss) {
			t.Helper()
			if err := b.Store.View(func(tx *state.Tx) (err error) { loss, err = state.LossOf(tx); return err }); err != nil {
				t.Error(err)
			}
			return loss
		}
		for lost() == nil {
			time.Sleep(time.Second)
		}
		if err := a.Store.Update(state.AcceptLoss); err != nil {
			t.Fatal(err)
		}
		if err := b.Keeper.Undrain(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if b.Leases.Get("scope/later") == nil {
			t.Fatal("it owns nothing, so the test shows nothing")
		}
		if loss := lost(); loss != nil {
			t.Errorf("lost again: %+v", loss)
		}
	})
}

// If the engine goes back while the member waits for an answer of it, the member's leases have not ended yet. No write starts all the same, because the
// loss is not on record and a suspension may be gone.
func TestNoWriteStartsBetweenALossAndTheEndOfTheLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		b, _ := joined(t, memory, "b", "scope/slow")
		time.Sleep(30 * time.Second)
		a, wire := joined(t, memory, "a", "scope/k scope/slow")
		time.Sleep(time.Minute)
		if b.Leases.Get("scope/slow") == nil {
			t.Fatal("the other member does not own the second key")
		}
		suspended := func() bool { return a.Mirror.Snapshot().Get("state/r/suspensions/prod").Version != 0 }
		fence := Fence{Member: a, Key: func() string { return "scope/k" }, May: func() error {
			if suspended() {
				return errors.New("prod is suspended")
			}
			return a.Store.View(func(tx *state.Tx) error {
				if loss, err := state.LossOf(tx); err != nil || loss != nil {
					return errors.Join(err, errors.New("a loss is on record"))
				}
				return nil
			})
		}}
		if err := fence.MayBegin(); err != nil {
			t.Fatal(err)
		}
		restore := memory.Save()
		if _, err := b.Keeper.Session().Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "state/r/suspensions/prod", Value: []byte("={}"), If: 0}}}); err != nil {
			t.Fatal(err)
		}
		for !suspended() {
			time.Sleep(10 * time.Millisecond)
		}
		var takes atomic.Bool
		wire.Arm(func(call string) coordtest.Fault {
			if call == "Commit" && !takes.Swap(true) {
				return coordtest.Fault{LoseRequest: true, Hang: true}
			}
			return coordtest.Fault{}
		})
		if err := b.Keeper.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		for !takes.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		restore()
		forgot := false
		for range 3000 {
			err := fence.MayBegin()
			if forgot = forgot || !suspended(); forgot && err == nil {
				t.Fatal("a write may start although the suspension is lost and nobody has accepted the loss")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !forgot {
			t.Error("the suspension was never lost, so the test shows nothing")
		}
		if err := a.Store.Update(state.AcceptLoss); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := fence.MayBegin(); err != nil {
			t.Errorf("after the loss was accepted: %v", err)
		}
	})
}

// An engine that goes back while a member opens the records is a loss too: the member has read what is missing afterwards.
func TestAnEngineThatGoesBackWhileAMemberOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := coordtest.NewMemory()
		a, wire := joined(t, memory, "a", "scope/k")
		time.Sleep(30 * time.Second)
		restore := memory.Save()
		if _, err := a.Keeper.Session().Write(t.Context(), coord.Write{Ops: []coord.Op{{Key: "state/r/suspensions/prod", Value: []byte("={}"), If: 0}}}); err != nil {
			t.Fatal(err)
		}
		wire.Cut() // the member that opens has to record the loss
		b, _ := joinedAs(t, memory, "b", "scope/k", func(o *Options) {
			o.First = func(_ context.Context, records *state.Shared) error {
				restore()
				return records.Update(func(*state.Tx) error { return nil }) // reads the records anew
			}
		})
		time.Sleep(time.Minute)
		if b.Leases.Get("scope/k") == nil {
			t.Fatal("it owns nothing, so the test shows nothing")
		}
		if err := b.Store.View(func(tx *state.Tx) error {
			if loss, err := state.LossOf(tx); err != nil || loss == nil {
				t.Errorf("it works although the suspension is lost: %v, %v", loss, err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// All roles into one account and region share a key. Another partition, account, region or endpoint has another key.
func TestTheKeysOfScopes(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range [][4]string{
		{"aws", "111111111111", "eu-west-1", ""},
		{"aws-cn", "111111111111", "eu-west-1", ""},
		{"aws", "222222222222", "eu-west-1", ""},
		{"aws", "111111111111", "eu-west-2", ""},
		{"aws", "111111111111", "eu-west-1", "http://localhost:4566"},
		{"aws", "111111111111", "eu-west-1", "http://localhost:4567"},
	} {
		key := ScopeKey(k[0], k[1], k[2], k[3])
		if seen[key] || coord.CheckKey(key) != nil || IsSource(key) {
			t.Errorf("%v has the key %s", k, key)
		}
		seen[key] = true
	}
}

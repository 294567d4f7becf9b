package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/rollout/ledger"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
)

// What somebody asks any member for holds the next write of a pass under way, as soon as the records have it: whether the pass is told to end is another
// matter.
func TestWhatPeopleAskForHoldsTheNextWrite(t *testing.T) {
	t.Parallel()
	const digest = "d1"
	pool := rollout.ID{Target: "prod", Pool: "default/web"}
	permits := func(seq int64, share int32) rollout.Record {
		return rollout.Record{Seq: seq, Permits: []rollout.Permit{{ID: pool, Hash: "h", Share: share}}}
	}
	for name, tc := range map[string]struct {
		does func(*gates.Recorder, *ledger.Ledger, state.Store) error
		want string // "" where it goes on
	}{
		"nothing": {func(*gates.Recorder, *ledger.Ledger, state.Store) error { return nil }, ""},
		"a suspension of the target": {func(b *gates.Recorder, _ *ledger.Ledger, _ state.Store) error {
			_, err := b.Suspend(gates.Suspension{Target: "prod", Reason: "incident", By: "ann"}, time.Hour)
			return err
		}, "prod was suspended after this pass started"},
		"of one of its pools": {func(b *gates.Recorder, _ *ledger.Ledger, _ state.Store) error {
			_, err := b.Suspend(gates.Suspension{Target: "prod", Pool: "default/web", Reason: "incident", By: "ann"}, time.Hour)
			return err
		}, "prod was suspended after this pass started"},
		"of everything": {func(b *gates.Recorder, _ *ledger.Ledger, _ state.Store) error {
			_, err := b.Suspend(gates.Suspension{Reason: "incident", By: "ann"}, time.Hour)
			return err
		}, "everything was suspended after this pass started"},
		"of a target elsewhere": {func(b *gates.Recorder, _ *ledger.Ledger, _ state.Store) error {
			_, err := b.Suspend(gates.Suspension{Target: "dev", Reason: "incident", By: "ann"}, time.Hour)
			return err
		}, ""},
		"an approval that is taken back": {func(b *gates.Recorder, _ *ledger.Ledger, _ state.Store) error {
			_, _, err := b.Withdraw(digest, "")
			return err
		}, "the approval by bob of the plan of prod ended"},
		"a loss": {func(_ *gates.Recorder, _ *ledger.Ledger, s state.Store) error {
			return state.Lose(s, "the engine went back")
		}, "may be lost"},
		"a pause": {func(_ *gates.Recorder, l *ledger.Ledger, _ state.Store) error {
			return l.Change(nil, "pools", func(rollout.Record) (rollout.Record, error) { return permits(2, 0), nil })
		}, "a rollout was held after the pass started"},
		"a larger share": {func(_ *gates.Recorder, l *ledger.Ledger, _ state.Store) error {
			return l.Change(nil, "pools", func(rollout.Record) (rollout.Record, error) { return permits(2, 100), nil })
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			memory := coordtest.NewMemory()
			owner, other := statetest.Join(t, memory, "owner"), statetest.Join(t, memory, "other")
			now := clock.At(time.Now)
			recorder := gates.NewRecorder(owner, now)
			theirs := gates.NewRecorder(other, now)
			if _, err := theirs.Approve(digest, "bob"); err != nil {
				t.Fatal(err)
			}
			if err := theirs.Begin(gates.Grant{Approval: gates.Approval{Digest: digest, By: "bob", Since: time.Now(), Until: time.Now().Add(time.Hour)}, Target: "prod"}); err != nil {
				t.Fatal(err)
			}
			if err := ledger.Open(other).Change(nil, "pools", func(rollout.Record) (rollout.Record, error) { return permits(1, 30), nil }); err != nil {
				t.Fatal(err)
			}
			owner.Sync(t)
			key := reconciler.ScopeKey{Account: "111111111111", Region: "eu-west-1"}
			p := newPasses(passesOptions{approvals: approvals{recorder: recorder}, ledger: ledger.Open(owner)})
			if p.checkAllowed(key) == nil {
				t.Error("a write without a pass")
			}
			p.loops.of[key] = &loop{targets: []string{"prod"}, records: recorder.Read(), permits: map[string][]rollout.Permit{"pools": permits(1, 30).Permits}}
			if err := p.checkAllowed(key); err != nil {
				t.Fatal(err)
			}
			if err := tc.does(theirs, ledger.Open(other), other); err != nil {
				t.Fatal(err)
			}
			owner.Sync(t)
			if err := p.checkAllowed(key); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// edge is a fence that refuses, or cuts at a time.
type edge struct {
	refuses error
	until   time.Time
}

func (e edge) MayBegin() error  { return e.refuses }
func (e edge) Until() time.Time { return e.until }

// A write to a workload cluster begins only where the fence lets it, and is cut when the fence would cut a call to AWS.
func TestAWriteToAWorkloadClusterIsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("4 s of the lease are left")
		if err := guarded(t.Context(), edge{refuses: refused, until: time.Now().Add(time.Hour)}, func(context.Context) error { t.Error("it begins"); return nil }); !errors.Is(err, refused) {
			t.Errorf("refused: %v", err)
		}
		began := time.Now()
		err := guarded(t.Context(), edge{until: began.Add(9 * time.Second)}, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if took := time.Since(began); took != 9*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cut after %s: %v", took, err)
		}
	})
}

package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/engine"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/cmd/weir/internal/relocation"
	"github.com/weir-gitops/weir/cmd/weir/internal/servicemanager"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/members"
)

// The time that a starting daemon waits for an unreachable engine, the timeout of one attempt, and the
// pause between two attempts.
const (
	reachWithin = 2 * time.Minute
	reachTry    = 30 * time.Second
	reachPause  = 3 * time.Second
)

// openWithRetry opens the engine and its records. It retries if the engine is unreachable, for example when all
// machines start together, but not if the engine refuses.
func openWithRetry(ctx context.Context, m *servicemanager.Manager, log *slog.Logger, open ...func(context.Context) error) error {
	for began := time.Now(); ; {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, reachTry)
			defer cancel()
			for _, step := range open {
				if err := step(ctx); err != nil {
					return err
				}
			}
			return nil
		}()
		var away *coord.AwayError
		if err == nil || !errors.As(err, &away) && !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > reachWithin {
			return err
		}
		log.Warn("coordination: the engine does not answer, and weir waits for it", "error", err)
		m.Starting("waits for the engine of coordination")
		select {
		case <-time.After(reachPause):
		case <-ctx.Done():
			return err
		}
	}
}

// openEngine opens the engine in the configuration.
func (a *App) openEngine(ctx context.Context) (err error) {
	if a.o.Engine != nil || !a.o.Config.Several() {
		return nil
	}
	a.o.Engine, err = engine.Open(ctx, a.o.Config, a.o.LeaseClock, func(operation, result string, took time.Duration) {
		if a.metrics != nil { // the metrics are created after the first calls
			a.metrics.EngineCall(operation, result, took)
		}
	})
	if err == nil {
		a.onStop("coordination", 0, func(context.Context) error { return a.o.Engine.Close() })
	}
	return err
}

// openMembers reads the records of an instance that several daemons share.
func (a *App) openMembers(ctx context.Context) (err error) {
	self := coord.Member{Name: cmp.Or(a.o.Member, membership.Name()), Version: a.o.Version, Address: addressOf(a.o.Config), Config: a.o.Config.Common()}
	var random func(int64) int64
	if a.o.Rand != nil {
		random = func(n int64) int64 { return int64(a.o.Rand() * float64(n)) }
	}
	p := &peers{version: a.o.Version, log: a.log}
	p.news = members.NewNews(self.Name, p.reportMove)
	p.member, err = membership.Open(ctx, membership.Options{
		Random: random, Engine: a.o.Engine, Member: self, Logger: a.log, Scopes: p.keys, Begin: p.startKey, Work: p.watchKey, Tell: p.tell,
		First: func(ctx context.Context, records *state.Shared) error {
			return a.keys.Share(ctx, a.o.Config, records, a.log)
		},
	})
	if err != nil {
		return err
	}
	a.peers, a.member, a.store = p, p.member, p.member.Store
	a.dispatcher = relocation.New(relocation.Options{
		Kind: cmp.Or(a.o.Config.Coordination.Engine(), "memory"), Member: self.Name, Keeper: a.member.Keeper, Mirror: a.member.Mirror, Wanted: p.wanted, Logger: a.log,
	})
	return nil
}

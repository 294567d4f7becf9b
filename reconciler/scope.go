package reconciler

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Scope reconciles the targets of one account and region. It remembers between
// passes only what AWS cannot tell. NewScope makes one.
type Scope struct {
	Options

	// busy is full while a pass is under way. There is one at a time: the memory
	// between passes, here and in the resolver, is not made for two.
	busy   chan struct{}
	memory memory
}

// NewScope returns a Scope that remembers nothing yet.
func NewScope(o Options) *Scope {
	return &Scope{Options: o, busy: make(chan struct{}, 1)}
}

// Retry makes the next pass try again what failed of pools ("namespace/name").
func (s *Scope) Retry(pools []string) { s.memory.refusals.Retry(pools) }

// Pass observes once, plans every target and, in mode Apply, does what the
// plans say. It returns a report for each target, in order, and fails as a
// whole only where AWS could not be read.
// Passes over one scope wait for each other.
func (s *Scope) Pass(ctx context.Context, targets []Desired, mode Mode) ([]*plan.Report, error) {
	return s.pass(ctx, Batch{Targets: targets}, mode)
}

func (s *Scope) pass(ctx context.Context, b Batch, mode Mode) ([]*plan.Report, error) {
	ps := s.newPass(b, mode)
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return ps.reports, fmt.Errorf("wait for the pass before: %w", ctx.Err())
	}
	ps.began = s.now()
	if err := runStages(ctx, ps); err != nil {
		return ps.reports, err
	}
	return ps.result, nil
}

// newPass returns the state of a pass that waits for the one before.
func (s *Scope) newPass(b Batch, mode Mode) *passState {
	now := s.now()
	return &passState{Options: &s.Options, memory: &s.memory, batch: b, mode: mode, started: now, began: now, reports: newReports(b, now)}
}

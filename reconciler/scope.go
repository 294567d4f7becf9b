package reconciler

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/reconciler/jointoken"
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

// defaultConcurrency is the default of Concurrency.
const defaultConcurrency = 8

// Options configures a Scope. It may change only between passes.
type Options struct {
	Cloud    Cloud
	Resolver Resolver
	// Preflight asks AWS about plans with changes; nil asks nothing.
	Preflight Preflight
	// Parameters stores join tokens for machines; nil keeps none.
	Parameters jointoken.Parameters
	Logger     *slog.Logger
	Now        func() time.Time
	// Clock returns the time that weir compares with what AWS and others say, and reports to them.
	// Nil means Now, which measures durations.
	Clock func() time.Time
	// Concurrency is the number of pools to apply at once, defaultConcurrency if 0.
	Concurrency int
	// Lanes holds the limits that all scopes of the process share; nil bounds nothing.
	Lanes Lanes
	// StepsFor bounds the time in which a pass starts with pools. AWS takes only so many calls a
	// second, so a pass leaves the other pools to the next one, which knows newer commits. Zero
	// means no bound.
	StepsFor time.Duration
	// AskEvery is the time for which weir does not read an instance refresh whose machines show
	// nothing new, observed.DefaultAskEvery if 0.
	AskEvery time.Duration
	// Round is the time in which weir describes each idle nodegroup once; 0 describes all of them
	// in every pass.
	Round time.Duration

	// Shared says that other weirs may own the account and region before or after this one.
	Shared bool
}

func (o *Options) clock() time.Time {
	if o.Clock == nil {
		return o.now()
	}
	return o.Clock()
}

func (o *Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

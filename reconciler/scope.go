package reconciler

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// Scope reconciles the targets of one account and region. Between passes it remembers only facts
// that AWS does not return. NewScope makes one.
type Scope struct {
	Options

	// busy is full during a pass. Passes run one at a time, because the memory between passes, here
	// and in the resolver, does not support two.
	busy   chan struct{}
	memory memory
}

// NewScope returns a Scope that remembers nothing yet.
func NewScope(o Options) *Scope {
	return &Scope{Options: o, busy: make(chan struct{}, 1)}
}

// Retry makes the next pass retry the failed steps of pools ("namespace/name").
func (s *Scope) Retry(pools []string) { s.memory.refusals.Retry(pools) }

// Pass observes once, plans every target and, in mode Apply, executes the plans. It returns a
// report for each target, in order. It returns an error only if the pass as a whole fails, for
// example if AWS cannot be read. Passes over one scope wait for each other.
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

// newPass returns the state of a pass that waits for the previous pass.
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
	// Preflight checks plans with changes. Nil checks nothing.
	Preflight Preflight
	// Parameters stores join tokens for machines. Nil stores none.
	Parameters jointoken.Parameters
	Logger     *slog.Logger
	Now        func() time.Time
	// Clock returns the time for comparisons with times of AWS and other systems, and for reports
	// to them. Nil means Now, which measures durations.
	Clock func() time.Time
	// Concurrency is the number of pools to apply in parallel, defaultConcurrency if 0.
	Concurrency int
	// Lanes contains the limits that all scopes of the process share. Nil means no limit.
	Lanes Lanes
	// StepsFor limits the time in which a pass starts pools. AWS limits the rate of calls, so a
	// pass leaves all other pools to the next pass, which may follow a newer commit. Zero means no
	// limit.
	StepsFor time.Duration
	// AskEvery is the time for which weir does not read an instance refresh again while its
	// machines do not change. Zero means observed.DefaultAskEvery.
	AskEvery time.Duration
	// Round is the period in which weir describes each idle nodegroup once. Zero means in every
	// pass.
	Round time.Duration

	// Shared is set if other weirs may own the account and region before or after this one.
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

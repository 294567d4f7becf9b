package reconciler

import (
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/reconciler/jointoken"
)

// defaultConcurrency is the default of Concurrency.
const defaultConcurrency = 8

// Options are what a Scope works with. They may change between passes only.
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

package preflight

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

const (
	// mostEach bounds the things of a kind that weir reads one at a time for a plan. mostBatch bounds the
	// things that it reads in batches. A plan may name more, even in an untrusted commit. weir then reports
	// them as unknown.
	mostEach  = 25
	mostBatch = 2000
)

// reading is one read of wanted facts, with its deadline and start time.
type reading struct {
	ctx context.Context //nolint:containedctx // it lives as long as the call that made it
	now time.Time
}

// one returns a context that bounds the time for one kind of fact.
func (r reading) one() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(r.ctx, onePatience, errPatience)
}

// failed returns the error of a failed call. ended is true if the caller no longer waits: this says nothing
// about AWS, so another call may ask again.
func (r reading) failed(ctx context.Context, err error) (failed *observed.Error, ended bool) {
	if failed = asError(err); failed == nil || ctx.Err() == nil {
		return failed, false
	}
	if !errors.Is(context.Cause(ctx), errPatience) {
		return failed, true
	}
	return &observed.Error{Kind: observed.Cancelled, Service: failed.Service, Operation: failed.Operation, Code: codeLate, Message: errPatience.Error(), Err: err}, false
}

// Codes stored in place of AWS's answer: codeLate if AWS did not answer in time, codeMany if the plan names
// too much to ask.
const (
	codeLate = "TakesTooLong"
	codeMany = "TooMany"
)

// TooMany returns the error that a plan names too much for an operation of a service.
func TooMany(service, operation string) *observed.Error {
	return &observed.Error{Kind: observed.Cancelled, Service: service, Operation: operation, Code: codeMany, Message: "the plan names very many"}
}

// readBatch reads all wanted keys with one or a few calls.
func readBatch[V any](r reading, s *shelf[V], service, operation string, call func(context.Context, []string) (map[string]V, error)) {
	keys := s.drain()
	if len(keys) == 0 {
		return
	}
	asked := keys[:min(len(keys), mostBatch)]
	for _, k := range keys[len(asked):] {
		s.fail(k, TooMany(service, operation), r.now)
	}
	ctx, cancel := r.one()
	defer cancel()
	found, failed := call(ctx, asked)
	err, ended := r.failed(ctx, failed)
	for _, k := range asked {
		switch v, ok := found[k]; {
		case ok || err == nil:
			s.put(k, v, ok, r.now)
		case !ended:
			s.fail(k, err, r.now)
		}
	}
}

// readEach reads keys one at a time with an operation of a service. It stops if AWS refuses further calls.
func readEach[V any](r reading, s *shelf[V], service, operation string, call func(context.Context, string) (V, bool, error)) {
	ctx, cancel := r.one()
	defer cancel()
	var ends *observed.Error
	for i, k := range s.drain() {
		if i == mostEach && ends == nil {
			ends = TooMany(service, operation)
		}
		if ends != nil {
			s.fail(k, ends, r.now)
			continue
		}
		v, found, failed := call(ctx, k)
		err, ended := r.failed(ctx, failed)
		if ended {
			return
		}
		if err == nil {
			s.put(k, v, found, r.now)
			continue
		}
		s.fail(k, err, r.now)
		if slices.Contains([]observed.ErrorKind{observed.Throttled, observed.Credentials, observed.Cancelled}, err.Kind) || err.Code == CodeNotDry {
			ends = err
		}
	}
}

func asError(err error) *observed.Error {
	if err == nil {
		return nil
	}
	var e *observed.Error
	if errors.As(err, &e) {
		return e
	}
	return &observed.Error{Kind: observed.Unknown, Code: "Unknown", Message: err.Error(), Err: err}
}

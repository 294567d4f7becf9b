package pulls

import (
	"context"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/slot"
)

const (
	// quickTurns is the maximum number of reviews that are rendered in parallel. A review that takes longer
	// than quickFor passes its slot to the next review, as long as fewer than slowTurns reviews are slow.
	// So quick reviews do not wait for slow ones.
	quickTurns, slowTurns = 2, 6
	quickFor              = 5 * time.Second
	// ofSource is the maximum number of concurrent reviews of one source. Even if all of them are slow, a
	// quick slot is left for another source.
	ofSource = slowTurns / 2
)

// Turns contains the slots for work on the pull requests of all sources.
type Turns struct {
	// sources gives slots to sources in turn.
	sources     *slot.Queue
	quick, slow chan struct{}
	// heavy is taken by the only review that may use much memory.
	heavy chan struct{}
	// foresees is taken by the review that is being simulated.
	foresees chan struct{}
	// quickFor is the time for which a review is quick. answering is the time that a plan waits for AWS.
	quickFor, answering time.Duration

	mu sync.Mutex
	// lines contains the queues of the accounts with plans in progress.
	lines map[*reconciler.Scope]*line
}

// NewTurns returns a Turns with all slots free.
func NewTurns() *Turns {
	return &Turns{sources: slot.New(slot.Options{Slots: quickTurns + slowTurns, PerSource: ofSource}), quick: make(chan struct{}, quickTurns), slow: make(chan struct{}, slowTurns), heavy: make(chan struct{}, 1), foresees: make(chan struct{}, 1), quickFor: quickFor, answering: answering, lines: map[*reconciler.Scope]*line{}}
}

// render calls do when the source has a slot, and bounds its time. long reports whether it took long. Work
// that is known to be slow uses a slow slot from the start.
func (t *Turns) render(ctx context.Context, source string, slow bool, do func(context.Context) error) (long bool, err error) {
	_, turn, err := t.sources.Enter(ctx, slot.Caller{Source: source})
	if err != nil {
		return false, err
	}
	defer turn.Leave()
	first := t.quick
	if slow {
		first = t.slow
	}
	select {
	case first <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	began, done := time.Now(), make(chan struct{})
	var left sync.WaitGroup
	left.Go(func() {
		if !slow && t.outgrows(done) {
			<-t.quick
			first = t.slow
		}
		<-done
		<-first
	})
	bound, cancel := context.WithTimeout(ctx, rendering)
	defer cancel()
	if err = do(bound); err != nil && bound.Err() != nil && ctx.Err() == nil {
		err = errSlow
	}
	close(done)
	left.Wait()
	return time.Since(began) > t.quickFor, err
}

// takeHeavy takes the only slot for work that uses much memory, and reports whether it was free.
func (t *Turns) takeHeavy() bool {
	select {
	case t.heavy <- struct{}{}:
		return true
	default:
		return false
	}
}

// outgrows waits until the work is done (false), or until it is slow and has a slow slot (true).
func (t *Turns) outgrows(done chan struct{}) bool {
	timer := time.NewTimer(t.quickFor)
	defer timer.Stop()
	select {
	case <-done:
		return false
	case <-timer.C:
	}
	select {
	case <-done:
		return false
	case t.slow <- struct{}{}:
		return true
	}
}

// line is the queue of plans in an account. One plan runs at a time.
type line struct {
	turn chan struct{}
	// Turns.mu guards users and moved. users is the number of plans in the line. moved is the time at which
	// a plan last ended without being given up.
	users int
	moved time.Time
}

// pass plans a batch when no other plan of its account is running. The full timeout applies to each plan. A
// plan waits in the queue as long as the plans before it make progress.
func (t *Turns) pass(ctx context.Context, b reconciler.Batch) []*plan.Report {
	if b.Scope == nil {
		return reconciler.RunBatch(ctx, b, reconciler.PlanOnly)
	}
	l := t.enter(b.Scope)
	turn := t.wait(ctx, l)
	bound, cancel := context.WithTimeout(ctx, t.answering)
	defer cancel()
	if turn {
		defer func() { <-l.turn }()
	} else {
		cancel() // the reports then contain the timeout
	}
	reports := reconciler.RunBatch(bound, b, reconciler.PlanOnly)
	silent := bound.Err() != nil
	for _, r := range reports {
		if r.Err != nil && silent {
			r.Err = errSilent
		}
	}
	t.leave(b.Scope, l, !silent)
	return reports
}

func (t *Turns) enter(s *reconciler.Scope) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[s]
	if l == nil {
		l = &line{turn: make(chan struct{}, 1)}
		t.lines[s] = l
	}
	l.users++
	return l
}

func (t *Turns) leave(s *reconciler.Scope, l *line, moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if moved {
		l.moved = time.Now()
	}
	if l.users--; l.users == 0 {
		delete(t.lines, s)
	}
}

// wait waits until the line is free. It returns false if ctx ends first, or if no plan finishes for too
// long.
func (t *Turns) wait(ctx context.Context, l *line) bool {
	timer := time.NewTimer(t.answering)
	defer timer.Stop()
	for {
		select {
		case l.turn <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		t.mu.Lock()
		left := t.answering - time.Since(l.moved)
		t.mu.Unlock()
		if left <= 0 {
			return false
		}
		timer.Reset(left)
	}
}

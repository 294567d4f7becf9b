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
	// quickTurns bounds the reviews that are rendered in parallel. A review that takes longer than
	// quickFor gives its turn to the next, as long as fewer than slowTurns reviews are slow: quick
	// ones do not wait for slow ones.
	quickTurns, slowTurns = 2, 6
	quickFor              = 5 * time.Second
	// ofSource bounds the concurrent reviews of one source. All of them may be slow: then another
	// source still finds a quick turn.
	ofSource = slowTurns / 2
)

// Turns bounds the concurrent work for the pull requests of all sources.
type Turns struct {
	// sources lets sources take turns.
	sources     *slot.Queue
	quick, slow chan struct{}
	// heavy is taken by the only review that may use much memory.
	heavy chan struct{}
	// foresees is taken by the review that computes what its plan would do over time.
	foresees chan struct{}
	// quickFor is the time for which a review is quick, answering the time that a plan waits for AWS.
	quickFor, answering time.Duration

	mu sync.Mutex
	// lines holds the queues of the accounts with plans under way.
	lines map[*reconciler.Scope]*line
}

// NewTurns returns turns that are all free.
func NewTurns() *Turns {
	return &Turns{sources: slot.New(slot.Options{Slots: quickTurns + slowTurns, PerSource: ofSource}), quick: make(chan struct{}, quickTurns), slow: make(chan struct{}, slowTurns), heavy: make(chan struct{}, 1), foresees: make(chan struct{}, 1), quickFor: quickFor, answering: answering, lines: map[*reconciler.Scope]*line{}}
}

// render calls do when it is the source's turn, and bounds its time. long says that it took long. Work
// that is known to be slow takes a slow turn from the start.
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

// takeHeavy takes the only turn for work that uses much memory, if it is free.
func (t *Turns) takeHeavy() bool {
	select {
	case t.heavy <- struct{}{}:
		return true
	default:
		return false
	}
}

// outgrows waits until the work is done, or until it is slow and has a slow turn, which it reports.
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

// line queues the plans of an account, which are made one at a time.
type line struct {
	turn chan struct{}
	// users and moved are guarded by Turns.mu: the number of plans in the line, and the time at
	// which a plan last ended without being given up.
	users int
	moved time.Time
}

// pass plans a batch when no other plan of its account is running. Every plan has its full time, and
// waits for its turn as long as the plans before it finish.
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

// wait waits for a turn. It returns false if ctx ends first, or if no plan finishes for too long.
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

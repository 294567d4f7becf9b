package pulls

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/reconciler"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// hanging is a Git that comes to some heads only when it is let, or not at all.
type hanging struct {
	Git
	mu    sync.Mutex
	heads map[string]chan struct{}
	asked map[string]int
	ended map[string]error
	hangs int // how many do so now
}

func (b *bench) hang(heads ...string) *hanging {
	h := &hanging{Git: b.w.o.Git, heads: map[string]chan struct{}{}, asked: map[string]int{}, ended: map[string]error{}}
	for _, head := range heads {
		h.heads[head] = make(chan struct{})
	}
	b.w.o.Git = h
	return h
}

func (h *hanging) Pull(ctx context.Context, p source.PullRef) (source.Merge, error) {
	h.mu.Lock()
	h.asked[p.HeadSHA]++
	hangs := h.heads[p.HeadSHA]
	if hangs != nil {
		h.hangs++
		defer func() { h.mu.Lock(); defer h.mu.Unlock(); h.hangs-- }()
	}
	h.mu.Unlock()
	if hangs == nil {
		return h.Git.Pull(ctx, p)
	}
	select {
	case <-hangs:
		return h.Git.Pull(ctx, p)
	case <-ctx.Done():
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended[p.HeadSHA] = ctx.Err()
		return source.Merge{}, ctx.Err()
	}
}

// times is how often a head was asked for.
func (h *hanging) times(head string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[head]
}

// finishBut waits for all plans under way but n.
func (b *bench) finishBut(n int) {
	b.t.Helper()
	for b.w.planner.under > n {
		select {
		case p := <-b.w.planner.finished:
			b.w.planner.finish(b.t.Context(), p)
		case <-time.After(time.Minute):
			b.t.Fatalf("%d plans are under way, want %d", b.w.planner.under, n)
		}
	}
}

// come waits until n plans hang in Git.
func (h *hanging) come(t *testing.T, n int) {
	t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Millisecond) {
		h.mu.Lock()
		hangs := h.hangs
		h.mu.Unlock()
		if hangs >= n {
			return
		}
	}
	t.Fatalf("fewer than %d plans have come to Git", n)
}

// looks has time pass, the forge looked at and all planned but n, which hang in Git.
func (b *bench) looks(n int) {
	b.t.Helper()
	b.clock = b.clock.Add(31 * time.Second)
	b.w.round(b.t.Context())
	b.finishBut(n)
	if h, ok := b.w.o.Git.(*hanging); ok {
		h.come(b.t, n)
	}
}

// planned is for which heads the pull requests were told to be planned, the last time.
func (b *bench) planned() map[int64]string {
	out := map[int64]string{}
	for _, p := range b.display.shown {
		if delete(out, p.Number); p.State == report.PullPlanned {
			out[p.Number] = p.HeadSHA
		}
	}
	return out
}

func wider(n int) map[string]string {
	return map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", fmt.Sprintf("maxSize: 1%d", n))}
}

// A plan that takes long outlives the look that began it: the others are planned, and
// planned anew, commands are obeyed, and it is made once.
func TestAPlanThatTakesLongHoldsUpItself(t *testing.T) {
	b, slow := started(t, "", "")
	quick := b.propose(2, wider(2))
	h := b.hang(slow)
	b.looks(1)
	if got := b.planned(); got[2] != quick || got[1] != "" {
		t.Fatalf("planned: %v", got)
	}
	later := b.propose(3, wider(3))
	b.forge.say(2, "writer", "weir plan")
	again := h.times(quick)
	b.looks(1)
	b.looks(1)
	if got := b.planned(); got[3] != later || h.times(quick) == again {
		t.Errorf("planned: %v; the second was asked for %d times, then %d", got, again, h.times(quick))
	}
	if n := h.times(slow); n != 1 {
		t.Errorf("it was begun %d times", n)
	}
	// Asking for a plan while weir makes one gives another.
	b.forge.say(1, "writer", "weir plan")
	b.looks(1)
	close(h.heads[slow])
	b.finishBut(0)
	if got := b.planned(); got[1] != slow || h.times(slow) != 1 {
		t.Errorf("planned: %v, begun %d times", got, h.times(slow))
	}
	if b.look(); h.times(slow) == 1 {
		t.Error("the plan that was asked for meanwhile was not made")
	}
}

// A change of a pull request ends the plan of its former state.
func TestAPlanOfWhatIsNoLongerSoEnds(t *testing.T) {
	for name, change := range map[string]func(b *bench) (head string){
		"a push":      func(b *bench) string { return b.propose(1, wider(7)) },
		"closed":      func(b *bench) string { b.edit(1, func(p *forge.PullRequest) { p.State = forge.Closed }); return "" },
		"a draft now": func(b *bench) string { b.edit(1, func(p *forge.PullRequest) { p.Draft = true }); return "" },
	} {
		t.Run(name, func(t *testing.T) {
			b, old := started(t, "drafts: wait", "")
			h := b.hang(old)
			b.looks(1)
			head := change(b)
			b.looks(0)
			b.round()
			h.mu.Lock()
			defer h.mu.Unlock()
			if !errors.Is(h.ended[old], context.Canceled) || h.asked[old] != 1 {
				t.Errorf("the plan of the old head ended with %v, begun %d times", h.ended[old], h.asked[old])
			}
			if got := b.planned(); got[1] != head {
				t.Errorf("planned: %v, want %q", got, head)
			}
		})
	}
}

func (b *bench) edit(number int64, edit func(*forge.PullRequest)) {
	edit(b.forge.pulls[number])
	b.forge.version++
}

// However many plans hang, no more are begun than may be.
func TestPlansBesideEachOther(t *testing.T) {
	b, first := started(t, "", "")
	heads := []string{first}
	for n := int64(2); n <= 4; n++ {
		heads = append(heads, b.propose(n, wider(int(n))))
	}
	h := b.hang(heads...)
	b.w.planner.beside = 2
	begun := func() (n int) {
		for _, head := range heads {
			n += h.times(head)
		}
		return n
	}
	b.looks(2)
	b.looks(2)
	if n := begun(); n != 2 {
		t.Errorf("%d were begun", n)
	}
	for _, head := range heads {
		close(h.heads[head])
	}
	b.finishBut(0)
	b.round()
	if got := b.planned(); len(got) != 4 {
		t.Errorf("planned: %v", got)
	}
}

// The end of a watcher is the end of its plans.
func TestAWatcherEndsWithItsPlans(t *testing.T) {
	b, slow := started(t, "", "")
	h := b.hang(slow)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.w.Run(ctx) }()
	for h.times(slow) == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended[slow] == nil {
		t.Error("a plan goes on")
	}
}

// Reviews that are slow give their turns to quick ones.
func TestSlowReviewsLeaveTurns(t *testing.T) {
	turns := NewTurns()
	turns.quickFor = 10 * time.Millisecond
	release := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(release)
	hang := func(began chan struct{}) func(context.Context) error {
		return func(context.Context) error { close(began); <-release; return nil }
	}
	for i := range slowTurns {
		began := make(chan struct{})
		wg.Go(func() {
			if slow, err := turns.render(t.Context(), strconv.Itoa(i%2), false, hang(began)); !slow || err != nil {
				t.Errorf("slow %t, %v", slow, err)
			}
		})
		<-began // by then another one has left its turn
	}
	for len(turns.slow) < slowTurns {
		time.Sleep(time.Millisecond)
	}
	began := make(chan struct{})
	wg.Go(func() { _, _ = turns.render(t.Context(), "c", true, hang(began)) })
	// A slow render waits for other slow ones; a quick one does not.
	if slow, err := turns.render(t.Context(), "c", false, func(context.Context) error { return nil }); slow || err != nil {
		t.Errorf("slow %t, %v", slow, err)
	}
	select {
	case <-began:
		t.Error("more are slow at a time than may be")
	default:
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.render(ctx, "c", true, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("waits beyond its end: %v", err)
	}
}

// The slow reviews of one source leave turns to another source, of which even a slow one
// begins at once.
func TestSourcesTakeTurnsWithReviews(t *testing.T) {
	turns := NewTurns()
	turns.quickFor = time.Millisecond
	release, began := make(chan struct{}), make(chan string, beside)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(release)
	hang := func(source string) {
		wg.Go(func() {
			_, _ = turns.render(t.Context(), source, false, func(context.Context) error { began <- source; <-release; return nil })
		})
	}
	for range beside {
		hang("busy")
	}
	for range ofSource {
		<-began
	}
	for turns.sources.Waiting() < beside-ofSource {
		time.Sleep(time.Millisecond)
	}
	for range ofSource {
		hang("other")
		if source := <-began; source != "other" {
			t.Fatalf("the source %s has more than its turns", source)
		}
	}
}

// A plan waits for its account as long as the plans before it finish, and gives up if they do not.
func TestPlansOfOneAccountWaitForEachOther(t *testing.T) {
	turns := NewTurns()
	turns.answering = time.Second
	scope := &reconciler.Scope{}
	l := turns.enter(scope)
	l.turn <- struct{}{} // taken
	if turns.wait(t.Context(), l) {
		t.Fatal("two have a turn")
	}
	over := time.Now().Add(3 * turns.answering)
	got := make(chan bool)
	go func() { got <- turns.wait(t.Context(), l) }()
	for time.Now().Before(over) {
		select {
		case <-got:
			t.Fatal("it did not wait though others get to their ends")
		case <-time.After(20 * time.Millisecond):
			turns.enter(scope)
			turns.leave(scope, l, true)
		}
	}
	<-l.turn
	if !<-got {
		t.Error("it gave up before its turn")
	}
	turns.leave(scope, l, true)
	if len(turns.lines) > 0 {
		t.Error("a line that nobody is in stays")
	}
}

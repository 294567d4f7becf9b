package fleet

import (
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/tree"
)

// Two pull requests are planned at once: the watchers of two sources share scopes,
// which a review therefore leaves as they are.
func TestReviewsAtOnce(t *testing.T) {
	h := newHarness(t, globbed)
	m := pools("o/one", "o/two")
	base := View{ID: "id", Snapshot: snap("base", m)}
	h.compose(base)
	b, scopes := h.fleet.Base(map[string]View{"s": base}), h.accounts.ForPlans()
	var wg sync.WaitGroup
	for _, name := range []string{"one", "two"} {
		file := "o/" + name + "/pool.yaml"
		head := with(m, map[string]string{file: m[file] + "# x\n"})
		wg.Go(func() {
			for range 3 {
				r, err := b.Review(t.Context(), scopes, Proposal{Source: "s", Snapshot: snap("head "+name, head), Owner: "pull " + name})
				if err != nil {
					t.Error(err)
					return
				}
				r.Open(t.Context(), scopes)
				for _, batch := range r.Batches {
					reconciler.RunBatch(t.Context(), batch, reconciler.PlanOnly)
					if batch.AllTargets {
						t.Error("a review tells what nobody wants")
					}
				}
			}
		})
	}
	wg.Wait()
}

// gate is a tree whose files are read once it is open; seen counts the directories.
type gate struct {
	tree.Map
	open, looked chan struct{}
	once         *sync.Once
	seen         *sync.Map
}

func newGate(m tree.Map) gate {
	return gate{m, make(chan struct{}), make(chan struct{}), &sync.Once{}, &sync.Map{}}
}

func (g gate) ReadFile(p string) ([]byte, error) {
	g.once.Do(func() { close(g.looked) })
	<-g.open
	g.seen.Store(path.Dir(p), true)
	time.Sleep(2 * time.Millisecond)
	return g.Map.ReadFile(p)
}

func (g gate) targets() (n int) {
	g.seen.Range(func(any, any) bool { n++; return true })
	return n
}

// A proposal that changes many targets takes no more of the turns to render than its
// share: others do not wait behind all of its targets.
func TestAProposalOfManyTargetsLeavesTurns(t *testing.T) {
	const many = 60
	h := newHarness(t, globbed)
	dirs := []string{"o/other"}
	for i := range many {
		dirs = append(dirs, fmt.Sprintf("o/t-%02d", i))
	}
	m := pools(dirs...)
	base := View{ID: "id", Snapshot: snap("base", m)}
	h.compose(base)
	b := h.fleet.Base(map[string]View{"s": base})
	review := func(g gate) {
		snap := snap("head", nil)
		snap.Tree = g
		if _, err := b.Review(t.Context(), h.accounts.ForPlans(), Proposal{Source: "s", Snapshot: snap, Owner: "pull"}); err != nil {
			t.Error(err)
		}
	}
	changes := map[string]string{}
	for _, dir := range dirs[1:] {
		changes[dir+"/pool.yaml"] = m[dir+"/pool.yaml"] + "# x\n"
	}
	large := newGate(with(m, changes))
	small := newGate(with(m, map[string]string{"o/other/pool.yaml": m["o/other/pool.yaml"] + "# x\n"}))
	close(small.open)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { review(large) })
	<-large.looked // it has the turns now
	done := make(chan struct{})
	go func() {
		defer close(done)
		review(small)
	}()
	time.Sleep(300 * time.Millisecond) // it waits for one
	close(large.open)
	<-done
	if n := large.targets(); n > many/2 {
		t.Errorf("a small proposal waited for %d targets of a large one", n)
	}
}

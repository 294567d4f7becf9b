package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/slot"
	"github.com/weir-gitops/weir/render/tree"
)

// objects is a kustomization of n objects of some forty nodes.
func objects(n int) tree.Map {
	m, names := tree.Map{}, "resources:\n"
	for from := 0; from < n; from += 100 {
		var b strings.Builder
		for i := from; i < min(n, from+100); i++ {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\ndata:\n", i)
			for j := range 14 {
				fmt.Fprintf(&b, "  k%d: v\n", j)
			}
		}
		m[fmt.Sprintf("f%d.yaml", from)] = b.String()
		names += fmt.Sprintf("- f%d.yaml\n", from)
	}
	m["kustomization.yaml"] = names
	return m
}

// hold takes the large slot for a caller until the returned function is called.
func hold(t *testing.T, who slot.Caller) (release func()) {
	t.Helper()
	_, s, err := largeSlots.Enter(t.Context(), who)
	if err != nil {
		t.Fatal(err)
	}
	return s.Leave
}

func free(t *testing.T) {
	t.Helper()
	if smallSlots.Running()+largeSlots.Running()+smallSlots.Waiting()+largeSlots.Waiting() > 0 {
		t.Error("a slot was kept")
	}
}

// One large render is made at a time. It holds up no small one, and waits no longer
// than it is asked to.
func TestLargeRendersTakeTurns(t *testing.T) {
	ctx := t.Context()
	small, large := objects(2), objects(900)
	begun, end, done := make(chan bool), make(chan bool), make(chan error)
	go func() {
		done <- inTurn(ctx, slot.Caller{}, func(ctx context.Context, small bool, grow func() bool) error {
			if _, err := render(ctx, large, ".", Options{}, small, grow); err != nil {
				return err
			}
			begun <- true
			<-end
			return nil
		})
	}()
	<-begun
	for range 3 {
		if r, err := Render(ctx, small, ".", Options{}); err != nil || len(r.Objects) != 2 {
			t.Errorf("a small render beside a large one: %v", err)
		}
	}
	hurried, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := Render(hurried, large, ".", Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second large render beside the first one: %v", err)
	}
	close(end)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r, err := Render(ctx, large, ".", Options{}); err != nil || len(r.Objects) != 900 {
		t.Errorf("a large render after another: %v", err)
	}
	free(t)
}

// A large render goes on with what it has read if the large slot is free, and leaves its
// small slot to others. If it has to wait, or is a proposal's, it starts again in its turn.
func TestLargeRendersGoOn(t *testing.T) {
	large := objects(900)
	for name, c := range map[string]struct {
		busy bool
		who  slot.Caller
		want []bool
	}{
		"alone":     {want: []bool{true}},
		"proposed":  {who: slot.Caller{Class: slot.Proposed}, want: []bool{true, false}},
		"in a turn": {busy: true, want: []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			release := func() {}
			if c.busy {
				release = hold(t, slot.Caller{})
			}
			var begun []bool
			err := inTurn(t.Context(), c.who, func(ctx context.Context, small bool, grow func() bool) error {
				begun = append(begun, small)
				r, err := render(ctx, large, ".", Options{}, small, grow)
				if err == nil && (len(r.Objects) != 900 || smallSlots.Running() != 0 || largeSlots.Running() != 1) {
					t.Errorf("%d objects, %d small and %d large at work", len(r.Objects), smallSlots.Running(), largeSlots.Running())
				}
				if small {
					release() // the other one is done
				}
				return err
			})
			if err != nil || !slices.Equal(begun, c.want) {
				t.Errorf("begun %v, want %v: %v", begun, c.want, err)
			}
			free(t)
		})
	}
}

// However many large renders of pull requests there are, one of a followed commit begins at
// once: the one that runs is dropped, and starts again afterwards.
func TestFollowedRendersComeFirst(t *testing.T) {
	const many = 6
	events, next := make(chan string), make(chan struct{})
	var all sync.WaitGroup
	large := func(class slot.Class, name string) {
		all.Go(func() {
			err := inTurn(t.Context(), slot.Caller{Source: "fleet", Class: class}, func(ctx context.Context, small bool, _ func() bool) error {
				if small {
					return kust.ErrLarge
				}
				events <- name + " begins"
				select {
				case <-next:
					return nil
				case <-ctx.Done():
					events <- name + " is dropped"
					return context.Cause(ctx)
				}
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for range many {
		large(slot.Proposed, "proposed")
	}
	var got []string
	take := func() { got = append(got, <-events) }
	take()
	large(slot.Followed, "followed")
	take()
	take()
	if want := []string{"proposed begins", "proposed is dropped", "followed begins"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	next <- struct{}{}
	for range many {
		if e := <-events; e != "proposed begins" {
			t.Errorf("got %s", e)
		}
		next <- struct{}{}
	}
	all.Wait()
	free(t)
}

// A render of a pull request that lost its slot in the middle of a build ends like any other.
func TestDroppedRendersStartAgain(t *testing.T) {
	large, times, followed := objects(900), 0, make(chan error, 1)
	var r *Result
	err := inTurn(t.Context(), slot.Caller{Class: slot.Proposed}, func(ctx context.Context, small bool, grow func() bool) (err error) {
		if times++; times == 2 {
			go func() {
				_, err := Render(t.Context(), large, ".", Options{})
				followed <- err
			}()
			<-ctx.Done()
		}
		r, err = render(ctx, large, ".", Options{}, small, grow)
		return err
	})
	if err != nil || times != 3 || len(r.Objects) != 900 {
		t.Errorf("begun %d times: %v", times, err)
	}
	if err := <-followed; err != nil {
		t.Error(err)
	}
	free(t)
}

// Findings are counted where they are too many; the errors come first.
func TestAsManyFindingsAsAreOfUse(t *testing.T) {
	var unknown strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&unknown, "  k%d: v\n", i)
	}
	m := tree.Map{"a.yaml": "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: a, annotations: {weir.dev/adopt: maybe}}\nspec:\n  minSize: 1\n  maxSize: 2\n" + unknown.String()}
	r, err := Render(t.Context(), m, "a.yaml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for i, d := range r.Diags {
		if d.Code == "too-large" {
			last = i
		}
		if d.Severity != diag.Error {
			t.Errorf("not the gravest: %s", d)
		}
	}
	if len(r.Diags) != maxFindings+1 || !strings.HasSuffix(r.Diags[last].Summary, "more findings than the 500 that are shown") || !strings.HasPrefix(r.Diags[last].Summary, "250") {
		t.Errorf("%d findings; %s", len(r.Diags), r.Diags[last])
	}
}

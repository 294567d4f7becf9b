package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust"
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

// One large render is made at a time. It holds up no small one, and waits no longer
// than it is asked to.
func TestLargeRendersTakeTurns(t *testing.T) {
	ctx := t.Context()
	small, large := objects(2), objects(900)
	begun, end, done := make(chan bool), make(chan bool), make(chan error)
	go func() {
		done <- inTurn(ctx, false, func(small bool, grow func() bool) error {
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
}

// A large render goes on with what it has read where no other is at work, and leaves its
// place to small ones. Where it has to wait, or to give way, it begins anew in its turn.
func TestLargeRendersGoOn(t *testing.T) {
	large := objects(900)
	for name, c := range map[string]struct {
		busy, patient bool
		want          []bool
	}{
		"alone":     {want: []bool{true}},
		"patient":   {patient: true, want: []bool{true, false}},
		"in a turn": {busy: true, want: []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.busy {
				largeSlots <- struct{}{}
			}
			var begun []bool
			err := inTurn(t.Context(), c.patient, func(small bool, grow func() bool) error {
				begun = append(begun, small)
				r, err := render(t.Context(), large, ".", Options{}, small, grow)
				if err == nil && (len(r.Objects) != 900 || len(smallSlots) != 0 || len(largeSlots) != 1) {
					t.Errorf("%d objects, %d small and %d large at work", len(r.Objects), len(smallSlots), len(largeSlots))
				}
				if c.busy && small {
					<-largeSlots // the other one is done
				}
				return err
			})
			if err != nil || !slices.Equal(begun, c.want) {
				t.Errorf("begun %v, want %v: %v", begun, c.want, err)
			}
			if len(smallSlots)+len(largeSlots)+len(lowPrioritySlots) > 0 {
				t.Error("a place was kept")
			}
		})
	}
}

// However many large ones give way, one that does not waits for one of them at most.
func TestPatientRendersGiveWay(t *testing.T) {
	const many = 4
	turns := make(chan string)
	large := func(patient bool, name string) {
		_ = inTurn(t.Context(), patient, func(small bool, _ func() bool) error {
			if small {
				return kust.ErrLarge
			}
			turns <- name
			return nil
		})
	}
	for range many {
		go large(true, "patient")
	}
	for len(lowPrioritySlots) == 0 || len(largeSlots) == 0 {
		time.Sleep(time.Millisecond) // one has the turn
	}
	for len(smallSlots) > 0 {
		time.Sleep(time.Millisecond) // and the others are known to be large
	}
	go large(false, "hurried")
	time.Sleep(50 * time.Millisecond)
	var order []string
	for range many + 1 {
		order = append(order, <-turns)
	}
	if i := slices.Index(order, "hurried"); i > 1 {
		t.Errorf("one waited for %d that give way: %v", i, order)
	}
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
	if len(r.Diags) != maxFindings+1 || !strings.HasSuffix(r.Diags[last].Summary, "findings more than the 500 that are shown") || !strings.HasPrefix(r.Diags[last].Summary, "there are 250") {
		t.Errorf("%d findings; %s", len(r.Diags), r.Diags[last])
	}
}

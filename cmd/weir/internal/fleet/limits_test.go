package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/fleet/fleettest"
	"github.com/weir-gitops/weir/render/tree"
)

// A source whose paths stand for too many targets has none of them changed or
// deleted; other paths and sources go on, and what it had before counts as neither
// gone nor stray.
func TestTooManyTargetsOfASource(t *testing.T) {
	h := newHarness(t, "- {name: first, path: alone, region: eu-west-1}\n"+globbed)
	h.fleet.o.Config.Limits = config.Limits{Targets: 4}
	m := pools("alone", "o/a", "o/b", "o/c")
	before := View{Snapshot: snapshot("r1", m)}
	if _, got := h.compose(before); len(got) != 4 || got["c"].Set == nil || !got["c"].Whole {
		t.Fatalf("as many as there may be: %v", got)
	}
	crowd := with(m, map[string]string{"o/d/pool.yaml": fleettest.Pool("pool-d")})
	refused := "path o/* stands for 4 targets, beside 1 of other paths, and limits.targets allows 4 for each source"

	r := h.review(before, Proposal{Snapshot: snapshot("head", crowd), Owner: "pull 1"})
	if diff := cmp.Diff([]string{"{1}"}, r.Touched); diff != "" || len(r.Gone) > 0 || len(r.Batches) != 1 {
		t.Errorf("the proposal touches %v, takes away %v, %d batches", r.Touched, r.Gone, len(r.Batches))
	} else if d := r.Batches[0].Targets[len(r.Batches[0].Targets)-1]; len(d.Diagnostics) != 1 || d.Diagnostics[0].Summary != refused || d.Whole {
		t.Errorf("the proposal says %v", d.Diagnostics)
	}

	for range 2 { // each pass over it says the same
		c, got := h.compose(View{Snapshot: snapshot("r2", crowd)})
		d := got["{1}"]
		if len(got) != 2 || d.Set != nil || d.Whole || !d.Touched || len(d.Diagnostics) != 1 || d.Diagnostics[0].Code != "too-many-targets" || d.Diagnostics[0].Summary != refused {
			t.Fatalf("one more: %v", got)
		}
		if first := got["first"]; first.Set == nil || !first.Whole || first.Err != nil || len(first.Diagnostics) > 0 {
			t.Errorf("another path's target: %+v", first)
		}
		if len(c.Revisions[0].Removed) > 0 || c.Batches[0].Strays {
			t.Errorf("it removes %v, and reports strays: %t", c.Revisions[0].Removed, c.Batches[0].Strays)
		}
	}
	if c, got := h.compose(View{Snapshot: snapshot("r3", m)}); len(got) != 4 || !got["a"].Whole || len(c.Revisions[0].Removed) > 0 {
		t.Errorf("after it was taken back: %v", got)
	}
}

// names is a tree of n directories with one file each, nested so that Git holds them
// in few objects.
type names struct {
	tree.Map
	n int
}

func (d names) ReadDir(p string) ([]tree.Entry, error) {
	if !strings.HasPrefix(p, "o") {
		return d.Map.ReadDir(p)
	}
	out := make([]tree.Entry, d.n)
	for i := range out {
		out[i] = tree.Entry{Name: fmt.Sprintf("d%05d", i), Mode: tree.Dir, Size: -1}
	}
	return out, nil
}

func TestMoreNamesThanCanBeCounted(t *testing.T) {
	h := newHarness(t, "- {name: '{1}-{2}', path: 'o/*/*', region: eu-west-1}\n- {name: first, path: alone, region: eu-west-1}\n")
	snap := snapshot("r1", nil)
	snap.Tree = names{pools("alone", "o/a/b"), 1000}
	_, got := h.compose(View{Snapshot: snap})
	if d := got["{1}-{2}"]; d.Whole || len(d.Diagnostics) != 1 || !strings.Contains(d.Diagnostics[0].Summary, "too many directories to count") {
		t.Errorf("%+v", d)
	}
	if !got["first"].Whole {
		t.Errorf("another path's target: %+v", got["first"])
	}
}

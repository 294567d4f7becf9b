package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/snapshot"
)

// noRecord knows of no revision that was applied.
type noRecord struct{}

func (noRecord) Record(string) (lastgood.Record, error) { return lastgood.Record{}, nil }

// line is a history of one branch, the oldest commit first.
type line struct {
	revisions []string
	trees     map[string]tree.Map
}

func (l *line) commit(revision string, m tree.Map) {
	l.revisions = append(l.revisions, revision)
	l.trees[revision] = maps.Clone(m)
}

// view is the branch at its newest commit.
func (l *line) view() View {
	head := l.revisions[len(l.revisions)-1]
	return View{
		Snapshot: snap(head, l.trees[head]),
		Earlier: func(_ context.Context, revision string) (snapshot.Snapshot, error) {
			return snap(revision, l.trees[revision]), nil
		},
		Parents: func(_ context.Context, revision string, _ int) ([]string, error) {
			out := slices.Clone(l.revisions[:slices.Index(l.revisions, revision)])
			slices.Reverse(out)
			return out, nil
		},
	}
}

// sizes are the pools that a target wants, each with its size and the revision to which it is
// held.
func sizes(d reconciler.Desired) map[string]string {
	out := map[string]string{}
	if d.Set == nil {
		return map[string]string{"": fmt.Sprint(d.Diagnostics, d.Err)}
	}
	for _, p := range d.Set.Pools {
		text := fmt.Sprint(p.Replicas.Value)
		if h := d.Policy.FallbackPools[p.Key.String()]; h != nil {
			text += " of " + h.Revision
		}
		out[p.Key.Name] = text
	}
	return out
}

// searched composes until the searches for broken pools have ended.
func (h *harness) searched(v View) reconciler.Desired {
	h.t.Helper()
	for range 20 {
		h.compose(v)
		h.fleet.Wait()
		if s := h.fleet.holds.searches["one"]; s == nil || s.poolJob == nil {
			_, got := h.compose(v)
			return got["one"]
		}
	}
	h.t.Fatal("the searches do not end")
	return reconciler.Desired{}
}

// Each broken pool is held to the last revision in which it is whole, and has its own: one
// may have changed while another was broken already. What AWS does not match is given up for
// the next, and a pool that is mended follows the branch again.
func TestPoolsAreHeldToRevisionsOfTheirOwn(t *testing.T) {
	h := newHarness(t, "- {name: one, path: o/one, region: eu-west-1}\n")
	h.fleet.o.Good = noRecord{}
	l := &line{trees: map[string]tree.Map{}}
	files := tree.Map{}
	write := func(name, size string) {
		files["o/one/"+name+".yaml"] = fleettest.Pool(name, "replicas: 1", "replicas: "+size)
	}
	breaks := func(name string) {
		files["o/one/"+name+".yaml"] = fleettest.Pool(name, "minSize: 1", "minSize: many")
	}
	write("api", "1")
	write("bee", "1")
	l.commit("r1", files)
	write("api", "2")
	l.commit("r2", files)
	breaks("api")
	write("bee", "2")
	l.commit("r3", files)
	breaks("bee")
	write("cat", "3")
	l.commit("r4", files)

	got := h.searched(l.view())
	if d := cmp.Diff(map[string]string{"api": "2 of r2", "bee": "2 of r3", "cat": "3"}, sizes(got)); d != "" {
		t.Errorf("two broken pools (-want +got):\n%s", d)
	}
	if got.Commit.Revision != "r4" || got.Whole || len(got.Unplanned) != 2 {
		t.Errorf("revision %s, whole %t, %d unplanned", got.Commit.Revision, got.Whole, len(got.Unplanned))
	}

	// AWS holds something else than r2 says of api.
	h.fleet.Judge(map[string]Judged{"one": {Head: "r4", Wanted: h.fleet.holds.desired["one"], Pools: map[string]JudgedPool{
		"default/api": {Revision: "r2", Verdict: lastgood.Verdict{Answer: lastgood.Differs}}, "default/bee": {Revision: "r3", Verdict: lastgood.Verdict{Answer: lastgood.Fits}}}}})
	got = h.searched(l.view())
	if d := cmp.Diff(map[string]string{"api": "1 of r1", "bee": "2 of r3", "cat": "3"}, sizes(got)); d != "" {
		t.Errorf("one revision given up (-want +got):\n%s", d)
	}

	write("api", "3")
	l.commit("r5", files)
	got = h.searched(l.view())
	if d := cmp.Diff(map[string]string{"api": "3", "bee": "2 of r3", "cat": "3"}, sizes(got)); d != "" {
		t.Errorf("one pool mended (-want +got):\n%s", d)
	}

	write("bee", "1")
	l.commit("r6", files)
	got = h.searched(l.view())
	if d := cmp.Diff(map[string]string{"api": "3", "bee": "1", "cat": "3"}, sizes(got)); d != "" || !got.Whole || h.fleet.holds.searches["one"] != nil {
		t.Errorf("all mended: whole %t (-want +got):\n%s", got.Whole, d)
	}
}

// A target of which a commit leaves nothing is held to the revision before. What that wants is
// not all that Git may want by now, so nobody deletes by it, whatever the commit's trailer allows.
func TestAHeldTargetDeletesNothing(t *testing.T) {
	h := newHarness(t, "- {name: one, path: o/one, region: eu-west-1}\n")
	h.fleet.o.Good = noRecord{}
	l := &line{trees: map[string]tree.Map{}}
	l.commit("r1", tree.Map{"o/one/api.yaml": fleettest.Pool("api"), "o/one/bee.yaml": fleettest.Pool("bee")})
	if _, got := h.compose(l.view()); !got["one"].Whole {
		t.Fatal("what renders is not whole")
	}
	l.commit("r2", tree.Map{"o/one/api.yaml": fleettest.Pool("api", "minSize: 1", "minSize: many")})
	v := l.view()
	v.At, v.Snapshot.Parent, v.Snapshot.Message = v.Earlier, "r1", "remove\n\nWeir-Allow-Prune: one\n"
	for range 20 {
		_, got := h.compose(v)
		h.fleet.Wait()
		if d := got["one"]; d.Policy.Fallback != nil && d.Set != nil {
			if d.Policy.Fallback.Revision != "r1" || d.Whole || d.Policy.Prune.Allowed != nil {
				t.Errorf("held to %s, whole %t, pools that may be deleted: %v", d.Policy.Fallback.Revision, d.Whole, d.Policy.Prune.Allowed)
			}
			return
		}
	}
	t.Error("it is held to no revision")
}

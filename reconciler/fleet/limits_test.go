package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// A source whose paths stand for too many targets has none of them changed or
// deleted; other paths and sources go on, and what it had before counts as neither
// gone nor stray.
func TestTooManyTargetsOfASource(t *testing.T) {
	h := newHarness(t, "- {name: first, path: alone, region: eu-west-1}\n"+globbed)
	h.fleet.o.Config.Limits = targetspec.Limits{Targets: 4}
	m := pools("alone", "o/a", "o/b", "o/c")
	before := View{Snapshot: snap("r1", m)}
	if _, got := h.compose(before); len(got) != 4 || got["c"].Set == nil || !got["c"].Whole {
		t.Fatalf("as many as there may be: %v", got)
	}
	crowd := with(m, map[string]string{"o/d/pool.yaml": fleettest.Pool("pool-d")})
	refused := "path o/* matches 4 targets, in addition to 1 of other paths, and limits.targets allows 4 for each source"

	r := h.review(before, Proposal{Snapshot: snap("head", crowd), Owner: "pull 1"})
	if diff := cmp.Diff([]string{"{1}"}, r.Touched); diff != "" || len(r.Gone) > 0 || len(r.Batches) != 1 {
		t.Errorf("the proposal touches %v, takes away %v, %d batches", r.Touched, r.Gone, len(r.Batches))
	} else if d := r.Batches[0].Targets[len(r.Batches[0].Targets)-1]; len(d.Diagnostics) != 1 || d.Diagnostics[0].Summary != refused || d.Whole {
		t.Errorf("the proposal says %v", d.Diagnostics)
	}

	for range 2 { // each pass over it says the same
		c, got := h.compose(View{Snapshot: snap("r2", crowd)})
		d := got["{1}"]
		if len(got) != 2 || d.Set != nil || d.Whole || !d.Touched || len(d.Diagnostics) != 1 || d.Diagnostics[0].Code != "too-many-targets" || d.Diagnostics[0].Summary != refused {
			t.Fatalf("one more: %v", got)
		}
		if first := got["first"]; first.Set == nil || !first.Whole || first.Err != nil || len(first.Diagnostics) > 0 {
			t.Errorf("another path's target: %+v", first)
		}
		if len(c.Revisions[0].Removed) > 0 || c.Batches[0].AllTargets {
			t.Errorf("it removes %v, and reports strays: %t", c.Revisions[0].Removed, c.Batches[0].AllTargets)
		}
	}
	if c, got := h.compose(View{Snapshot: snap("r3", m)}); len(got) != 4 || !got["a"].Whole || len(c.Revisions[0].Removed) > 0 {
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
	snap := snap("r1", nil)
	snap.Tree = names{pools("alone", "o/a/b"), 1000}
	_, got := h.compose(View{Snapshot: snap})
	if d := got["{1}-{2}"]; d.Whole || len(d.Diagnostics) != 1 || !strings.Contains(d.Diagnostics[0].Summary, "too many directories to count") {
		t.Errorf("%+v", d)
	}
	if !got["first"].Whole {
		t.Errorf("another path's target: %+v", got["first"])
	}
}

// boots are targets below o whose pools have user data of their own, of so many bytes.
func boots(bytes int, names ...string) tree.Map {
	m := tree.Map{}
	for _, name := range names {
		m["o/"+name+"/pool.yaml"] = fleettest.Pool("pool-"+name, `dataSecretName: ""`, "dataSecretName: boot") +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {value: \"#cloud-config " + strings.Repeat(name, bytes/len(name)) + "\"}\n"
	}
	return m
}

// weir refuses the one target that exceeds the common limit, and does not render it again until there is room. It deletes nothing of that target.
func TestMoreThanThereMayBeOfAllTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		limits       targetspec.Limits
		before, more tree.Map
		code         string
		summary      string
	}{
		"pools": {targetspec.Limits{Pools: 2}, pools("o/a", "o/b"), pools("o/c"), "too-many-pools",
			"the target has 1 pools, in addition to 2 of other targets, and limits.pools allows 2"},
		"nodes": {targetspec.Limits{Nodes: 230}, boots(50_000, "a", "b"), boots(50_000, "c"), "too-large", "limits.nodes allows 8 times 230"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, globbed)
			h.fleet.o.Config.Limits = tc.limits
			h.fleet.budget = newBudget(h.fleet.limits(), render.NewShared(nil))
			if _, got := h.compose(View{Snapshot: snap("r1", tc.before)}); len(got) != 2 || !got["a"].Whole || !got["b"].Whole {
				t.Fatalf("as much as there may be: %+v", got)
			}
			more := with(tc.before, tc.more)
			disk := &counted{Tree: more}
			var reads []int
			for i := range 3 {
				snap := snap("r2", more)
				snap.Tree = disk
				_, got := h.compose(View{Snapshot: snap})
				reads = append(reads, disk.reads)
				if c := got["c"]; c.Set != nil || c.Whole || !c.Touched || len(c.Diagnostics) != 1 || c.Diagnostics[0].Code != tc.code || !strings.Contains(c.Diagnostics[0].Summary, tc.summary) {
					t.Fatalf("pass %d: %+v", i, c)
				}
				if !got["a"].Whole || !got["b"].Whole || got["a"].Set == nil {
					t.Errorf("pass %d: the others: %+v", i, got)
				}
			}
			if reads[0] == 0 || reads[2] != reads[0] {
				t.Errorf("reads after each pass: %v", reads)
			}
			less := with(more, map[string]string{"o/b/pool.yaml": ""})
			_, _ = h.compose(View{Snapshot: snap("r3", less)})
			if _, got := h.compose(View{Snapshot: snap("r3", less)}); len(got) != 2 || !got["c"].Whole || got["c"].Set == nil {
				t.Errorf("with room for it: %+v", got)
			}
		})
	}
}

// counted counts the files that were read.
type counted struct {
	tree.Tree
	reads int
}

func (c *counted) ReadFile(p string) ([]byte, error) {
	c.reads++
	return c.Tree.ReadFile(p)
}

// A proposal may add less than a fleet may hold, and is told what it is.
func TestMoreThanAProposalMayAdd(t *testing.T) {
	h := newHarness(t, globbed)
	h.fleet.o.Config.Limits = targetspec.Limits{Nodes: 400}
	h.fleet.budget = newBudget(h.fleet.limits(), render.NewShared(nil))
	m := boots(30_000, "a", "b", "c")
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	held := h.fleet.budget.shared.Bytes()
	if held < 90_000 {
		t.Fatalf("%d bytes are held", held)
	}
	say := func(m tree.Map) (touched []string, refused string) {
		r := h.review(base, Proposal{Snapshot: snap("head", m), Owner: "pull 1"})
		for _, b := range r.Batches {
			for _, d := range b.Targets {
				for _, found := range d.Diagnostics {
					refused += d.Policy.Target + ": " + found.Summary + "\n"
				}
			}
		}
		return r.Touched, refused
	}
	if touched, refused := say(with(m, boots(31_000, "a", "b"))); len(touched) != 2 || refused != "" {
		t.Errorf("two changed targets: %v, %s", touched, refused)
	}
	touched, refused := say(with(m, boots(31_000, "a", "b", "c")))
	if len(touched) != 3 || strings.Count(refused, "\n") != 1 || !strings.Contains(refused, "of other targets that the proposal changes, and limits.nodes allows 3 times 400") {
		t.Errorf("three changed targets: %v, %s", touched, refused)
	}
	if got := h.fleet.budget.shared.Bytes(); got != held {
		t.Errorf("reviews left %d bytes behind", got-held)
	}
	if touched, refused := say(with(m, map[string]string{"README.md": "x"})); len(touched) != 0 || refused != "" {
		t.Errorf("a proposal of something else: %v, %s", touched, refused)
	}
}

// A review passes over a target that was too much for the fleet. It does not render it
// again and again, though there would be room in the review's own, and does not say that
// it is touched. One that the proposal makes fit is rendered, and shown.
func TestAReviewDoesNotRetryWhatWasTooMuch(t *testing.T) {
	h := newHarness(t, globbed)
	h.fleet.o.Config.Limits = targetspec.Limits{Nodes: 230}
	h.fleet.budget = newBudget(h.fleet.limits(), render.NewShared(nil))
	m := boots(50_000, "a", "b")
	h.compose(View{Snapshot: snap("first", m)})
	m = with(m, boots(50_000, "c"))
	base := View{Snapshot: snap("base", m)}
	if _, got := h.compose(base); got["c"].Set != nil || len(got["c"].Diagnostics) != 1 {
		t.Fatalf("c was not too much: %+v", got["c"])
	}
	review := func(changes map[string]string) (touched []string, reads int) {
		disk := &counted{Tree: with(m, changes)}
		head := snap("head", nil)
		head.Tree = disk
		r := h.review(base, Proposal{Snapshot: head, Owner: "pull 1"})
		return r.Touched, disk.reads
	}
	if touched, reads := review(map[string]string{"README.md": "x"}); len(touched) > 0 || reads > 0 {
		t.Errorf("a proposal of something else touches %v and reads %d files", touched, reads)
	}
	if touched, _ := review(boots(10_000, "c")); !slices.Equal(touched, []string{"c"}) {
		t.Errorf("a proposal for it touches %v", touched)
	}
}

// The limits that hold by default admit what they are meant to.
func TestDefaultLimits(t *testing.T) {
	l := targetspec.Limits{}.WithDefaults()
	if int(l.Nodes) != kust.DefaultNodes {
		t.Errorf("limits.nodes is %d, and a build's own limit %d", l.Nodes, kust.DefaultNodes)
	}
	if l.Targets < 4_000 || l.Pools < 10_000 || l.Nodes < 2_000*200 {
		t.Errorf("%+v", l)
	}
	// A pool takes some 4 kB, and at most 16 more for user data of its own.
	if all := l.Pools * 20_000; newBudget(l, render.NewShared(nil)).bytes() < int(all)*9/10 {
		t.Errorf("%d pools are more than limits.nodes lets be kept", l.Pools)
	}
}

// A new render counts in place of its target's last one before it takes its place.
func TestRoomCountsWhatWillBe(t *testing.T) {
	kept := func(pools int) *build {
		return &build{result: &render.Kept{Set: intent.Set{Pools: make([]intent.Pool, pools)}}}
	}
	o := newBudget(targetspec.Limits{Pools: 10}.WithDefaults(), render.NewShared(nil))
	a, b := standsFor(nil), standsFor(nil)
	o.setTargets(map[string]*rendered{"a": a, "b": b})
	o.reserve("a", a, kept(4), nil)
	o.reserve("b", b, kept(4), nil)
	next := *a
	o.reserve("a", &next, kept(6), nil)
	o.setTargets(o.renders) // a composition that does not wait for it
	if live := o.live(); o.pools != 10 || len(live) != 2 || len(live[0].Set.Pools)+len(live[1].Set.Pools) != 10 {
		t.Errorf("%d pools are counted", o.pools)
	}
	more := *b
	if o.reserve("b", &more, kept(5), nil); more.over == nil || more.over.others != 6 || more.pools() != 0 {
		t.Errorf("one more than there may be: %+v", more.over)
	}
	o.put("a", a, &next)
	o.put("b", b, &more)
	if o.setTargets(o.renders); o.pools != 6 || len(o.made) != 0 || b.over == nil {
		t.Errorf("%d pools are left, %d in the making", o.pools, len(o.made))
	}
	if o.setTargets(map[string]*rendered{"b": b}); o.pools != 0 || o.fits(b.over) != true {
		t.Errorf("%d pools are left", o.pools)
	}
}

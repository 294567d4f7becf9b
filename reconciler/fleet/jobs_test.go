package fleet

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/tree"
)

// drip is a tree whose large directories are not read on once it is known that they are
// large, before it is let go.
type drip struct {
	tree.Tree
	free chan struct{}
}

func (d drip) ReadFile(path string) ([]byte, error) {
	if strings.HasSuffix(path, "/large-3.yaml") {
		<-d.free
	}
	return d.Tree.ReadFile(path)
}

func advance(t *testing.T, h *harness, ctx context.Context, v View, patience time.Duration) (*Composition, map[string]reconciler.Desired) {
	t.Helper()
	v.ID = "id"
	c, err := h.fleet.Advance(ctx, map[string]View{"s": v}, patience)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]reconciler.Desired{}
	for _, b := range c.Batches {
		for _, d := range b.Targets {
			out[d.Policy.Target] = d
		}
	}
	return c, out
}

// A render that takes long holds up its own target: that stays at its last render,
// under its own commit, and nothing of it is written. All of them together leave a turn
// to one that is quick.
func TestASlowRenderHoldsUpItself(t *testing.T) {
	h := newHarness(t, globbed)
	dirs := []string{"o/quick"}
	for i := range 5 {
		dirs = append(dirs, fmt.Sprintf("o/slow-%d", i))
	}
	first := pools(dirs...)
	for _, dir := range dirs[1:] {
		for i := range 4 {
			first[fmt.Sprintf("%s/large-%d.yaml", dir, i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large-%d}\ndata: {a: %s}\n", i, strings.Repeat("x", 900_000))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	_, before := advance(t, h, ctx, View{Snapshot: snap("r1", first)}, -1)
	changes := map[string]string{}
	for _, dir := range dirs {
		changes[dir+"/pool.yaml"] = first[dir+"/pool.yaml"] + "# changed\n"
	}
	second := snap("r2", with(first, changes))
	second.Subject = "names what a render may tell to be secret"
	d := drip{second.Tree, make(chan struct{})}
	second.Tree = d

	const patience = 5 * time.Second // enough for what is quick
	c, got := advance(t, h, ctx, View{Snapshot: second}, patience)
	if q := got["quick"]; q.Commit.Revision != "r2" || !q.Touched || q.Set == before["quick"].Set || q.Policy.Gates.Waits != "" || q.Commit.Subject != second.Subject || !q.HideSubject {
		t.Errorf("the quick one: %+v", q)
	}
	if s := got["slow-3"]; s.Commit.Revision != "r1" || s.Set != before["slow-3"].Set || s.Whole || s.Err != nil || !strings.HasPrefix(s.Policy.Gates.Waits, "commit r2 has been rendering since") {
		t.Errorf("a slow one: %+v", s)
	}
	if len(c.Rendering) != 5 || c.Rendering[0].Revision != "r2" || c.Rendering[0].Blank || len(c.Revisions[0].Touched) != 6 {
		t.Errorf("rendering %+v, touched %v", c.Rendering, c.Revisions[0].Touched)
	}
	if base := h.fleet.Base(map[string]View{"s": {ID: "id", Snapshot: second}}); base != nil {
		t.Error("pull requests are compared with what is half rendered")
	}

	// The quick one goes on with the next commit.
	changes["o/quick/pool.yaml"] += "# again\n"
	third := snap("r3", with(first, changes))
	d.Tree = third.Tree
	third.Tree = d
	if _, got = advance(t, h, ctx, View{Snapshot: third}, patience); got["quick"].Commit.Revision != "r3" {
		t.Errorf("the quick one waits: %+v", got["quick"].Commit)
	}
	// Behind for long, by one render after the other, a target is applied all the same.
	h.fleet.renders["slow-3"].behind = time.Now().Add(-forLong)
	if _, got = advance(t, h, ctx, View{Snapshot: third}, 0); got["slow-3"].Policy.Gates.Waits != "" || got["slow-4"].Policy.Gates.Waits == "" {
		t.Error("a target that is always behind is never applied")
	}
	close(d.free)
	for len(c.Rendering) > 0 {
		<-h.fleet.Ended()
		c, got = advance(t, h, ctx, View{Snapshot: third}, 0)
	}
	if s := got["slow-3"]; s.Commit.Revision != "r3" || !s.Whole || s.Policy.Gates.Waits != "" {
		t.Errorf("once it is rendered: %+v", s)
	}
	stop()
	h.fleet.Wait()
}

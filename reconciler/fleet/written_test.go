package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/tree"
)

// notes keeps renders in memory.
type notes struct {
	mu    sync.Mutex
	texts map[string][]byte
	keys  map[string][sha256.Size]byte
	put   []string // what was rendered anew
}

func (n *notes) Get(_ context.Context, target string, key [sha256.Size]byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.keys[target] != key {
		return nil
	}
	return n.texts[target]
}

func (n *notes) Put(_ context.Context, target string, key [sha256.Size]byte, text []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.put, n.texts[target], n.keys[target] = append(n.put, target), text, key
}

func (n *notes) Only(targets []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.texts, func(target string, _ []byte) bool { return !slices.Contains(targets, target) })
}

// anew are the targets that were rendered anew since it was last asked.
func (n *notes) anew() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := slices.Sorted(slices.Values(n.put))
	n.put = nil
	return out
}

// A fleet that starts with the renders of an earlier one makes anew those alone whose files or
// settings are others by now, and composes what one without any does.
func TestRendersOutliveTheProcess(t *testing.T) {
	n := &notes{texts: map[string][]byte{}, keys: map[string][sha256.Size]byte{}}
	const targets = "- {name: '{1}', path: 'o/*', region: eu-west-1, vars: {A: a}}\n"
	started := func(targets string, m tree.Map) (*harness, map[string]reconciler.Desired, []string) {
		h := newHarness(t, targets)
		h.fleet.o.Written = n
		c, all := h.compose(View{Snapshot: snap("r1", m)})
		plain := newHarness(t, targets)
		want, without := plain.compose(View{Snapshot: snap("r1", m)})
		if diff := cmp.Diff(want.Revisions, c.Revisions); diff != "" {
			t.Errorf("revisions (-without +with):\n%s", diff)
		}
		for name, d := range without {
			if diff := cmp.Diff(d.Set, all[name].Set) + cmp.Diff(d.Diagnostics, all[name].Diagnostics); diff != "" || d.Whole != all[name].Whole {
				t.Errorf("%s (-without +with):\n%s", name, diff)
			}
		}
		return h, all, n.anew()
	}
	m := pools("o/one", "o/two")
	changed := with(m, map[string]string{"o/two/pool.yaml": m["o/two/pool.yaml"] + "# changed\n"})
	for _, step := range []struct {
		name, targets string
		tree          tree.Map
		want          []string
	}{
		{"nothing is known", targets, m, []string{"one", "two"}},
		{"nothing was changed", targets, m, nil},
		{"a file was changed meanwhile", targets, changed, []string{"two"}},
		{"and back", targets, m, []string{"two"}},
		{"a file more", targets, with(m, map[string]string{"o/one/more.yaml": "# more\n"}), []string{"one"}},
		{"a file less", targets, m, []string{"one"}},
		{"a variable was changed", "- {name: '{1}', path: 'o/*', region: eu-west-1, vars: {A: b}}\n", m, []string{"one", "two"}},
		{"the same with it", "- {name: '{1}', path: 'o/*', region: eu-west-1, vars: {A: b}}\n", m, nil},
	} {
		if _, _, anew := started(step.targets, step.tree); !slices.Equal(anew, step.want) {
			t.Errorf("%s: %v were rendered, want %v", step.name, anew, step.want)
		}
	}
	h, _, _ := started(targets, m)
	n.anew()
	h.compose(View{Snapshot: snap("r2", changed)})
	h.compose(View{Snapshot: snap("r3", m)})
	if anew := n.anew(); !slices.Equal(anew, []string{"two", "two"}) {
		t.Errorf("while the process lives %v are rendered", anew)
	}
	n.texts["one"] = n.texts["one"][:50]
	if _, _, anew := started(targets, m); !slices.Equal(anew, []string{"one"}) {
		t.Errorf("with a cut text %v are rendered", anew)
	}
	h.compose(View{Snapshot: snap("r4", pools("o/two"))})
	if len(n.texts) != 1 || n.texts["two"] == nil {
		t.Errorf("of a target that is gone something is left: %d texts", len(n.texts))
	}
	h.compose(View{Err: errors.New("down")})
	if len(n.texts) != 1 {
		t.Error("a source that cannot be read takes renders away")
	}
}

// What must not be written down takes away what was.
func TestNoSecretIsWrittenDown(t *testing.T) {
	n := &notes{texts: map[string][]byte{}, keys: map[string][sha256.Size]byte{}}
	h := newHarness(t, globbed)
	h.fleet.o.Written = n
	m := pools("o/one")
	h.compose(View{Snapshot: snap("r1", m)})
	if n.texts["one"] == nil {
		t.Fatal("nothing was written")
	}
	m = with(m, map[string]string{"o/one/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {value: hunter2hunter2}\n"})
	h.compose(View{Snapshot: snap("r2", m)})
	if n.texts["one"] != nil {
		t.Errorf("%q was written", n.texts["one"])
	}
}

// Reviewing a proposal neither writes its renders down nor takes away those of what is followed.
func TestAProposalLeavesWhatIsWritten(t *testing.T) {
	n := &notes{texts: map[string][]byte{}, keys: map[string][sha256.Size]byte{}}
	h := newHarness(t, globbed)
	h.fleet.o.Written = n
	m := pools("o/one", "o/two", "o/three")
	base := View{Snapshot: snap("base", m)}
	h.compose(base)
	before := maps.Clone(n.texts)
	n.anew()
	r := h.review(base, Proposal{Snapshot: snap("head", with(m, map[string]string{
		"o/one/pool.yaml": m["o/one/pool.yaml"] + "# changed\n", "o/two/pool.yaml": "", "o/four/pool.yaml": m["o/one/pool.yaml"],
	})), Owner: "pull 1"})
	if len(r.Touched) == 0 {
		t.Fatal("the proposal changes nothing")
	}
	if diff := cmp.Diff(before, n.texts); diff != "" || len(before) != 3 {
		t.Errorf("%v were put (-before +after):\n%s", n.anew(), diff)
	}
}

package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/tree"
)

func TestACommitTouchesWhatItBreaks(t *testing.T) {
	const literal = "- {name: one, path: o/one, region: eu-west-1}\n"
	with := func(m tree.Map, more ...tree.Map) tree.Map {
		m = maps.Clone(m)
		for _, o := range more {
			maps.Copy(m, o)
		}
		return m
	}
	unrelated := tree.Map{"README.md": "words"}
	one, both := pools("o/one"), pools("o/one", "o/two")
	for name, tc := range map[string]struct {
		targets              string
		before, after        tree.Map
		touched, removed     []string
		diagnostic, atTarget string
	}{
		"a globbed target goes":          {globbed, both, one, nil, []string{"two"}, "", ""},
		"a globbed target comes":         {globbed, one, both, []string{"two"}, nil, "", ""},
		"a globbed target is renamed":    {globbed, both, with(one, pools("o/three")), []string{"three"}, []string{"two"}, "", ""},
		"all globbed targets go":         {globbed, both, unrelated, []string{"{1}"}, []string{"one", "two"}, "path-missing", "{1}"},
		"a literal path goes":            {literal, one, unrelated, []string{"one"}, nil, "path-missing", "one"},
		"a name is given twice":          {"- {name: t-x, path: o/one, region: eu-west-1}\n- {name: 't-{1}', path: 'p/*', region: eu-west-1}\n", with(one, pools("p/y")), with(one, pools("p/x", "p/y")), []string{"t-x"}, nil, "duplicate-target", "t-x"},
		"two directories give one name":  {globbed, one, with(one, pools("o/a b"), pools("o/a-b")), []string{"a-b"}, nil, "duplicate-target", "a-b"},
		"a name that begins with a dash": {globbed, one, with(one, pools("o/-x")), []string{"target-" + sum("o/-x")}, nil, "bad-target-name", "target-" + sum("o/-x")},
		"a name that is too long":        {"- {name: '{1}-{2}', path: 'o/*/*', region: eu-west-1}\n", pools("o/one/a"), with(pools("o/one/a"), pools(longPath)), []string{"target-" + sum(longPath)}, nil, "bad-target-name", "target-" + sum(longPath)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.targets)
			revision := func(sha string, m tree.Map) (Revision, map[string]reconciler.Desired) {
				c, got := h.compose(View{Snapshot: snap(sha, m)})
				return c.Revisions[0], got
			}
			revision("r1", tc.before)
			// Each pass over a commit says the same of it.
			for range 2 {
				r, got := revision("r2", tc.after)
				if diff := cmp.Diff(Revision{Source: "s", SHA: "r2", Touched: tc.touched, Removed: tc.removed}, r); diff != "" {
					t.Errorf("revision (-want +got):\n%s", diff)
				}
				if d := got[tc.atTarget]; tc.diagnostic != "" && (len(d.Diagnostics) != 1 || d.Diagnostics[0].Code != tc.diagnostic || d.Set != nil || d.Whole || !d.Touched) {
					t.Errorf("%s: %v, touched %t", tc.atTarget, d.Diagnostics, d.Touched)
				}
			}
			// A commit beside it leaves the fault where it is; the one that mends it is its own.
			var faulty []string
			if tc.diagnostic != "" {
				faulty = tc.touched
			}
			if r, _ := revision("r3", with(tc.after, tree.Map{"LICENSE": "words"})); !slices.Equal(r.Faulty, faulty) || len(r.Touched)+len(r.Removed) > 0 {
				t.Errorf("a commit beside it touches %v, removes %v, leaves a fault in %v", r.Touched, r.Removed, r.Faulty)
			}
			if r, got := revision("r4", tc.before); tc.diagnostic == "duplicate-target" && tc.touched[0] == "t-x" && (!cmp.Equal(r.Touched, tc.touched) || got["t-x"].Set == nil) {
				t.Errorf("the commit that mends it touches %v", r.Touched)
			}
		})
	}
}

// longPath gives a name that is longer than the value of a tag may be.
var longPath = "o/" + strings.Repeat("a", 130) + "/" + strings.Repeat("b", 130)

func sum(path string) string {
	s := sha256.Sum256([]byte(path))
	return hex.EncodeToString(s[:4])
}

// TestWhatCannotBeReadTakesNothingAway: neither does a change of the
// configuration, which is not a commit.
func TestWhatCannotBeReadTakesNothingAway(t *testing.T) {
	h := newHarness(t, globbed)
	h.compose(View{Snapshot: snap("r1", pools("o/one", "o/two"))})
	h.compose(View{Err: errors.New("unreachable")})
	c, _ := h.compose(View{Snapshot: snap("r2", pools("o/one"))})
	if diff := cmp.Diff([]string{"two"}, c.Revisions[0].Removed); diff != "" {
		t.Errorf("after an outage (-want +got):\n%s", diff)
	}
	other := newHarness(t, "- {name: 'x-{1}', path: 'o/*', region: eu-west-1}\n")
	other.fleet.Adopt(h.fleet)
	c, _ = other.compose(View{Snapshot: snap("r2", pools("o/one"))})
	if len(c.Revisions[0].Removed) != 1 { // what r2 took away, it took away
		t.Errorf("after a reload: %v", c.Revisions[0].Removed)
	}
	if c, _ = other.compose(View{Snapshot: snap("r3", pools("o/one"))}); len(c.Revisions[0].Removed) > 0 {
		t.Errorf("the next commit takes away %v", c.Revisions[0].Removed)
	}
}

// TestASourcesFailureIsNoCommitsFault: reports can tell it from one of AWS or of
// the account.
func TestASourcesFailureIsNoCommitsFault(t *testing.T) {
	h := newHarness(t, globbed)
	_, got := h.compose(View{Snapshot: snap("r1", pools("o/one")), Err: errors.New("unreachable")})
	if err := got["one"].Err; !errors.Is(err, plan.ErrSource) || err.Error() != "unreachable" {
		t.Errorf("error %v", err)
	}
	_, got = h.compose(View{})
	if err := got["{1}"].Err; !errors.Is(err, plan.ErrSource) {
		t.Errorf("before the source was read: %v", err)
	}
	h = newHarness(t, "- {name: one, path: o/one, region: eu-west-1, accountID: '999999999999'}\n")
	_, got = h.compose(View{Snapshot: snap("r1", pools("o/one"))})
	if err := got["one"].Err; err == nil || errors.Is(err, plan.ErrSource) {
		t.Errorf("an account that cannot be opened: %v", err)
	}
}

// TestWhatATargetLeftBehindIsReported and stays: nobody wants to own it any more.
func TestWhatATargetLeftBehindIsReported(t *testing.T) {
	h := newHarness(t, "- {name: '{1}', path: 'o/*', region: eu-west-1, prune: {enabled: true, limit: 100%}}\n")
	pass := func(v View) (codes []string) {
		c, _ := h.compose(v)
		for _, b := range c.Batches {
			for _, r := range reconciler.RunBatch(t.Context(), b, reconciler.Apply) {
				if r.Err != nil && v.Err == nil || len(r.Failures()) > 0 {
					t.Fatalf("%s: %v, %v", r.Target, r.Err, r.Failures())
				}
				for _, d := range r.Diagnostics {
					codes = append(codes, d.Code)
				}
			}
		}
		return codes
	}
	both := pools("o/one", "o/two")
	pass(View{Snapshot: snap("r1", both)})
	if codes := pass(View{Snapshot: snap("r1", both)}); slices.Contains(codes, "unknown-target") {
		t.Fatalf("while it is there: %v", codes)
	}
	gone := View{Snapshot: snap("r2", pools("o/one"))}
	for range 2 {
		if codes := pass(gone); !slices.Contains(codes, "unknown-target") {
			t.Errorf("after it is gone: %v", codes)
		}
	}
}

package fleet

import (
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
)

// After a reload a target may stand for another path, repository or set of
// values: what was rendered before must not be applied in its name.
func TestAKeptRenderStandsForItsOwnPathOnly(t *testing.T) {
	made := &build{path: "overlays/dev", source: "0123456789ab", vars: map[string]string{"A": "1"}}
	same := item{path: "overlays/dev", vars: map[string]string{"A": "1"}}
	same.view.ID = "0123456789ab"
	if !made.of(&same) {
		t.Error("the same path, repository and values were taken for others")
	}
	for name, change := range map[string]func(*item){
		"path":       func(it *item) { it.path = "overlays/prod" },
		"repository": func(it *item) { it.view.ID = "ffffffffffff" },
		"values":     func(it *item) { it.vars = nil },
	} {
		other := same
		change(&other)
		if made.of(&other) {
			t.Errorf("a render of another %s was taken for the item's", name)
		}
	}
}

// The fleet forgets what earlier commits wanted, however many there were, and targets
// that are gone leave nothing behind.
func TestRendersOfEarlierCommitsAreForgotten(t *testing.T) {
	h := newHarness(t, globbed)
	big := func(n int) string {
		return fleettest.Pool("pool", `dataSecretName: ""`, "dataSecretName: boot") +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {value: \"#cloud-config\\n# " + strings.Repeat(strconv.Itoa(n)+" ", 60_000) + "\"}\n"
	}
	m := pools("o/stays")
	m["o/changes/pool.yaml"] = big(100)
	h.compose(View{Snapshot: snap("first", m)})
	one := h.fleet.budget.shared.Bytes()
	if one < 200_000 {
		t.Fatalf("one commit's renders are kept in %d bytes", one)
	}
	most := 0
	const commits = 30
	for n := range commits {
		m = with(m, map[string]string{"o/changes/pool.yaml": big(101 + n)})
		h.compose(View{Snapshot: snap(strconv.Itoa(n), m)})
		most = max(most, h.fleet.budget.shared.Bytes())
	}
	if most > 3*one+idle {
		t.Errorf("%d bytes are held, of one commit %d", most, one)
	}
	if commits*one < 3*one+idle {
		t.Fatal("the commits are too small to tell")
	}
	m = with(m, map[string]string{"o/changes/pool.yaml": ""})
	h.compose(View{Snapshot: snap("last", m)})
	h.fleet.budget.swept = -idle // as if there had been enough
	h.fleet.budget.sweep()
	if left := h.fleet.budget.shared.Bytes(); left > 20_000 || len(h.fleet.renders) != 1 {
		t.Errorf("%d bytes and %d renders are left", left, len(h.fleet.renders))
	}
}

package fleet

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
)

// faults are what is told of the targets' dependencies, by target.
func faultsOf(t *testing.T, targets string, v View) map[string]string {
	t.Helper()
	_, got := newHarness(t, targets).compose(v)
	out := map[string]string{}
	for name, d := range got {
		for _, one := range d.Diagnostics {
			if one.Code == "unknown-dependency" || one.Code == "dependency-cycle" {
				if one.Severity != diag.Error || d.Set == nil {
					t.Errorf("%s: %v, and what it wants %v", name, one, d.Set)
				}
				out[name] += one.Summary + "\n"
			}
		}
	}
	return out
}

func TestDependenciesOfExpandedTargets(t *testing.T) {
	const waves = "- {name: 'dev-{1}', path: 'dev/*', region: eu-west-1}\n- {name: 'prod-{1}', path: 'prod/*', region: eu-west-1, dependsOn: ['dev-{1}']}\n"
	const turned = "- {name: '{1}-{2}', path: 'o/*/*', region: eu-west-1, dependsOn: ['{2}-{1}']}\n"
	for name, tc := range map[string]struct {
		targets string
		view    View
		want    map[string]string
	}{
		"each has its own":           {waves, View{Snapshot: snap("r", pools("dev/a", "dev/b", "prod/a"))}, map[string]string{}},
		"one lacks its own":          {waves, View{Snapshot: snap("r", pools("dev/a", "prod/a", "prod/b"))}, map[string]string{"prod-b": "the target prod-b waits for the target dev-b, but no directory of the commit defines that target\n"}},
		"no directory of the first":  {waves, View{Snapshot: snap("r", pools("prod/a"))}, map[string]string{"prod-a": "the target prod-a waits for the target dev-a, but no directory of the commit defines that target\n"}},
		"two that wait for another":  {turned, View{Snapshot: snap("r", pools("o/a/b", "o/b/a", "o/c/c"))}, map[string]string{"a-b": "targets wait for each other: a-b waits for b-a waits for a-b\n", "b-a": "targets wait for each other: a-b waits for b-a waits for a-b\n"}},
		"one of two that would wait": {turned, View{Snapshot: snap("r", pools("o/a/b"))}, map[string]string{"a-b": "the target a-b waits for the target b-a, but no directory of the commit defines that target\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, faultsOf(t, tc.targets, tc.view)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Where a source cannot be read, nobody knows whether the target is there.
func TestADependencyInASourceThatCannotBeRead(t *testing.T) {
	h := newHarness(t, "- {name: 'dev-{1}', path: 'dev/*', region: eu-west-1}\n- {name: 'prod-{1}', path: 'prod/*', region: eu-west-1, dependsOn: ['dev-{1}']}\n")
	h.fleet.o.Config.Targets[0].Source = "other"
	for name, other := range map[string]View{"not read yet": {}, "gone": {Err: errors.New("gone")}} {
		c, err := h.fleet.Compose(t.Context(), map[string]View{"s": {ID: "id", Snapshot: snap("r", pools("prod/a"))}, "other": other})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range c.Batches {
			for _, d := range b.Targets {
				if len(d.Diagnostics) > 0 {
					t.Errorf("%s: %s: %v", name, d.Policy.Target, d.Diagnostics)
				}
			}
		}
		if diff := cmp.Diff([]string{"dev-a"}, c.Conditions["prod-a"].DependsOn); diff != "" {
			t.Errorf("%s: it waits for (-want +got):\n%s", name, diff)
		}
	}
}

// A ring of thousands is told in few words, and in time that its size is no power of.
func TestALargeRing(t *testing.T) {
	const n = 3000
	items, byName := make([]*item, n), map[string]*item{}
	for i := range items {
		items[i] = &item{name: fmt.Sprintf("t%d", i)}
		byName[items[i].name] = items[i]
	}
	for i, it := range items {
		for _, step := range []int{1, 2, 3, n - 1, n / 2} {
			it.waitsFor = append(it.waitsFor, items[(i+step)%n].name)
		}
	}
	found := rings(items, byName)
	in := map[*item]bool{}
	for _, ring := range found {
		for _, it := range ring {
			in[it] = true
		}
	}
	if len(in) != n || len(found) > n {
		t.Errorf("%d rings hold %d of %d", len(found), len(in), n)
	}
}

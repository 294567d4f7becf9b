package factor

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fleet is pools of three kinds of use in clusters.
func fleet(clusters, each int) (out []Pool) {
	for c := range clusters {
		cluster := fmt.Sprintf("c-%d", c)
		for i := range each {
			spec := webSpec(3+i%5, "subnet-"+cluster)
			name := []string{"web", "batch", "gpu"}[i%3]
			spec["for"] = name
			for _, k := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				spec[k] = name + k
			}
			out = append(out, group(fmt.Sprintf("%s-%s-%d", cluster, name, i), cluster, spec, nil))
		}
	}
	return out
}

// TestOnePoolMoreChangesNoName: names of bases, and where pools are, stay.
func TestOnePoolMoreChangesNoName(t *testing.T) {
	pools := fleet(4, 12)
	before := check(t, pools)
	var named []string
	for _, b := range before.Bases {
		named = append(named, b.Name)
	}
	if slices.Sort(named); !slices.Equal(named, []string{"batch", "gpu", "web"}) {
		t.Fatalf("bases %v", named)
	}
	for _, name := range []string{"a-web-new", "zz", "web", "c-0-web", "batch-c-9", "c-0-gpu-base"} {
		spec := webSpec(9, "subnet-x")
		for _, k := range []string{"for", "a", "b", "c", "d", "e", "f", "g", "h"} {
			spec[k] = "web" + k
		}
		after := NewRepository(clustersOf(append(pools[:len(pools):len(pools)], group(name, "c-0", spec, nil))), append(pools[:len(pools):len(pools)], group(name, "c-0", spec, nil)))
		for _, b := range before.Bases {
			if !slices.ContainsFunc(after.Bases, func(x Base) bool { return x.Name == b.Name }) {
				t.Errorf("with %s more, bases are %v", name, after.Bases)
			}
		}
		for pool, at := range before.Pools {
			if after.Pools[pool] != at {
				t.Errorf("with %s more, %s is at %s", name, pool, after.Pools[pool])
			}
		}
	}
}

// TestFilesHaveNamesThatEverybodyTakes: every file system, Git and kustomize.
func TestFilesHaveNamesThatEverybodyTakes(t *testing.T) {
	var pools []Pool
	for _, name := range []string{"con", "com1", "aux", "a.b", "a-b", "a.git", "x", "x.yaml", "x-yaml", "x.secret", "kustomization", "kustomization.yaml", "github.com", "1e3", "true", "null", strings.Repeat("a", 63), strings.Repeat("a", 62) + "b"} {
		pools = append(pools, group(name, "prod", webSpec(len(name), "s"), nil))
	}
	pools = append(pools, group("one", "con", webSpec(1, "s"), nil), group("two", "a.b", webSpec(1, "s"), nil), group("three", "a-b", webSpec(1, "s"), nil))
	r := NewRepository(clustersOf(pools), pools)
	good := regexp.MustCompile(`^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$`)
	seen := map[string]bool{}
	for name := range r.Files {
		for _, element := range strings.Split(name, "/") {
			if base := strings.TrimSuffix(element, path.Ext(element)); !good.MatchString(element) || base == "con" || base == "aux" || base == "com1" || strings.HasSuffix(element, ".git") {
				t.Errorf("%s has a part that is not a name everywhere", name)
			}
		}
		if seen[strings.ToLower(name)] {
			t.Errorf("%s is there twice", name)
		}
		seen[strings.ToLower(name)] = true
	}
	if len(r.Pools) != len(pools) || len(r.Overlays) != 4 {
		t.Errorf("%d pools in %v", len(r.Pools), r.Overlays)
	}
}

// TestManyPools: pools of a cluster that kustomize would take long for are files of their
// own, and the rest share bases however many they are.
func TestManyPools(t *testing.T) {
	pools := append(fleet(20, 90), fleetOf("big", 200)...)
	r := NewRepository(clustersOf(pools), pools)
	if len(r.Bases) != 3 {
		t.Errorf("bases %d", len(r.Bases))
	}
	for _, p := range pools {
		if own := strings.HasSuffix(r.Pools[p.Name], ".yaml"); own != (p.Cluster == "big") {
			t.Fatalf("%s of %s is at %s", p.Name, p.Cluster, r.Pools[p.Name])
		}
	}
	// As many that have nothing in common.
	for i := range pools {
		for j := range 30 {
			pools[i].Objects[1]["spec"].(map[string]any)[fmt.Sprint("key", j, "-", i)] = i
		}
	}
	if r := NewRepository(clustersOf(pools), pools); len(r.Bases) != 0 {
		t.Errorf("bases %d", len(r.Bases))
	}
}

func fleetOf(cluster string, n int) (out []Pool) {
	for i := range n {
		out = append(out, group(fmt.Sprintf("%s-web-%d", cluster, i), cluster, webSpec(i%5, "s"), nil))
	}
	return out
}

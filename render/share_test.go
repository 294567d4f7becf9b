package render_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/tree"
)

// fleetTree has overlays of one base of pools, about 1.2 kB each; an overlay adds a
// label, and where they are renamed, a prefix.
func fleetTree(overlays, pools int, renamed bool) tree.Map {
	var b strings.Builder
	for i := range pools {
		b.WriteString(strings.ReplaceAll(`---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: pool-N}
spec:
  minSize: 1
  maxSize: 30
  availabilityZones: [eu-west-1a, eu-west-1b, eu-west-1c]
  additionalTags: {team: payments, stage: prod, cost-center: "4711", pool: "pool-N"}
  awsLaunchTemplate:
    instanceType: m5.large
    iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io
    ami: {id: ami-0123456789abcdef0}
    rootVolume: {size: 80, type: gp3, encrypted: true}
    additionalSecurityGroups: [{id: sg-0123456789abcdef0}]
  refreshPreferences: {strategy: Rolling, minHealthyPercentage: 90}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: pool-N}
spec:
  clusterName: main
  replicas: 3
  template:
    spec:
      clusterName: main
      version: v1.31.0
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: pool-N}
`, "pool-N", fmt.Sprintf("pool-%d", i)))
	}
	m := tree.Map{
		"base/pools.yaml":         b.String(),
		"base/boot.yaml":          "apiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData:\n  value: |\n    #cloud-config\n" + strings.Repeat("    # a comment of some length\n", 80) + "    runcmd: [ls]\n",
		"base/kustomization.yaml": "resources: [pools.yaml, boot.yaml]\nconfigurations: [names.yaml]\n",
		"base/names.yaml":         "nameReference:\n- kind: AWSMachinePool\n  fieldSpecs: [{kind: MachinePool, path: spec/template/spec/infrastructureRef/name}]\n- kind: Secret\n  fieldSpecs: [{kind: MachinePool, path: spec/template/spec/bootstrap/dataSecretName}]\n",
	}
	for i := range overlays {
		text := fmt.Sprintf("resources: [../../base]\nlabels:\n- pairs: {cluster: c%03d}\n", i)
		if renamed {
			text += fmt.Sprintf("namePrefix: c%03d-\n", i)
		}
		m[fmt.Sprintf("overlays/c%03d/kustomization.yaml", i)] = text
	}
	return m
}

func held() int {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc) //nolint:gosec // far below
}

func keepOverlays(t testing.TB, m tree.Map, overlays int, s *render.Shared) []*render.Kept {
	t.Helper()
	var out []*render.Kept
	for i := range overlays {
		r, err := render.Render(context.Background(), m, fmt.Sprintf("overlays/c%03d", i), render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Diags) > 0 || len(r.Set.Pools) == 0 {
			t.Fatalf("%d pools, %v", len(r.Set.Pools), r.Diags)
		}
		k, err := r.Keep(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, k)
	}
	return out
}

// The memory kept for overlays grows with their differences, not with their base: it was 66 kB a pool and overlay.
func TestKeptOverlaysShareWhatTheyHave(t *testing.T) {
	const overlays, pools = 6, 40
	for _, c := range []struct {
		name    string
		renamed bool
		most    int // bytes a pool and overlay, beyond the first overlay
	}{{"equal but for a label", false, 1500}, {"with names of their own", true, 6000}} {
		t.Run(c.name, func(t *testing.T) {
			m := fleetTree(overlays, pools, c.renamed)
			keepOverlays(t, m, 1, render.NewShared(nil)) // kustomize's own tables, made once
			before := held()
			shared := render.NewShared(nil)
			kept := keepOverlays(t, m, overlays, shared)
			total := held() - before
			each := total / (overlays * pools)
			t.Logf("%d bytes a pool and overlay, %d counted", each, shared.Bytes()/(overlays*pools))
			if each > c.most {
				t.Errorf("%d bytes a pool and overlay, want %d at most", each, c.most)
			}
			if counted := shared.Bytes(); counted < total/2 || counted > 2*total+64<<10 {
				t.Errorf("counted as %d bytes, takes %d", counted, total)
			}
			runtime.KeepAlive(kept)
		})
	}
}

// BenchmarkKept40Overlays is what 40 overlays of a base of 220 kB keep for good.
func BenchmarkKept40Overlays(b *testing.B) {
	for _, renamed := range []bool{false, true} {
		b.Run(fmt.Sprintf("renamed=%t", renamed), func(b *testing.B) {
			m := fleetTree(40, 180, renamed)
			b.ReportMetric(float64(len(m["base/pools.yaml"]))/1e3, "kB-base")
			for range b.N {
				before := held()
				shared := render.NewShared(nil)
				kept := keepOverlays(b, m, 40, shared)
				b.ReportMetric(float64(held()-before)/40/1e3, "kB-kept/overlay")
				runtime.KeepAlive(kept)
				runtime.KeepAlive(shared)
			}
		})
	}
}

// goldenResults renders all goldens.
func goldenResults(t *testing.T) []*render.Result {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []*render.Result
	for _, name := range names {
		g := readGolden(t, name)
		r, err := render.Render(context.Background(), g.tree, g.path, render.Options{Vars: g.vars})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if len(out) < 10 {
		t.Fatalf("%d goldens", len(out))
	}
	return out
}

// A shared value is equal to what it was made of, for all kinds of pools that the tests
// have, and equal sets are one.
func TestSharedIsEqual(t *testing.T) {
	s := render.NewShared(nil)
	for _, r := range goldenResults(t) {
		k, err := r.Keep(s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.Set, k.Set); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(r.Diags, k.Diags); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if r.Reads.Digest() != k.Reads.Digest() {
			t.Error("it has read something else")
		}
		before := s.Bytes()
		again, err := r.Keep(render.NewShared(s))
		if err != nil {
			t.Fatal(err)
		}
		if len(k.Set.Pools) > 0 && &k.Set.Pools[0] != &again.Set.Pools[0] || s.Bytes() != before {
			t.Error("an equal render shares nothing with it")
		}
	}
	if s.Bytes() == 0 {
		t.Fatal("nothing was shared")
	}
}

// Every type below an intent or a diagnostic is one that share knows.
func TestAllTypesCanBeShared(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(at string, v reflect.Type)
	look = func(at string, v reflect.Type) {
		if seen[v] {
			return
		}
		seen[v] = true
		switch v.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Field(i); !f.IsExported() {
					t.Errorf("%s.%s cannot be copied", at, f.Name)
				} else {
					look(at+"."+f.Name, f.Type)
				}
			}
		case reflect.Pointer, reflect.Slice:
			look(at+"[]", v.Elem())
		case reflect.Map:
			if v.Key().Kind() != reflect.String {
				t.Errorf("%s has keys of %s", at, v.Key())
			}
			look(at+"[]", v.Elem())
		default:
			t.Errorf("%s is a %s", at, v)
		}
	}
	look("Set", reflect.TypeFor[intent.Set]())
	look("List", reflect.TypeFor[diag.List]())
	if len(seen) < 40 {
		t.Errorf("looked at %d types", len(seen))
	}
}

// Keep forgets what no render holds any more, and nothing else.
func TestSweep(t *testing.T) {
	m := fleetTree(3, 5, true)
	s := render.NewShared(nil)
	kept := keepOverlays(t, m, 1, s)
	alone := s.Bytes()
	s.Sweep(kept)
	if s.Bytes() != alone {
		t.Errorf("a sweep with nothing to forget: %d of %d bytes", s.Bytes(), alone)
	}
	all := keepOverlays(t, m, 3, s)
	if s.Bytes() < 2*alone {
		t.Fatalf("three overlays take %d, one %d", s.Bytes(), alone)
	}
	if &all[0].Set.Pools[0] != &kept[0].Set.Pools[0] {
		t.Error("the first overlay is not shared with itself")
	}
	s.Sweep(kept)
	if s.Bytes() != alone {
		t.Errorf("%d bytes are left, want %d", s.Bytes(), alone)
	}
	if again := keepOverlays(t, m, 1, s); &again[0].Set.Pools[0] != &kept[0].Set.Pools[0] || s.Bytes() != alone {
		t.Error("the kept overlay is not shared any more")
	}
	s.Sweep(nil)
	if s.Bytes() != 0 {
		t.Errorf("%d bytes of nothing", s.Bytes())
	}
}

// counting counts reads of a tree, which fail once it is broken.
type counting struct {
	tree.Tree
	reads  int
	broken bool
}

func (c *counting) ReadFile(p string) ([]byte, error) {
	if c.reads++; c.broken {
		return nil, fmt.Errorf("read %s: the disk is gone", p)
	}
	return c.Tree.ReadFile(p)
}

// A kept render answers for its origins as the render did, with one build for all
// that is asked at a time, and none for what was asked before.
func TestOriginsOfAKeptRender(t *testing.T) {
	ctx := context.Background()
	m := fleetTree(1, 3, true)
	m["overlays/c000/kustomization.yaml"] += "patches:\n- target: {kind: AWSMachinePool, name: pool-1}\n  patch: '[{\"op\": \"replace\", \"path\": \"/spec/maxSize\", \"value\": 44}]'\n"
	r, err := render.Render(ctx, m, "overlays/c000", render.Options{})
	if err != nil || r.Diags.HasErrors() {
		t.Fatal(err, r.Diags)
	}
	var asked []intent.Question
	for _, p := range r.Set.Pools {
		for _, field := range []intent.Path{{"spec", "maxSize"}, {"spec", "awsLaunchTemplate", "instanceType"}, {"spec", "nowhere"}} {
			asked = append(asked, intent.Question{Object: p.Infrastructure, Paths: []intent.Path{field}})
		}
		asked = append(asked, intent.Question{Object: p.MachinePool, Paths: []intent.Path{{"spec", "nowhere"}, {"spec", "replicas"}}})
	}
	want := r.Origins(ctx, asked)
	if want[0].File != "base/pools.yaml" || want[4].File != "overlays/c000/kustomization.yaml" || want[2].Known() || want[3].File != "base/pools.yaml" {
		t.Fatalf("origins of the render: %v", want)
	}
	k, err := r.Keep(render.NewShared(nil))
	if err != nil {
		t.Fatal(err)
	}
	disk := &counting{Tree: m, broken: true}
	if got := k.Origins(ctx, disk, "overlays/c000", render.Options{}, asked); slicesKnown(got) > 0 {
		t.Errorf("origins of what cannot be read: %v", got)
	}
	disk.broken, disk.reads = false, 0
	if got := k.Origins(intent.Sparing(ctx, 0), disk, "overlays/c000", render.Options{}, asked); slicesKnown(got) > 0 || disk.reads > 0 {
		t.Errorf("origins without a build: %v, after %d reads", got, disk.reads)
	}
	if diff := cmp.Diff(want, k.Origins(ctx, disk, "overlays/c000", render.Options{}, asked)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	first := disk.reads
	if diff := cmp.Diff(want, k.Origins(intent.Sparing(ctx, 0), disk, "overlays/c000", render.Options{}, asked)); diff != "" || disk.reads != first || first == 0 {
		t.Errorf("asked again after %d reads, %d reads later (-want +got):\n%s", first, disk.reads-first, diff)
	}
}

func slicesKnown(list []diag.Position) (n int) {
	for _, at := range list {
		if at.Known() {
			n++
		}
	}
	return n
}

// Union is the same where all of its sets are.
func TestUnionOfReadSets(t *testing.T) {
	m := fleetTree(2, 1, false)
	var sets []reads.Set
	for i := range 2 {
		r, err := render.Render(context.Background(), m, fmt.Sprintf("overlays/c%03d", i), render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, r.Reads)
	}
	u := reads.Union(sets...)
	if u.Len() >= sets[0].Len()+sets[1].Len() || u.Len() <= sets[0].Len() {
		t.Errorf("%d readings of %d and %d", u.Len(), sets[0].Len(), sets[1].Len())
	}
	for _, changed := range []string{"overlays/c000/kustomization.yaml", "overlays/c001/kustomization.yaml", "base/boot.yaml", "README.md", "overlays/c001/Kustomization"} {
		next := tree.Map{}
		for name, text := range m {
			next[name] = text
		}
		next[changed] += "# changed\n"
		want := true
		for _, s := range sets {
			same, err := s.Same(next)
			if err != nil {
				t.Fatal(err)
			}
			want = want && same
		}
		if same, err := u.Same(next); err != nil || same != want {
			t.Errorf("after a change of %s: %t, want %t, %v", changed, same, want, err)
		}
	}
}

// A render that is too large to hold leaves only the digest of its reads; entries that nobody holds make room for it.
func TestAFullTable(t *testing.T) {
	m := fleetTree(3, 5, true)
	s := render.NewShared(nil)
	kept := keepOverlays(t, m, 2, s)
	held := s.Bytes()
	r, err := render.Render(context.Background(), m, "overlays/c002", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var live []*render.Kept
	s.Limit(held+1000, func() []*render.Kept { return live })
	k, err := r.Keep(s)
	var full *render.FullError
	if !errors.As(err, &full) || full.Held != held || full.Limit != held+1000 || full.Bytes < 5000 {
		t.Fatalf("%v of %d", err, held)
	}
	if len(k.Set.Pools) > 0 || k.Reads.Digest() != r.Reads.Digest() || s.Bytes() != held {
		t.Errorf("%d pools are kept, %d bytes of %d", len(k.Set.Pools), s.Bytes(), held)
	}
	live = kept[:1]
	if k, err = r.Keep(s); err != nil || len(k.Set.Pools) != 5 {
		t.Errorf("with room for it: %v", err)
	}
	if again, err := r.Keep(s); err != nil || &again.Set.Pools[0] != &k.Set.Pools[0] {
		t.Errorf("what is held takes no room: %v", err)
	}
}

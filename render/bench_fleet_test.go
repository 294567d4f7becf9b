package render_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/render/tree/treetest"
)

func TestMain(m *testing.M) {
	if worker.Asked() {
		os.Exit(worker.Serve())
	}
	os.Exit(m.Run())
}

// realOverlays is the example repository with so many overlays of its stages, each with a
// prefix, a namespace and a patch of its own.
func realOverlays(tb testing.TB, n int) tree.Map {
	tb.Helper()
	m, root := tree.Map{}, os.DirFS("../example-repo")
	for _, dir := range []string{"base", "pools", "stages"} {
		if err := fs.WalkDir(root, dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := fs.ReadFile(root, p)
			m[p] = string(content)
			return err
		}); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range n {
		dir, stage := fmt.Sprintf("fleet/c%03d", i), []string{"dev", "prod"}[i%2]
		m[dir+"/kustomization.yaml"] = fmt.Sprintf("namePrefix: c%03d-\nnamespace: team%d\nresources: [../../stages/%s]\npatches: [{path: size.yaml}]\nlabels: [{pairs: {cluster: c%03d}}]\n", i, i%10, stage, i)
		m[dir+"/size.yaml"] = fmt.Sprintf("apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: \"${CLUSTER_NAME}-spot-workers\", namespace: fleet}\nspec:\n  maxSize: %d\n  additionalTags: {cluster: c%03d}\n", i+4, i)
	}
	return m
}

func write(tb testing.TB, dir string, m tree.Map) {
	tb.Helper()
	for p, content := range m {
		at := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

// spent is the CPU time that this process and the children that ended have taken.
func spent() time.Duration {
	var sum int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		_ = syscall.Getrusage(who, &u)
		sum += u.Utime.Nano() + u.Stime.Nano()
	}
	return time.Duration(sum)
}

// BenchmarkColdFleet renders 1,000 real overlays with nothing known and keeps them, as a
// daemon that starts does, beside kustomize as a library over the same overlays in the
// same run, two at a time each. Compare CPU times where the machine has other things to do.
func BenchmarkColdFleet(b *testing.B) {
	const overlays = 1000
	m := realOverlays(b, overlays)
	t, dir := treetest.New(m), b.TempDir()
	write(b, dir, m)
	vars := map[string]string{"CLUSTER_NAME": "main", "AWS_REGION": "eu-west-1", "KUBERNETES_VERSION": "v1.34.1"}
	two := func(do func(i int) error) error {
		var g errgroup.Group
		g.SetLimit(2)
		for i := range overlays {
			g.Go(func() error { return do(i) })
		}
		return g.Wait()
	}
	measure := func(cpu, wall *time.Duration, do func() error) {
		from, start := spent(), time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		*cpu, *wall = *cpu+spent()-from, *wall+time.Since(start)
	}
	var ours, oursWall, theirs, theirsWall time.Duration
	worker.Prepare()
	for b.Loop() {
		measure(&theirs, &theirsWall, func() error {
			return two(func(i int) error {
				m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, fmt.Sprintf("fleet/c%03d", i)))
				if err == nil {
					_, err = m.AsYaml()
				}
				return err
			})
		})
		measure(&ours, &oursWall, func() error {
			defer worker.Enable(worker.DefaultLimits)()
			s := render.NewShared(nil)
			return two(func(i int) error {
				k, err := render.Keep(context.Background(), t, fmt.Sprintf("fleet/c%03d", i), render.Options{Vars: vars}, s)
				if err == nil && len(k.Set.Pools) != 2 {
					err = fmt.Errorf("overlay %d has %d pools: %v", i, len(k.Set.Pools), k.Diags)
				}
				return err
			})
		})
	}
	n := float64(b.N)
	b.ReportMetric(ours.Seconds()/n, "weir-cpu-s")
	b.ReportMetric(theirs.Seconds()/n, "krusty-cpu-s")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "cpu-ratio")
	b.ReportMetric(oursWall.Seconds()/theirsWall.Seconds(), "wall-ratio")
}

package kust_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/render/tree/treetest"
)

const overlays = 1000

// buildAll builds every overlay of a fleet on two workers.
func buildAll(t tree.Tree) ([]*kust.Result, error) {
	out := make([]*kust.Result, overlays)
	var g errgroup.Group
	g.SetLimit(2)
	for i := range out {
		g.Go(func() error {
			r, err := kust.Build(context.Background(), t, fmt.Sprintf("overlays/o%d", i), kust.Options{Vars: benchVars})
			if err == nil && len(r.Objects) != 2 {
				err = fmt.Errorf("overlay %d: %v", i, r.Diags)
			}
			out[i] = r
			return err
		})
	}
	return out, g.Wait()
}

// kustomizeAll builds the same overlays with kustomize as a library, from files
// on disk, on two workers.
func kustomizeAll(dir string) error {
	var g errgroup.Group
	g.SetLimit(2)
	for i := range overlays {
		g.Go(func() error {
			m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, fmt.Sprintf("overlays/o%d", i)))
			if err != nil {
				return err
			}
			_, err = m.AsYaml()
			return err
		})
	}
	return g.Wait()
}

// BenchmarkColdAgainstKustomize renders 1,000 overlays with nothing known, beside
// kustomize as a library over the same overlays in the same run. kustomize writes
// YAML and weir substitutes, records its reads and checks for hostile input.
func BenchmarkColdAgainstKustomize(b *testing.B) {
	m := fleet(overlays)
	t := treetest.New(m)
	dir := b.TempDir()
	write(b, dir, m)
	if _, err := kust.Build(context.Background(), t, "overlays/o0", kust.Options{}); err != nil {
		b.Fatal(err) // the schema of Kubernetes is read once for both
	}
	var ours, apart, theirs time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := buildAll(t); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		stop := worker.Enable(worker.DefaultLimits)
		start = time.Now() // the start of two workers is part of it
		if _, err := buildAll(t); err != nil {
			b.Fatal(err)
		}
		apart += time.Since(start)
		stop()
		start = time.Now()
		if err := kustomizeAll(dir); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(start)
	}
	b.ReportMetric(ours.Seconds()/float64(b.N), "weir-s/op")
	b.ReportMetric(apart.Seconds()/float64(b.N), "workers-s/op")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "kustomize-s/op")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
}

// BenchmarkOneOf1000Changed finds the one overlay that a commit changed, and
// renders it anew.
func BenchmarkOneOf1000Changed(b *testing.B) {
	benchmarkChange(b, "overlays/o500/size.yaml", 1)
}

// BenchmarkBaseOf1000Changed renders all overlays anew, for their base changed.
func BenchmarkBaseOf1000Changed(b *testing.B) { benchmarkChange(b, "base/infra.yaml", overlays) }

func benchmarkChange(b *testing.B, file string, want int) {
	m := fleet(overlays)
	have, err := buildAll(treetest.New(m))
	if err != nil {
		b.Fatal(err)
	}
	m[file] += "  minSize: 2\n"
	if file == "base/infra.yaml" {
		m[file] = fleet(1)[file] + "  # changed\n"
	}
	next := treetest.New(m)
	var g errgroup.Group
	g.SetLimit(2)
	for b.Loop() {
		changed := 0
		for i, r := range have {
			same, err := r.Reads.Same(next)
			if err != nil {
				b.Fatal(err)
			}
			if same {
				continue
			}
			changed++
			g.Go(func() error {
				_, err := kust.Build(context.Background(), next, fmt.Sprintf("overlays/o%d", i), kust.Options{Vars: benchVars})
				return err
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
		if changed != want {
			b.Fatalf("%d changed, want %d", changed, want)
		}
	}
}

// BenchmarkMemoryOf1000 reports what stays in memory for each render that is kept.
func BenchmarkMemoryOf1000(b *testing.B) {
	t := treetest.New(fleet(overlays))
	var kept uint64
	for b.Loop() {
		before := heap()
		results, err := buildAll(t)
		if err != nil {
			b.Fatal(err)
		}
		kept += heap() - before
		runtime.KeepAlive(results)
	}
	b.ReportMetric(float64(kept)/float64(b.N)/overlays/1024, "KiB-kept/overlay")
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

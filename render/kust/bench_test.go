package kust_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/render/tree/treetest"
	"golang.org/x/sync/errgroup"
)

func fleet(n int) tree.Map {
	m := tree.Map{
		"base/kustomization.yaml": "resources: [pool.yaml, infra.yaml]\n",
		"base/pool.yaml":          "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: web}\nspec:\n  clusterName: ${CLUSTER}\n  replicas: ${N}\n  template:\n    spec:\n      clusterName: ${CLUSTER}\n      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: web}\n",
		"base/infra.yaml":         "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: web}\nspec:\n  minSize: 1\n  maxSize: 3\n  awsLaunchTemplate:\n    instanceType: t3.large\n    rootVolume: {size: 20, type: gp3}\n",
	}
	for i := range n {
		dir := fmt.Sprintf("overlays/o%d", i)
		m[dir+"/kustomization.yaml"] = fmt.Sprintf("namespace: n%d\nresources: [../../base]\npatches: [{path: size.yaml}]\n", i)
		m[dir+"/size.yaml"] = fmt.Sprintf("apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: web}\nspec:\n  maxSize: %d\n", i+4)
	}
	return m
}

var benchVars = map[string]string{"CLUSTER": "main", "N": "3"}

// BenchmarkBuildInWorker is BenchmarkBuild in a process of its own.
func BenchmarkBuildInWorker(b *testing.B) {
	defer worker.Enable(worker.DefaultLimits)()
	BenchmarkBuild(b)
}

func BenchmarkBuild(b *testing.B) {
	t := treetest.New(fleet(1))
	for b.Loop() {
		r, err := kust.Build(context.Background(), t, "overlays/o0", kust.Options{Vars: benchVars})
		if err != nil || len(r.Objects) != 2 {
			b.Fatal(err, r.Diags)
		}
	}
}

// BenchmarkOneOverlay is one overlay of many pools, that of 1,000 with a prefix, within
// the limits that weir has.
func BenchmarkOneOverlay(b *testing.B) {
	defer worker.Enable(worker.DefaultLimits)()
	for _, n := range []int{100, 500, 1000, 2000} {
		t := treetest.New(treetest.Pools(n, "namespace: other\n"))
		if n == 1000 {
			t = treetest.New(renamedPools(n))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				r, err := kust.Build(context.Background(), t, ".", kust.Options{})
				if err != nil || len(r.Objects) != 2*n {
					b.Fatal(err, r.Diags)
				}
			}
		})
	}
}

func BenchmarkOverlays1000(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			t := treetest.New(fleet(1000))
			for b.Loop() {
				var g errgroup.Group
				g.SetLimit(workers)
				for i := range 1000 {
					g.Go(func() error {
						r, err := kust.Build(context.Background(), t, fmt.Sprintf("overlays/o%d", i), kust.Options{Vars: benchVars})
						if err == nil && (len(r.Objects) != 2 || r.Reads.Len() < 10) {
							err = fmt.Errorf("overlay %d: %d objects, %d lookups, %v", i, len(r.Objects), r.Reads.Len(), r.Diags)
						}
						return err
					})
				}
				if err := g.Wait(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSameOneOf1000Changed(b *testing.B) {
	m := fleet(1000)
	t := treetest.New(m)
	var sets []reads.Set
	for i := range 1000 {
		r, err := kust.Build(context.Background(), t, fmt.Sprintf("overlays/o%d", i), kust.Options{Vars: benchVars})
		if err != nil {
			b.Fatal(err)
		}
		sets = append(sets, r.Reads)
	}
	m["overlays/o500/size.yaml"] += "  minSize: 2\n"
	next := treetest.New(m)
	for b.Loop() {
		changed := 0
		for _, s := range sets {
			same, err := s.Same(next)
			if err != nil {
				b.Fatal(err)
			}
			if !same {
				changed++
			}
		}
		if changed != 1 {
			b.Fatalf("%d changed", changed)
		}
	}
}

func BenchmarkOrigin(b *testing.B) {
	t := treetest.New(fleet(1))
	ref := intent.ObjectRef{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta2", Kind: "AWSMachinePool", Namespace: "n0", Name: "web"}
	for b.Loop() {
		b.StopTimer()
		r, err := kust.Build(context.Background(), t, "overlays/o0", kust.Options{Vars: benchVars})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if at, ok := r.Origin(ref, intent.Path{"spec", "maxSize"}); !ok || at.File != "overlays/o0/size.yaml" {
			b.Fatal(at)
		}
	}
}

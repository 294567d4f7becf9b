// Package disruption shows the effect of a plan's rollouts on the pods of the machines that they replace:
// which disruption budgets currently allow no eviction, and where nothing drains machines.
//
// Read reads a cluster once: first the budgets, and then the pods of the few budgets that allow no eviction.
// Of is pure. A finding holds no step: budgets change every second, and people decide whether a rollout may
// wait for one.
package disruption

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/workload"
)

// Cluster is the cluster to which the machines belong.
type Cluster interface {
	// DisruptionBudgets returns the budgets of all namespaces.
	DisruptionBudgets(ctx context.Context) ([]workload.DisruptionBudget, error)
	// PodsOf returns the pods that a budget selects.
	PodsOf(ctx context.Context, b workload.DisruptionBudget) ([]workload.Pod, error)
}

// Answer is a cluster's answer about its budgets.
type Answer struct {
	// Blocked lists the budgets that allow no eviction, each with the pods that would have to be evicted
	// with their machine.
	Blocked []Blocked
	// Unread is the number of further budgets that allow no eviction and whose pods were not read.
	Unread int
	// Err is the reason why the answer, or a part of it, is missing.
	Err error
}

// Blocked is a budget, and the pods that it protects.
type Blocked struct {
	Budget workload.DisruptionBudget
	Pods   []workload.Pod
}

const (
	// mostBudgets bounds the reads of pods. Each budget that allows no eviction needs one.
	mostBudgets = 50
	parallel    = 4
)

// Read reads a cluster. Errors are in the answer.
func Read(ctx context.Context, c Cluster) (out Answer) {
	all, err := c.DisruptionBudgets(ctx)
	if err != nil {
		return Answer{Err: err}
	}
	all = slices.DeleteFunc(all, func(b workload.DisruptionBudget) bool {
		return b.Counted && (b.Allowed > 0 || b.Expected == 0 && b.Why == "")
	})
	slices.SortFunc(all, func(a, b workload.DisruptionBudget) int { return strings.Compare(a.String(), b.String()) })
	asked := all[:min(len(all), mostBudgets)]
	out.Unread = len(all) - len(asked)
	blocked := make([]Blocked, len(asked))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, b := range asked {
		g.Go(func() error {
			pods, err := c.PodsOf(ctx, b)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				out.Err = err
				return nil
			}
			blocked[i] = Blocked{b, slices.DeleteFunc(pods, func(p workload.Pod) bool { return p.Mirror || p.Owner == "DaemonSet" || !b.Blocks(p) })}
			return nil
		})
	}
	_ = g.Wait() // errors are in the answer
	out.Blocked = slices.DeleteFunc(blocked, func(b Blocked) bool { return len(b.Pods) == 0 })
	return out
}

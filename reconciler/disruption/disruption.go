// Package disruption says what a plan's rollouts mean for the pods on the machines that
// they end: which disruption budgets let none of their pods go, and where nothing asks pods
// to go at all.
//
// Read asks a cluster once, about budgets first and then about the pods of those that let
// none go, which are few. Of is pure. A finding holds no step: budgets change by the
// second, and whether a rollout may wait for one is for people to say.
package disruption

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/workload"
)

// Cluster is the cluster whose nodes the machines are.
type Cluster interface {
	// DisruptionBudgets are those of all namespaces.
	DisruptionBudgets(ctx context.Context) ([]workload.DisruptionBudget, error)
	// PodsOf are the pods that a budget selects.
	PodsOf(ctx context.Context, b workload.DisruptionBudget) ([]workload.Pod, error)
}

// Answer is a cluster's answer about its budgets.
type Answer struct {
	// Blocked are the budgets that let none of their pods go, with the pods that would have
	// to go with their machine.
	Blocked []Blocked
	// Unread is the number of further budgets that let no pod go and whose pods were not read.
	Unread int
	// Err says why all this, or a part of it, is not known.
	Err error
}

// Blocked is a budget and pods that it keeps, by namespace/name.
type Blocked struct {
	Budget workload.DisruptionBudget
	Pods   []workload.Pod
}

const (
	// mostBudgets bounds the reads of pods: one for each budget that lets none go.
	mostBudgets = 50
	parallel    = 4
)

// Read asks a cluster. What fails is in the answer.
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
	_ = g.Wait() // what fails is in the answer
	out.Blocked = slices.DeleteFunc(blocked, func(b Blocked) bool { return len(b.Pods) == 0 })
	return out
}

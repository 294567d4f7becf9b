package reconciler

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
)

// nodesTimeout bounds the read of a workload cluster's nodes: a cluster that does
// not answer must not hold up the pass over its machines.
const nodesTimeout = 10 * time.Second

var errSlow = errors.New("the workload cluster did not answer in time")

// nodes starts to read the nodes of the targets' workload clusters, each cluster
// once; what it returns waits for them and has an entry for each target.
func nodes(ctx context.Context, targets []Desired) func() []*basis.Nodes {
	out := make([]*basis.Nodes, len(targets))
	read := map[Workload]*basis.Nodes{}
	var wg sync.WaitGroup
	for i, t := range targets {
		if t.Workload == nil || t.Set == nil {
			continue
		}
		if read[t.Workload] == nil {
			n := &basis.Nodes{}
			read[t.Workload] = n
			wg.Go(func() { *n = nodesOf(ctx, t.Workload) })
		}
		out[i] = read[t.Workload]
	}
	return func() []*basis.Nodes {
		wg.Wait()
		return out
	}
}

func nodesOf(ctx context.Context, w Workload) basis.Nodes {
	ctx, cancel := context.WithTimeoutCause(ctx, nodesTimeout, errSlow)
	defer cancel()
	list, err := w.Nodes(ctx)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSlow) {
			err = errSlow
		}
		return basis.Nodes{Err: err}
	}
	out := basis.Nodes{ByInstance: make(map[string]basis.Node, len(list))}
	// A client that may list nodes may ask for the version; without an answer it is not
	// known.
	out.APIServer, _ = w.Version(ctx)
	for _, n := range list {
		if n.ProviderID == "" {
			out.Unnamed++
		}
		// aws:///eu-west-1a/i-0123456789abcdef0: Cluster API's machines of other
		// clouds, and nodes whose cloud provider has not been there yet, are not ours.
		if id, ours := strings.CutPrefix(n.ProviderID, "aws://"); ours {
			out.ByInstance[id[strings.LastIndexByte(id, '/')+1:]] = basis.Node{Name: n.Name, UID: n.UID, Ready: n.Ready, Since: n.ReadySince, Created: n.Created, Why: n.Why,
				Cordoned: n.Unschedulable, Draining: n.Annotations[drain.Annotation]}
		}
	}
	return out
}

package reconciler

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// nodesTimeout limits the read of a workload cluster's nodes: a cluster that does not answer must
// not delay the pass.
const nodesTimeout = 10 * time.Second

var errSlow = errors.New("the workload cluster did not answer in time")

// nodes starts to read the nodes of the targets' workload clusters, each cluster once. The returned
// function waits for them and returns an entry for each target.
func nodes(ctx context.Context, targets []Desired) func() []*model.Nodes {
	out := make([]*model.Nodes, len(targets))
	read := map[Workload]*model.Nodes{}
	var wg sync.WaitGroup
	for i, t := range targets {
		if t.Workload == nil || t.Set == nil {
			continue
		}
		if read[t.Workload] == nil {
			n := &model.Nodes{}
			read[t.Workload] = n
			wg.Go(func() { *n = nodesOf(ctx, t.Workload) })
		}
		out[i] = read[t.Workload]
	}
	return func() []*model.Nodes {
		wg.Wait()
		return out
	}
}

// nodesOf reads the nodes of a workload cluster, by the ids of their machines. If the read fails or
// is slow, Err is set.
func nodesOf(ctx context.Context, w Workload) model.Nodes {
	ctx, cancel := context.WithTimeoutCause(ctx, nodesTimeout, errSlow)
	defer cancel()
	list, err := w.Nodes(ctx)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSlow) {
			err = errSlow
		}
		return model.Nodes{Err: err}
	}
	out := model.Nodes{ByInstance: make(map[string]model.Node, len(list))}
	// A client that may list nodes may also read the version. If the read fails, the version is
	// unknown.
	out.APIServer, _ = w.Version(ctx)
	for _, n := range list {
		if n.ProviderID == "" {
			out.Unnamed++
		}
		// An example is aws:///eu-west-1a/i-0123456789abcdef0. Skip machines of other clouds, and
		// nodes that no cloud provider has initialized yet.
		if id, ours := strings.CutPrefix(n.ProviderID, "aws://"); ours {
			out.ByInstance[id[strings.LastIndexByte(id, '/')+1:]] = model.Node{Name: n.Name, UID: n.UID, Ready: n.Ready, Since: n.ReadySince, Created: n.Created, Why: n.Why,
				Cordoned: n.Unschedulable, Draining: n.Annotations[drain.Annotation]}
		}
	}
	return out
}

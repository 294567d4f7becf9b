package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/intent"
)

// answers has AWS's recorded answers to lookups.
type answers map[question]observed.Answer

type question struct {
	lookup  intent.Lookup
	image   string
	cluster intent.Key
	network string
}

func questionOf(r resolve.Request) question {
	return question{r.Lookup, r.Image, r.Cluster.Key, fmt.Sprintf("%+v", r.Network)}
}

func recorded(s *reconciler.PassInputs) answers {
	out := answers{}
	for i, r := range s.Requests {
		out[questionOf(r)] = s.Answers[i]
	}
	return out
}

// Answer implements reconciler.Resolver.
func (a answers) Answer(_ context.Context, requests []resolve.Request) ([]observed.Answer, error) {
	out := make([]observed.Answer, len(requests))
	for i, r := range requests {
		found, known := a[questionOf(r)]
		if !known {
			found = observed.Answer{Problem: "was not requested when weir read AWS", Code: "not-simulated"}
		}
		out[i] = found
	}
	return out, nil
}

// Renew implements reconciler.Resolver.
func (a answers) Renew(time.Time) {}

// cluster simulates the workload cluster of a target. It has the recorded version, and a Ready node for each
// machine in service.
type cluster struct {
	place   *place
	version string
	since   map[string]time.Time
	nodes   []workload.Node
}

func newCluster(p *place, seen *model.Nodes) *cluster {
	c := &cluster{place: p, since: map[string]time.Time{}}
	if seen != nil {
		c.version = seen.APIServer
	}
	p.inputs.State = p.stage.Inputs.State
	c.joinNodes(p.clock.Now())
	return c
}

// joinNodes adds nodes for the machines that were in service at the last pass.
func (c *cluster) joinNodes(now time.Time) {
	c.nodes = nil
	for _, g := range c.place.inputs.State.Groups {
		for _, i := range g.Instances {
			if i.LifecycleState != "InService" {
				continue
			}
			if c.since[i.ID].IsZero() {
				c.since[i.ID] = now
			}
			c.nodes = append(c.nodes, workload.Node{Name: i.ID, UID: i.ID, ProviderID: "aws:///" + i.Zone + "/" + i.ID, Ready: true, ReadySince: c.since[i.ID], Created: c.since[i.ID]})
		}
	}
}

// Nodes implements reconciler.Workload.
func (c *cluster) Nodes(context.Context) ([]workload.Node, error) { return c.nodes, nil }

// Version implements reconciler.Workload.
func (c *cluster) Version(context.Context) (string, error) { return c.version, nil }

// DisruptionBudgets implements reconciler.Workload. The simulation has no budgets.
func (c *cluster) DisruptionBudgets(context.Context) ([]workload.DisruptionBudget, error) {
	return nil, nil
}

// PodsOf implements reconciler.Workload.
func (c *cluster) PodsOf(context.Context, workload.DisruptionBudget) ([]workload.Pod, error) {
	return nil, nil
}

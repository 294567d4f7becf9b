package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// supportedSkew is the number of minor versions by which a kubelet may be older than its API server
// ("Version Skew Policy" of Kubernetes, since 1.28).
const supportedSkew = 3

// apiServer returns the Kubernetes version of the API servers that a pool's machines join, "" if
// unknown.
func apiServer(in model.Input, pool *intent.Pool) string {
	if cluster := in.ClusterOf(pool); cluster != nil {
		return cluster.Version
	}
	if in.Nodes != nil {
		return in.Nodes.APIServer
	}
	return ""
}

// awaitsCluster reports whether EKS is still creating the pool's cluster. The pool cannot be
// planned yet then, so awaitsCluster adds one held step for the work to come.
func awaitsCluster(c *model.Work, pool *intent.Pool) bool {
	why := c.In.BeingMade(pool)
	if why == "" {
		return false
	}
	c.Note(diag.Info, pool, nil, "cluster-not-ready", why+"; the pool is made once it is ACTIVE", "")
	s := step.Step{Verb: step.Create, Reason: "it waits for its cluster", Held: step.HeldControlPlane, HeldReason: why}
	if pool.Group != nil {
		s.Resource, s.Name = step.AutoScalingGroup, pool.Group.Name
	} else {
		s.Resource, s.Name = step.ManagedNodegroup, pool.Nodegroup.Name
	}
	if c.In.Exists(pool) {
		s.Verb = step.Update
	}
	c.Pool.Waits = true
	c.Step(pool, s)
	return true
}

// holdNewer holds the steps of a pool that would start machines with kubelets newer than their API
// servers.
func holdNewer(c *model.Work, pool *intent.Pool, steps []step.Step) {
	has := apiServer(*c.In, pool)
	wanted := pool.Version
	if pool.Nodegroup != nil && wanted == "" {
		wanted = pool.Nodegroup.Version
	}
	server, kubelet := model.MinorOf(has), model.MinorOf(wanted)
	if has == "" && kubelet >= 0 {
		noteUnread(c, pool, wanted)
		noteUnknown(c, pool, wanted, steps)
	}
	if server < 0 || kubelet < 0 {
		return
	}
	if kubelet < server-supportedSkew {
		c.Note(diag.Warning, pool, nil, "kubelet-too-old", "the pool is on Kubernetes "+wanted+" and its API servers are on "+has+": kubelets may be "+
			strconv.Itoa(supportedSkew)+" minor versions older, not "+strconv.Itoa(server-kubelet), "")
	}
	if kubelet <= server {
		return
	}
	running, held := c.In.Exists(pool), false
	for i := range steps {
		s := &steps[i]
		if s.Pool != pool.Key.String() || s.Held != "" || running && !s.LaunchesNewer(c.Levels) {
			continue
		}
		s.Held, s.HeldReason = step.HeldControlPlane, "the API servers are on Kubernetes "+has
		held = true
	}
	if held {
		c.Note(diag.Info, pool, nil, "waits-for-control-plane", "the pool wants Kubernetes "+wanted+" and waits for its API servers, which are on "+has, "")
	}
}

// noteUnread reports that weir cannot read the version of the API servers of a group's EKS cluster.
// It adds nothing for a nodegroup, for which this is an error anyway.
func noteUnread(c *model.Work, pool *intent.Pool, wanted string) {
	a := c.In.Answers[pool.ControlPlane]
	if pool.ControlPlane.Kind == "" || a.Code != "access-denied" && a.Code != "lookup-refused" {
		return
	}
	c.Note(diag.Warning, pool, nil, "control-plane-unread", "weir cannot read the EKS cluster "+pool.ControlPlane.Name+", so nothing holds the pool's machines on Kubernetes "+wanted+
		" back while its API servers are older or still being made: "+a.Problem, "")
}

// noteUnknown reports that the version of the API servers is unknown, so weir cannot delay an
// upgrade until they are upgraded: no EKS cluster is named, and no kubeconfig gives the version.
func noteUnknown(c *model.Work, pool *intent.Pool, wanted string, steps []step.Step) {
	if pool.ControlPlane.Kind != "" || pool.Nodegroup != nil || !c.In.Exists(pool) || !slices.ContainsFunc(steps, func(s step.Step) bool { return changesImage(s, pool, c.Levels) }) {
		return
	}
	why := "the target has no kubeconfigFile"
	switch {
	case c.In.Policy.OwnTargetOnly:
		why = "a plan of a directory reads no cluster"
	case c.In.Nodes != nil && c.In.Nodes.Err != nil:
		why = "its cluster could not be read: " + c.In.Nodes.Err.Error()
	case c.In.Nodes != nil:
		why = "its cluster did not answer with a version"
	}
	c.Note(diag.Info, pool, nil, "control-plane-unknown", "weir cannot wait for the control plane before it starts machines of Kubernetes "+wanted+", because it does not know the version of the API servers: "+why, diag.Hint("control-plane-unknown"))
}

// changesImage reports whether a step starts machines with another image or other bootstrap data,
// as an upgrade of Kubernetes does.
func changesImage(s step.Step, pool *intent.Pool, decides bool) bool {
	return s.Pool == pool.Key.String() && s.LaunchesNewer(decides) && slices.ContainsFunc(s.Changes, func(ch step.Change) bool {
		field := strings.ToLower(ch.Field)
		return strings.Contains(field, "ami") || strings.Contains(field, "image") || strings.Contains(field, "userdata")
	})
}

package asg

import (
	"slices"
	"sort"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// processes are the processes of a group that can be suspended.
func processes() []string {
	return []string{"AZRebalance", "AddToLoadBalancer", "AlarmNotification", "HealthCheck", "InstanceRefresh",
		"Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate"}
}

type processesInput struct {
	name      string
	processes []string
}

func parseProcesses(p *wire.Params) processesInput {
	in := processesInput{name: nameOf(p), processes: p.Strings("ScalingProcesses")}
	for _, process := range in.processes {
		if !slices.Contains(processes(), process) {
			p.Reject(wire.Fail("ValidationError", "Invalid process type: %s", process))
		}
	}
	if len(in.processes) == 0 {
		in.processes = processes()
	}
	return in
}

func suspendProcesses(rq *request, in processesInput) error {
	g, err := rq.Region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	for _, process := range in.processes {
		if !g.suspended(process) {
			g.Suspended = append(g.Suspended, suspension{process, "User suspended at " + rq.Region.Now().Format(activityTime)})
		}
	}
	sort.Slice(g.Suspended, func(i, j int) bool { return g.Suspended[i].Process < g.Suspended[j].Process })
	return nil
}

func resumeProcesses(rq *request, in processesInput) error {
	g, err := rq.Region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	var left []suspension
	for _, s := range g.Suspended {
		if !slices.Contains(in.processes, s.Process) {
			left = append(left, s)
		}
	}
	g.Suspended = left
	rq.Region.RetryNow(g)
	return nil
}

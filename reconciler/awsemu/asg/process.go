package asg

import (
	"slices"
	"sort"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// processes returns the processes of a group that can be suspended.
func processes() []string {
	return []string{"AZRebalance", "AddToLoadBalancer", "AlarmNotification", "HealthCheck", "InstanceRefresh",
		"Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate"}
}

func describeProcessTypes(rq *request, _ struct{}) error {
	writeEach(&rq.XML, "Processes", "ProcessName", processes())
	return nil
}

// writeEach writes a list of structures with one member.
func writeEach(w *wire.XML, list, member string, values []string) {
	w.Open(list)
	for _, v := range values {
		w.Open("member")
		w.Text(member, v)
		w.Close("member")
	}
	w.Close(list)
}

// processesInput names processes. An empty list means all.
type processesInput struct {
	groupName
	ScalingProcesses []string
}

func (in *processesInput) Check() error {
	for _, process := range in.ScalingProcesses {
		if !slices.Contains(processes(), process) {
			return invalid("Invalid process type: %s", process)
		}
	}
	if len(in.ScalingProcesses) == 0 {
		in.ScalingProcesses = processes()
	}
	return nil
}

func suspendProcesses(rq *request, in processesInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	for _, process := range in.ScalingProcesses {
		if !g.suspended(process) {
			g.Suspended = append(g.Suspended, suspension{process, "User suspended at " + rq.Region.Now().Format(activityTime)})
		}
	}
	sort.Slice(g.Suspended, func(i, j int) bool { return g.Suspended[i].Process < g.Suspended[j].Process })
	return nil
}

func resumeProcesses(rq *request, in processesInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	var left []suspension
	for _, s := range g.Suspended {
		if !slices.Contains(in.ScalingProcesses, s.Process) {
			left = append(left, s)
		}
	}
	g.Suspended = left
	rq.Region.RetryNow(g)
	return nil
}

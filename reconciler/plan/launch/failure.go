package launch

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	// FailureLaunch is the failure of a pool whose machines AWS cannot launch.
	FailureLaunch = "launch-failed"
	// ReasonPending is the reason of the condition Ready if machines have been starting for at
	// least PendingLate.
	ReasonPending = "MachinesPending"
	// PendingLate is the time that a machine may take to enter service before weir requests from
	// AWS what it waits for, and reports that.
	PendingLate = 5 * time.Minute
	// EKSLaunchHook is EKS's own hook of the groups behind managed nodegroups.
	// Assumed of AWS: nodegroup-launch-hook.
	EKSLaunchHook = "Launch-LC-Hook"
	// pendingNamed is the number of machines that a message names.
	pendingNamed = 3
)

// Short returns the groups of several targets that have fewer machines in service than they want.
// AWS reports the reasons.
func Short(inputs []model.Input) []string {
	var out []string
	for _, in := range inputs {
		if in.Set == nil || in.State == nil {
			continue
		}
		for i := range in.Set.Pools {
			for _, name := range in.GroupsOf(&in.Set.Pools[i]) {
				g, found := in.State.Groups[name]
				if found && !g.Deleting && g.Tags[observed.TagOwner].Value == in.Policy.Instance && g.Short() {
					out = append(out, name)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Failure explains why machines of a pool do not start, and identifies the cause. Both are "" if
// AWS reports nothing. An earlier failed launch does not matter once the machine is starting,
// unless machines start and end again and again.
func Failure(in model.Input, pool *intent.Pool) (text, cause string) {
	for _, name := range in.GroupsOf(pool) {
		g, f := in.State.Groups[name], in.State.Launches[name].Failure
		if f.Message == "" || !g.BelowDesired() && (!f.Started || !g.Short()) {
			continue
		}
		text = "AWS launches no machine: "
		if f.Started {
			text = "machines end before they are in service: "
		}
		text += plainLaunch(f.Message)
		if hint := Hint(f.Message); hint != "" {
			text = strings.TrimSuffix(text, ".") + "; " + hint
		}
		return text, CauseOf(f.Message)
	}
	return "", ""
}

// PendingReason explains why machines of a pool are still not in service at least PendingLate after their
// launch. It returns an empty text if no machine is that late.
func PendingReason(in model.Input, pool *intent.Pool) string {
	for _, name := range in.GroupsOf(pool) {
		g, since := in.State.Groups[name], in.State.Launches[name].Since
		if since.IsZero() || in.Now.Sub(since) < PendingLate {
			continue
		}
		var waiting, starting []string
		for _, i := range g.Instances {
			switch {
			case i.AwaitsHook():
				waiting = append(waiting, i.ID)
			case i.Coming():
				starting = append(starting, i.ID)
			}
		}
		began := "the oldest launch started at " + clockTime(since) + ": "
		switch {
		case len(waiting) > 0:
			return began + someOf(waiting) + " in Pending:Wait until " + hooksAwaited(in, name, since)
		case len(starting) > 0:
			return began + someOf(starting) + " in Pending, so EC2 has not started it or its load balancer has not accepted it: aws ec2 describe-instances gives its state and the reason"
		}
	}
	return ""
}

// hooksAwaited describes what completes the launching hooks of a group, and what happens to
// machines if nothing does.
func hooksAwaited(in model.Input, group string, since time.Time) string {
	var hooks []intent.LifecycleHook
	for _, h := range in.State.Hooks[group].Hooks {
		if h.LifecycleTransition == "autoscaling:EC2_INSTANCE_LAUNCHING" {
			hooks = append(hooks, h)
		}
	}
	complete := "; aws autoscaling complete-lifecycle-action does that by hand"
	if len(hooks) == 0 {
		return "something completes the group's launching lifecycle hook" + complete
	}
	var words []string
	for _, h := range hooks {
		then := "AWS ends the machine"
		if h.DefaultResult == "CONTINUE" {
			then = "AWS puts it into service anyway"
		}
		who := "something completes the lifecycle hook "
		if h.Name == EKSLaunchHook {
			who, complete = "its node has joined the cluster and EKS completes the lifecycle hook ", "; look at the bootstrap data, the node role and its access to the cluster, and the route to the cluster's endpoint"
		}
		until := since.Add(time.Duration(h.HeartbeatTimeout) * time.Second)
		words = append(words, who+observed.Quote(h.Name)+"; from about "+clockTime(until)+", if it sends no heartbeat, "+then+" ("+h.DefaultResult+")")
	}
	return strings.Join(words, ", and ") + complete
}

func clockTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// someOf lists machines, up to pendingNamed of them.
func someOf(ids []string) string {
	if n := len(ids); n > pendingNamed {
		return strings.Join(ids[:pendingNamed], ", ") + " and " + strconv.Itoa(n-pendingNamed) + " more are"
	}
	if len(ids) > 1 {
		return strings.Join(ids, ", ") + " are"
	}
	return ids[0] + " is"
}

// Watched returns the groups of several targets whose failed launches gates need.
func Watched(inputs []model.Input) []string {
	var out []string
	for _, in := range inputs {
		if in.Set == nil || in.State == nil || !in.Policy.Gates.Activities {
			continue
		}
		for i := range in.Set.Pools {
			if pool := &in.Set.Pools[i]; in.Policy.Gates.Rollouts[pool.Key.String()].Watched {
				for _, name := range in.GroupsOf(pool) {
					if _, found := in.State.Groups[name]; found {
						out = append(out, name)
					}
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

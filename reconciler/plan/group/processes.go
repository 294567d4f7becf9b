package group

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

func suspendedMarks(processes []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(processes))), " ")
}

// SuspendedByWeir returns the suspended processes of a group that weir suspended.
func SuspendedByWeir(g observed.Group) []string {
	return slices.DeleteFunc(strings.Fields(g.Tags[observed.TagSuspended].Value), func(p string) bool { return !slices.Contains(g.SuspendedProcesses, p) })
}

func declaredSuspended(g *intent.Group) []string {
	var out []string
	for _, p := range g.SuspendedProcesses {
		if p.Suspended {
			out = append(out, p.Name)
		}
	}
	return out
}

// updateProcesses plans the processes of a group, in an order that can be interrupted anywhere: a
// process is recorded before it is suspended, and resumed before its record is removed.
func (c Planner) updateProcesses(pool *intent.Pool, have observed.Group) {
	s := step.SetProcesses{Group: have.Name}
	var changes []step.Change
	set := func(list *[]string, process string, to bool) {
		*list = append(*list, process)
		changes = append(changes, step.Change{Field: "suspendProcesses." + process, From: !to, To: to,
			Object: pool.Infrastructure, Path: intent.Path{"spec", "suspendProcesses"}})
	}
	ours := SuspendedByWeir(have)
	record, declared := []string{}, map[string]bool{}
	for _, p := range pool.Group.SuspendedProcesses {
		declared[p.Name] = true
		is := slices.Contains(have.SuspendedProcesses, p.Name)
		switch {
		case p.Suspended && !is:
			set(&s.Suspend, p.Name, true)
		case !p.Suspended && is:
			set(&s.Resume, p.Name, false)
		}
		if p.Suspended && (!is || slices.Contains(ours, p.Name)) {
			record = append(record, p.Name)
		}
	}
	for _, p := range ours {
		if !declared[p] {
			set(&s.Resume, p, false)
		}
	}
	slices.Sort(s.Resume)
	recorded := have.Tags[observed.TagSuspended].Value
	if len(s.Suspend) > 0 {
		recorded = c.recordProcesses(pool, have.Name, recorded, suspendedMarks(append(ours, record...)))
	}
	if len(changes) > 0 {
		c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: have.Name, Reason: "suspended processes differ", Changes: changes, Do: s})
	}
	c.recordProcesses(pool, have.Name, recorded, suspendedMarks(record))
}

// recordProcesses plans the tag's new value, and returns it.
func (c Planner) recordProcesses(pool *intent.Pool, group, from, to string) string {
	if from != to {
		c.Step(pool, recordStep(pool, group, observed.TagSuspended, "suspendProcesses", "the record of the processes that weir suspends differs", from, to))
	}
	return to
}

// takingProcesses returns the tags for an adopted group, with a record of the processes that its
// former owner suspended for the same manifests.
func takingProcesses(want map[string]string, have observed.Group, pool *intent.Pool) map[string]string {
	_, recorded := have.Tags[observed.TagSuspended]
	taken := slices.DeleteFunc(declaredSuspended(pool.Group), func(p string) bool { return !slices.Contains(have.SuspendedProcesses, p) })
	if recorded || len(taken) == 0 || !model.HasCAPATag(have.Tags) {
		return want
	}
	return observed.WithTags(want, map[string]string{observed.TagSuspended: suspendedMarks(taken)})
}

// CodeProcessSuspended is the diagnostic code for a suspended process that prevents machines from
// being replaced, started or ended.
const CodeProcessSuspended = "process-suspended"

// nameSuspensions reports the suspended processes of a group that block a rollout or a change of
// its size, and who can resume them. Source: user guide of Auto Scaling, "Understand how suspending
// processes affects other processes".
func (c Planner) nameSuspensions(pool *intent.Pool, g observed.Group, rolls bool) {
	if len(g.SuspendedProcesses) == 0 {
		return
	}
	staying := int32(0)
	for _, i := range g.Instances {
		if i.Counts() {
			staying++
		}
	}
	blocks := map[string]string{}
	if staying < g.DesiredInstances() {
		blocks["Launch"] = "no machine starts"
	}
	if staying > g.DesiredInstances() {
		blocks["Terminate"] = "no machine ends"
	}
	if rolls {
		for _, p := range []string{"InstanceRefresh", "Launch", "ReplaceUnhealthy", "Terminate"} {
			blocks[p] = "its rollout cannot continue"
		}
	}
	ours := SuspendedByWeir(g)
	for _, p := range g.SuspendedProcesses {
		effect := blocks[p]
		if effect == "" {
			continue
		}
		who, end := "somebody suspended it outside Git", "the program or person that suspended it can resume it, or run: aws autoscaling resume-processes --auto-scaling-group-name "+observed.ShellWord(g.Name)+" --scaling-processes "+p
		path := intent.Path{"spec"}
		switch {
		case pool.Group == nil:
		case slices.Contains(declaredSuspended(pool.Group), p):
			who, end, path = "Git suspends it", "remove it from spec.suspendProcesses in Git", intent.Path{"spec", "suspendProcesses"}
		case slices.Contains(ours, p):
			who, end = "weir suspended it, and Git no longer does", "weir resumes it as soon as nothing holds the pool's steps"
		default:
			end += "; to make weir resume it, write false for it below spec.suspendProcesses.processes"
		}
		c.Note(diag.Warning, pool, path, CodeProcessSuspended, "the process "+p+" of the group "+g.Name+" is suspended, so "+effect+": "+who, end)
	}
}

// NameBehind is nameSuspensions for the groups behind a nodegroup.
func (c Planner) NameBehind(pool *intent.Pool, n observed.Nodegroup) {
	for _, name := range n.GroupNames {
		if g, known := c.In.State.Groups[name]; known {
			g.SuspendedProcesses = slices.DeleteFunc(slices.Clone(g.SuspendedProcesses), func(p string) bool { return p != "Launch" && p != "Terminate" })
			c.nameSuspensions(pool, g, n.Status == "UPDATING")
		}
	}
}

package plan

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// deleting returns the status of the target's pools that are no longer in Git and are being
// deleted: by AWS already, or by a step of the plan.
func deleting(in model.Input, p *Plan) []PoolStatus {
	if in.Index == nil {
		in.Index = model.NewIndex(in.State)
	}
	mine := in.Mine()
	planned := map[string]bool{}
	for _, s := range p.Steps {
		if s.Verb == step.Delete && s.Held == "" && !s.Later {
			planned[string(s.Resource)+" "+s.Name] = true
		}
	}
	var out []PoolStatus
	for _, name := range mine.Groups {
		g := in.State.Groups[name]
		if _, behind := g.Tags[observed.TagNodegroup]; behind || !g.Deleting && !planned[string(step.AutoScalingGroup)+" "+name] {
			continue
		}
		s := deletedPool(in, intent.GroupPool, observed.GroupTagValues(g.Tags))
		s.LaunchTemplateVersion = g.Template.Version
		s.LaunchTemplateID = g.Template.ID
		s.addEnding(in, g, "its group is being deleted")
		s.Conditions = append(s.Conditions, Condition{Type: conditionGroup, Status: "False", Severity: "Info", Reason: "ASGDeletionInProgress"})
		out = append(out, s)
	}
	for _, name := range mine.Nodegroups {
		n := in.State.Nodegroups[name]
		if n.Status != "DELETING" && !planned[string(step.ManagedNodegroup)+" "+name.Name] {
			continue
		}
		s := deletedPool(in, intent.NodegroupPool, n.Tags)
		s.LaunchTemplateVersion = n.Template.Version
		for _, g := range n.GroupNames {
			s.addEnding(in, in.State.Groups[g], "its nodegroup is being deleted")
		}
		s.Conditions = append(s.Conditions, Condition{Type: conditionNodegroup, Status: "False", Severity: "Info", Reason: "Deleting"})
		out = append(out, s)
	}
	// A pool that was replaced under another name is still in Git.
	wanted := map[string]bool{}
	if len(out) > 0 {
		for i := range in.Set.Pools {
			wanted[in.Set.Pools[i].Key.String()] = true
		}
	}
	out = slices.DeleteFunc(out, func(s PoolStatus) bool { return wanted[s.Namespace+"/"+s.Name] })
	for i := range out {
		slices.Sort(out[i].ProviderIDList)
		out[i].sortInstances()
		out[i].Replicas = int32(len(out[i].ProviderIDList))
	}
	return out
}

// addEnding lists the instances of a group that is being deleted. reason is a further reason for each.
func (s *PoolStatus) addEnding(in model.Input, g observed.Group, reason string) {
	from := len(s.Instances)
	s.addInstances(in, g.Template.Name, g.Instances, launchSettings{})
	for k := range s.Instances[from:] {
		i := &s.Instances[from+k]
		s.ProviderIDList = append(s.ProviderIDList, "aws:///"+i.Zone+"/"+i.ID)
		if i.Why != "" {
			i.Why += "; "
		}
		i.Why += reason
	}
}

// deletedPool returns the status of a pool that exists only in AWS.
func deletedPool(in model.Input, kind intent.PoolKind, tags map[string]string) PoolStatus {
	s := PoolStatus{
		Kind: kind, Target: in.Policy.Target, Phase: PhaseDeleting, ReadyFrom: "InService", ProviderIDList: []string{}, BootstrapReady: true,
		Conditions: []Condition{{Type: conditionReady, Status: "False", Severity: "Info", Reason: "Deleting"}},
	}
	s.Namespace, s.Name, _ = strings.Cut(tags[observed.TagPool], "/")
	s.Cluster = ClusterIn(tags)
	return s
}

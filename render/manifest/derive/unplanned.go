package derive

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// halves reports whether a render has only one half of its pools, as a base may: MachinePools for AWS without
// infrastructure pools, or the reverse.
func halves(x *kinds.Index) bool {
	machinePools, infrastructure := 0, len(x.Pools)+len(x.ManagedPools)
	for _, mp := range x.MachinePools {
		if kinds.IsPoolKind(mp.Spec.Template.Spec.InfrastructureRef.Kind) {
			machinePools++
		}
	}
	return machinePools == 0 && len(x.MachinePools) == 0 || infrastructure == 0
}

// useMisread marks the infrastructure pools of misspelled MachinePools as used, so that one mistake is one
// finding.
func (b *Builder) useMisread() {
	for i := range b.index.Misread {
		m := &b.index.Misread[i]
		if m.IsInfrastructure() || !m.IsPool() {
			continue
		}
		key := intent.Key{Namespace: m.Ref.Namespace, Name: m.Text(infrastructureName...)}
		if o, ok := b.index.Pools[key]; ok {
			b.used[o.Ref()] = m.Ref
		}
		if o, ok := b.index.ManagedPools[key]; ok {
			b.used[o.Ref()] = m.Ref
		}
	}
}

var infrastructureName = path("spec", "template", "spec", "infrastructureRef", "name")

// unplanned returns the objects of the render that are in no pool of the set.
func (b *Builder) unplanned() []intent.Unplanned {
	u := &unplanned{b: b, planned: map[intent.ObjectRef]bool{}, by: map[intent.Key]int{}, errors: map[intent.ObjectRef]bool{}}
	for _, f := range b.faults.List {
		if f.Severity == diag.Error {
			u.errors[f.Ref] = true
		}
	}
	for i := range b.set.Pools {
		p := &b.set.Pools[i]
		u.planned[p.MachinePool], u.planned[p.Infrastructure] = true, true
		if p.LaunchConfig != nil {
			u.planned[p.LaunchConfig.Source] = true
		}
	}
	for _, mp := range b.index.MachinePools {
		t := &mp.Spec.Template.Spec
		u.machinePool(mp.Source, mp.Spec.ClusterName, t.InfrastructureRef.Kind, t.InfrastructureRef.Name, t.Bootstrap.ConfigRef)
	}
	for i := range b.index.Misread {
		if m := &b.index.Misread[i]; m.IsPool() && !m.IsInfrastructure() {
			u.machinePool(m.Object, m.Text("spec", "clusterName"), m.Text("spec", "template", "spec", "infrastructureRef", "kind"), m.Text(infrastructureName...), nil)
		}
	}
	for _, o := range b.index.Pools.Sorted() {
		u.infrastructure(o.Source, intent.GroupPool, o.Spec.LaunchConfigRef)
	}
	for _, o := range b.index.ManagedPools.Sorted() {
		u.infrastructure(o.Source, intent.NodegroupPool, o.Spec.LaunchConfigRef)
	}
	for i := range b.index.Misread {
		m := &b.index.Misread[i]
		switch {
		case m.IsInfrastructure():
			u.infrastructure(m.Object, intent.PoolKind(m.Meant), &kinds.LaunchConfigRef{Kind: kinds.KindLaunchConfigTemplate, Name: m.Text("spec", "launchConfigRef", "name")})
		case kinds.IsLaunchConfig(m.Meant):
			u.launchConfig(m.Ref, m.Meant)
		}
	}
	for _, ref := range slices.Concat(refsOf(b.index.LaunchConfigs), refsOf(b.index.LaunchConfigTemplates)) {
		u.launchConfig(ref, ref.Kind)
	}
	return u.out
}

// unplanned collects objects that are in no pool.
type unplanned struct {
	b       *Builder
	planned map[intent.ObjectRef]bool
	// by has the indexes in out by namespace and name of the infrastructure pools that a MachinePool refers
	// to, or shares its name with.
	by  map[intent.Key]int
	out []intent.Unplanned
	// errors has the objects with an error.
	errors map[intent.ObjectRef]bool
}

// machinePool adds a MachinePool that is in no pool.
func (u *unplanned) machinePool(o kinds.Object, cluster, kind, name string, bootstrap *kinds.ObjectReference) {
	if u.planned[o.Ref] {
		return
	}
	key := kinds.KeyOf(o.Ref)
	out := intent.Unplanned{Key: key, Objects: []intent.ObjectRef{o.Ref}, Pools: []string{key.String()}, ClusterKey: intent.Key{Namespace: key.Namespace, Name: cluster}}
	if kinds.IsPoolKind(kind) {
		out.Kind = intent.PoolKind(kind)
	}
	_, misspelled := kinds.NearPoolKind(kind)
	out.Foreign = kind != "" && out.Kind == "" && !misspelled && !strings.HasPrefix(kind, "AWS") && !u.errors[o.Ref]
	out.EKSName = cluster
	if c := u.b.clusters[out.ClusterKey]; c != nil && c.eksName != "" {
		out.EKSName = c.eksName
	}
	if bootstrap != nil {
		out.Objects = append(out.Objects, intent.ObjectRef{Kind: bootstrap.Kind, Namespace: key.Namespace, Name: bootstrap.Name})
	}
	if m := u.b.index.ClusterMisread(key.Namespace); m != nil {
		out.Objects = append(out.Objects, m.Ref)
	}
	out.Objects = append(out.Objects, intent.ObjectRef{Kind: "Cluster", Namespace: key.Namespace, Name: cluster})
	if name != "" {
		u.names(&out, intent.Key{Namespace: key.Namespace, Name: name})
		u.by[intent.Key{Namespace: key.Namespace, Name: name}] = len(u.out)
	}
	if _, taken := u.by[key]; !taken {
		u.by[key] = len(u.out)
	}
	u.out = append(u.out, out)
}

// names adds the possible names of the AWS resources of an infrastructure pool.
func (u *unplanned) names(out *intent.Unplanned, infra intent.Key) {
	out.Names = append(out.Names, infra.Name)
	for _, o := range u.b.index.PoolOptions { // also broken ones
		if name := o.Source.Text(kinds.OptionsGroup.Join("name")...); name != "" && o.Key().Namespace == infra.Namespace && o.Source.Text("spec", "poolRef", "name") == infra.Name {
			out.Names = append(out.Names, name)
		}
	}
	controlPlane := out.ClusterKey.Name
	if c := u.b.clusters[out.ClusterKey]; c != nil && c.controlPlaneName != "" {
		controlPlane = c.controlPlaneName
	}
	if controlPlane != "" {
		out.Names = append(out.Names, controlPlane+"-"+infra.Name)
	}
	out.Nodegroups = append(out.Nodegroups, kinds.NodegroupName(infra))
}

// infrastructure adds an infrastructure pool that is in no pool.
func (u *unplanned) infrastructure(o kinds.Object, kind intent.PoolKind, config *kinds.LaunchConfigRef) {
	if u.planned[o.Ref] {
		return
	}
	key := kinds.KeyOf(o.Ref)
	n, known := u.by[key]
	if !known {
		n = len(u.out)
		u.out = append(u.out, intent.Unplanned{Key: key, Pools: []string{key.String()}})
		u.by[key] = n
	}
	out := &u.out[n]
	out.Kind, out.Foreign = kind, false
	options := intent.ObjectRef{Kind: "PoolOptions", Namespace: key.Namespace}
	if p := u.b.poolOptions[poolID{key.Namespace, o.Ref.Kind, key.Name}]; p != nil {
		options = p.Ref()
	}
	out.Objects = slices.Insert(out.Objects, min(1, len(out.Objects)), o.Ref, options)
	u.names(out, key)
	if name := o.Text("spec", "eksNodegroupName"); name != "" {
		out.Nodegroups = append(out.Nodegroups, name)
	}
	if config != nil && config.Name != "" {
		ref := intent.ObjectRef{Kind: config.Kind, Namespace: key.Namespace, Name: config.Name}
		out.Objects, out.LaunchConfigs = append(out.Objects, ref), append(out.LaunchConfigs, ref)
	}
	slices.Sort(out.Names)
	out.Names = slices.Compact(out.Names)
	slices.Sort(out.Nodegroups)
	out.Nodegroups = slices.Compact(out.Nodegroups)
}

// launchConfig adds a launch configuration that no pool uses.
func (u *unplanned) launchConfig(ref intent.ObjectRef, meant string) {
	if u.planned[ref] {
		return
	}
	named := ref
	named.Kind = meant
	u.out = append(u.out, intent.Unplanned{Key: kinds.KeyOf(ref), Objects: []intent.ObjectRef{ref}, LaunchConfigs: []intent.ObjectRef{named}, Foreign: !u.errors[ref]})
}

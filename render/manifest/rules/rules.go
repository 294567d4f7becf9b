// Package rules contains the rules for objects that go beyond the form of single fields. Check applies rules
// to single objects: the rules of the webhooks of Cluster API and CAPA, and the rules of AWS that a single
// object can break. Derived is a pool with its cluster, its image and its bootstrap configuration.
// Derived.Check and its other methods find faults in their combination.
//
// The comment of a rule names its source: the page of AWS's documentation, or the operation in its API
// reference. A rule changes nothing, except for CAPA's own defaults in an object that names a launch template
// itself. It returns a code of render/diag, a sentence about the field, and the value to write instead.
package rules

import (
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// Check applies the rules that concern only one object, and adds the faults to the index. Rules about
// several objects follow when the pools are derived.
func Check(x *kinds.Index) {
	for _, o := range x.MachinePools {
		checkObject(x.Faults, o, true, checkMachinePool)
	}
	checkTable(x.Faults, x.Pools, true, checkAWSMachinePool)
	checkTable(x.Faults, x.ManagedPools, true, checkManagedPool)
	checkTable(x.Faults, x.LaunchConfigs, true, checkLaunchConfig)
	checkTable(x.Faults, x.LaunchConfigTemplates, true, checkLaunchConfigTemplate)
	checkTable(x.Faults, x.Clusters, false, nil)
	checkTable(x.Faults, x.AWSClusters, false, nil)
	checkTable(x.Faults, x.ManagedClusters, false, nil)
	checkTable(x.Faults, x.ControlPlanes, false, checkControlPlane)
	checkTable(x.Faults, x.Roles, false, nil)
	checkTable(x.Faults, x.Controllers, false, nil)
	checkTable(x.Faults, x.KubeadmConfigs, false, nil)
	checkTable(x.Faults, x.EKSConfigs, false, nil)
	checkTable(x.Faults, x.NodeadmConfigs, false, nil)
	checkTable(x.Faults, x.PoolOptions, false, checkPoolOptions)
	checkTable(x.Faults, x.FleetRollouts, false, checkFleetRollout)
}

func checkTable[S any](to *kinds.Faults, t kinds.Table[S], pool bool, rules func(*kinds.Decoded[S], kinds.Reporter)) {
	for _, o := range t.Sorted() {
		checkObject(to, o, pool, rules)
	}
}

// checkObject applies the rules of one object. It drops findings about fields that could not be read, because
// decoding already reported them.
func checkObject[S any](to *kinds.Faults, o *kinds.Decoded[S], pool bool, rules func(*kinds.Decoded[S], kinds.Reporter)) {
	var found kinds.Faults
	r := o.Reporter(&found)
	checkName(r)
	checkAnnotations(kinds.Annotated{Reporter: r, Meta: o.Metadata}, pool)
	checkIDs(r, o.Source)
	switch o.Kind {
	case "AWSMachinePool", "AWSManagedMachinePool":
		checkOwnKeys(r, o.Metadata, o.Source)
	case "MachinePool":
		noteOwnKeys(r, o.Metadata)
	}
	if rules != nil {
		rules(o, r)
	}
	noteUncarried(o.Source, r)
	found.List = slices.DeleteFunc(found.List, func(f kinds.Fault) bool {
		return slices.ContainsFunc(o.Unread, func(p intent.Path) bool { return kinds.Overlap(p, f.Path) })
	})
	o.Broken = o.Broken || found.HasErrors()
	to.List = append(to.List, found.List...)
}

// path returns a field path.
func path(elems ...string) intent.Path { return elems }

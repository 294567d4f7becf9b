package manifest

import (
	"slices"

	"github.com/weir-gitops/weir/render/intent"
)

// checkAll applies the rules that concern one object alone.
func checkAll(x *index) {
	for _, o := range x.machinePools {
		checkObject(x.faults, o, true, checkMachinePool)
	}
	checkTable(x.faults, x.pools, true, checkAWSMachinePool)
	checkTable(x.faults, x.managedPools, true, checkManagedPool)
	checkTable(x.faults, x.configs, true, checkLaunchConfig)
	checkTable(x.faults, x.configTemplates, true, checkLaunchConfigTemplate)
	checkTable(x.faults, x.clusters, false, nil)
	checkTable(x.faults, x.awsClusters, false, nil)
	checkTable(x.faults, x.managedClusters, false, nil)
	checkTable(x.faults, x.controlPlanes, false, checkControlPlane)
	checkTable(x.faults, x.roles, false, nil)
	checkTable(x.faults, x.controllers, false, nil)
	checkTable(x.faults, x.kubeadm, false, nil)
	checkTable(x.faults, x.eks, false, nil)
	checkTable(x.faults, x.nodeadm, false, nil)
	checkTable(x.faults, x.poolOptions, false, checkPoolOptions)
}

func checkTable[S any](to *faults, t table[S], pool bool, rules func(*object[S], reporter)) {
	for _, o := range t.sorted() {
		checkObject(to, o, pool, rules)
	}
}

// checkObject applies the rules of one object. What a rule says about a field
// that could not be read is dropped: it is the same fault again.
func checkObject[S any](to *faults, o *object[S], pool bool, rules func(*object[S], reporter)) {
	var found faults
	r := o.reporter(&found)
	checkName(r)
	checkAnnotations(annotated{r, o.Metadata}, pool)
	switch o.Kind {
	case "AWSMachinePool", "AWSManagedMachinePool":
		checkOwnKeys(r, o.Metadata, o.source)
	case "MachinePool":
		noteOwnKeys(r, o.Metadata)
	}
	if rules != nil {
		rules(o, r)
	}
	noteUncarried(o.source, r)
	found.list = slices.DeleteFunc(found.list, func(f Fault) bool {
		return slices.ContainsFunc(o.unread, func(p intent.Path) bool { return overlap(p, f.Path) })
	})
	o.broken = o.broken || found.hasErrors()
	to.list = append(to.list, found.list...)
}

package rules

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// maxNodegroupTypes bounds the instance types of a nodegroup: instanceTypes of CreateNodegroup in EKS's API
// reference.
const maxNodegroupTypes = 20

// checkNodegroupOptions applies the rules of EKS that concern only the options.
func checkNodegroupOptions(r kinds.Reporter, n *kinds.NodegroupOptions) {
	if n == nil {
		return
	}
	at := kinds.OptionsNodegroup.Join("instanceTypes")
	if len(n.InstanceTypes) > maxNodegroupTypes {
		r.Error(at, "out-of-range", fmt.Sprintf("%s has %d instance types; EKS allows %d", at, len(n.InstanceTypes), maxNodegroupTypes), "")
	}
	types := n.Types()
	for i, t := range n.InstanceTypes {
		if j := slices.Index(n.InstanceTypes, t); j < i {
			r.To.Add(kinds.Fault{Code: "duplicate", Summary: fmt.Sprintf("instance type %q is written twice", t), Ref: r.Ref, Path: types[i].At,
				Related: []kinds.RelatedField{{Ref: r.Ref, Path: types[j].At, Message: "the other one"}}})
		}
	}
	checkKnownTypes(r, types)
	checkOneArchitecture(r, types)
	if p := n.NodeRepairConfig; p != nil {
		at := kinds.OptionsNodegroup.Join("nodeRepairConfig")
		for _, pair := range []struct {
			count, percentage int32
			field             string
		}{{p.MaxParallelNodesRepairedCount, p.MaxParallelNodesRepairedPercentage, "maxParallelNodesRepaired"}, {p.MaxUnhealthyNodeThresholdCount, p.MaxUnhealthyNodeThresholdPercentage, "maxUnhealthyNodeThreshold"}} {
			if pair.count > 0 && pair.percentage > 0 {
				r.Error(at.Join(pair.field+"Percentage"), "exclusive", at.Join(pair.field+"Percentage").String()+" excludes "+pair.field+"Count", "")
			}
		}
	}
	if w := n.WarmPoolConfig; w != nil && w.MaxGroupPreparedCapacity != nil && w.MinSize != nil && *w.MaxGroupPreparedCapacity >= 0 && *w.MinSize > *w.MaxGroupPreparedCapacity {
		at := kinds.OptionsNodegroup.Join("warmPoolConfig", "minSize")
		r.Error(at, "out-of-range", fmt.Sprintf("%s is %d, above maxGroupPreparedCapacity %d", at, *w.MinSize, *w.MaxGroupPreparedCapacity), "")
	}
}

package rules

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// maxOverrides bounds the instance types of a group: LaunchTemplateOverrides in the API reference of Auto
// Scaling.
const maxOverrides = 40

// checkMixedPolicy checks a mixed instances policy against the other fields of the pool. CAPA's own rules
// cover duplicates and the exclusion of spotMarketOptions. CAPA's overrides have no weights.
func checkMixedPolicy(r kinds.Reporter, s *kinds.AWSMachinePoolSpec) {
	m, p := s.MixedInstancesPolicy, path("spec", "mixedInstancesPolicy")
	if m == nil {
		return
	}
	lt, market := &s.AWSLaunchTemplate, path("spec", "awsLaunchTemplate", "marketType")
	switch {
	case lt.MarketType == "Spot" && lt.SpotMarketOptions == nil:
		// The launch template of a mixed instances group must not request Spot Instances: "Setup
		// overview for creating a mixed instances group" in the user guide of Auto Scaling.
		r.Error(market, "exclusive", "spec.awsLaunchTemplate.marketType Spot excludes spec.mixedInstancesPolicy",
			"write the share of spot instances in mixedInstancesPolicy.instancesDistribution")
	case lt.MarketType == "CapacityBlock":
		// "Use Capacity Blocks for machine learning workloads", same guide.
		r.Warn(market, "exclusive", "spec.awsLaunchTemplate.marketType CapacityBlock does not go with spec.mixedInstancesPolicy",
			"Auto Scaling launches from a capacity block by the launch template's instance type alone")
	}
	if len(m.Overrides) > maxOverrides {
		r.Error(p.Join("overrides"), "too-many-overrides", fmt.Sprintf("%s has %d instance types; Auto Scaling allows %d", p.Join("overrides"), len(m.Overrides), maxOverrides), "")
	}
	if len(m.Overrides) == 0 && m.InstancesDistribution == nil {
		r.Warn(p, "empty-policy", "spec.mixedInstancesPolicy is empty: the group has the launch template's instance type, on demand",
			"write overrides or instancesDistribution, or leave it out")
	}
	t := lt.InstanceType
	if t != "" && len(m.Overrides) > 0 && !slices.Contains(m.Overrides, kinds.Override{InstanceType: t}) {
		r.Info(path("spec", "awsLaunchTemplate", "instanceType"), "not-launched",
			fmt.Sprintf("no instance of type %s is launched: spec.mixedInstancesPolicy.overrides take its place", t), "add it to the overrides if it is meant to be one of them")
	}
	if i := m.InstancesDistribution; i != nil && s.MaxSize > 0 && i.OnDemandBaseCapacity > int64(s.MaxSize) {
		at := p.Join("instancesDistribution", "onDemandBaseCapacity")
		r.Warn(at, "out-of-range", fmt.Sprintf("%s is %d, above spec.maxSize %d: no instance will be spot", at, i.OnDemandBaseCapacity, s.MaxSize), "")
	}
}

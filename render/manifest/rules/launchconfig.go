package rules

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

func checkLaunchConfig(o *kinds.Decoded[kinds.LaunchTemplate], r kinds.Reporter) {
	kinds.ReadAnnotations([]kinds.Annotated{{Reporter: r, Meta: o.Metadata}}, &intent.Pool{})
	checkSharedTemplate(r, path("spec"), &o.Spec)
}

func checkLaunchConfigTemplate(o *kinds.Decoded[kinds.AWSLaunchConfigTemplateSpec], r kinds.Reporter) {
	kinds.ReadAnnotations([]kinds.Annotated{{Reporter: r, Meta: o.Metadata}}, &intent.Pool{})
	checkSharedTemplate(r, path("spec", "template", "spec"), &o.Spec.Template.Spec)
}

// checkSharedTemplate applies the rules for launch templates that do not depend on the pool. The other rules
// are applied for every pool.
func checkSharedTemplate(r kinds.Reporter, p intent.Path, lt *kinds.LaunchTemplate) {
	checkReferences(r, p.Join("additionalSecurityGroups"), lt.AdditionalSecurityGroups)
	checkVolumes(r, p, lt)
	checkMarket(r, p, lt)
	checkImage(r, p, lt)
	checkGroupFilters(r, p.Join("additionalSecurityGroups"), lt.AdditionalSecurityGroups)
	if lt.InstanceType != "" {
		checkKnownTypes(r, []kinds.TypeField{{At: p.Join("instanceType"), Name: lt.InstanceType}})
	}
}

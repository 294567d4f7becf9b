package manifest

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// The kinds that a pool's spec.launchConfigRef may name.
const (
	kindLaunchConfig         = "AWSLaunchConfig"
	kindLaunchConfigTemplate = "AWSLaunchConfigTemplate"
)

// LaunchConfigRef names an object of the pool's namespace that declares its
// launch template, in place of awsLaunchTemplate.
type LaunchConfigRef struct {
	Kind string `json:"kind" check:"required" enum:"AWSLaunchConfig|AWSLaunchConfigTemplate"`
	Name string `json:"name" check:"required,minlen=1"`
}

// AWSLaunchConfigTemplateSpec is AWSLaunchConfigTemplate.spec: what the
// AWSLaunchConfigs that are derived of it hold. AWSLaunchConfig.spec is a
// LaunchTemplate.
type AWSLaunchConfigTemplateSpec struct {
	Template LaunchConfigTemplateResource `json:"template" check:"required"`
}

// LaunchConfigTemplateResource is spec.template of an AWSLaunchConfigTemplate.
type LaunchConfigTemplateResource struct {
	Spec LaunchTemplate `json:"spec"`
}

func checkLaunchConfig(o *object[LaunchTemplate], r reporter) {
	readAnnotations([]annotated{{r, o.Metadata}}, &intent.Pool{})
	checkSharedTemplate(r, path("spec"), &o.Spec)
}

func checkLaunchConfigTemplate(o *object[AWSLaunchConfigTemplateSpec], r reporter) {
	readAnnotations([]annotated{{r, o.Metadata}}, &intent.Pool{})
	checkSharedTemplate(r, path("spec", "template", "spec"), &o.Spec.Template.Spec)
}

// checkSharedTemplate applies the rules of launch templates that hold whatever
// pools use it. Those that need the pool are applied with each pool.
func checkSharedTemplate(r reporter, p intent.Path, lt *LaunchTemplate) {
	checkReferences(r, p.Join("additionalSecurityGroups"), lt.AdditionalSecurityGroups, "sg-")
	checkVolumes(r, p, lt)
	checkMarket(r, p, lt)
	checkImage(r, p, lt)
	checkGroupFilters(r, p.Join("additionalSecurityGroups"), lt.AdditionalSecurityGroups)
	if lt.InstanceType != "" {
		checkKnownTypes(r, []typeField{{at: p.Join("instanceType"), name: lt.InstanceType}})
	}
}

// launchConfigs are the launch templates that pools of a render share.
type launchConfigs struct {
	// uses are the pool objects that name one.
	uses map[intent.ObjectRef]*launchConfigUse
	// derived are the AWSLaunchConfigs, by their template's name.
	derived map[string]*derivedConfig
	claims  *builder
}

// launchConfigUse is a pool object's reference, found.
type launchConfigUse struct {
	config intent.LaunchConfig
}

// newLaunchConfigs finds what pools refer to and puts it where a launch template
// of their own would be, so that the same rules and derivations hold for both.
func newLaunchConfigs(b *builder) *launchConfigs {
	l := &launchConfigs{uses: map[intent.ObjectRef]*launchConfigUse{}, derived: map[string]*derivedConfig{}, claims: b}
	used := map[intent.ObjectRef]bool{}
	for _, o := range b.index.pools.sorted() {
		ref, r := o.Spec.LaunchConfigRef, o.reporter(b.faults)
		u, lt := b.launchConfig(r, o.source, ref, used)
		if lt != nil {
			noteOwnAnnotations(r, o.Metadata)
			o.Spec.AWSLaunchTemplate = *lt
			l.uses[o.ref()] = u
		}
		o.broken = o.broken || ref != nil && lt == nil
	}
	for _, o := range b.index.managedPools.sorted() {
		ref, r := o.Spec.LaunchConfigRef, o.reporter(b.faults)
		u, lt := b.launchConfig(r, o.source, ref, used)
		if lt != nil {
			noteOwnAnnotations(r, o.Metadata)
			o.Spec.AWSLaunchTemplate = withoutForbidden(reporter{u.config.Source, b.faults}, u.config.Spec(), lt)
			l.uses[o.ref()] = u
		}
		o.broken = o.broken || ref != nil && lt == nil
	}
	for _, ref := range slices.Concat(refsOf(b.index.configs), refsOf(b.index.configTemplates)) {
		if !used[ref] {
			reporter{ref, b.faults}.warn(path("metadata", "name"), "launch-config-unused", fmt.Sprintf("%s is ignored: no pool refers to it", ref), "")
		}
	}
	return l
}

func refsOf[S any](t table[S]) []intent.ObjectRef {
	var out []intent.ObjectRef
	for _, o := range t.sorted() {
		out = append(out, o.ref())
	}
	return out
}

// launchConfig finds what a pool's launchConfigRef names. The template is nil
// where there is none, or where something is wrong, which is then reported.
func (b *builder) launchConfig(r reporter, pool Object, ref *LaunchConfigRef, used map[intent.ObjectRef]bool) (*launchConfigUse, *LaunchTemplate) {
	at := path("spec", "launchConfigRef")
	if ref == nil || ref.Name == "" || ref.Kind != kindLaunchConfig && ref.Kind != kindLaunchConfigTemplate {
		return nil, nil // what is wrong was reported
	}
	var found intent.ObjectRef
	var meta Meta
	var lt *LaunchTemplate
	key := intent.Key{Namespace: r.ref.Namespace, Name: ref.Name}
	broken := false
	if o, ok := b.index.configs[key]; ok && ref.Kind == kindLaunchConfig {
		found, meta, lt, broken = o.ref(), o.Metadata, &o.Spec, o.broken
	}
	if o, ok := b.index.configTemplates[key]; ok && ref.Kind == kindLaunchConfigTemplate {
		found, meta, lt, broken = o.ref(), o.Metadata, &o.Spec.Template.Spec, o.broken
	}
	if lt == nil {
		b.dangling(r, at.Join("name"), &ObjectReference{Kind: ref.Kind, Name: ref.Name}, diag.Error, "reference-not-found", "")
		return nil, nil
	}
	used[found] = true
	if pool.hasContent("spec", "awsLaunchTemplate") {
		r.to.add(Fault{Code: "exclusive", Summary: "spec.launchConfigRef excludes spec.awsLaunchTemplate", Detail: "write the fields in " + found.String() + ", or leave launchConfigRef out",
			Ref: r.ref, Path: at, Related: []RelatedField{{Ref: r.ref, Path: path("spec", "awsLaunchTemplate"), Message: "the pool's own launch template"}}})
		return nil, nil
	}
	if broken {
		return nil, nil
	}
	out := *lt
	u := &launchConfigUse{config: intent.LaunchConfig{Source: found}}
	var settings intent.Pool
	readAnnotations([]annotated{{reporter{found, &faults{}}, meta}}, &settings)
	u.config.KeepVersions, u.config.FollowImages, u.config.PruneDisabled = settings.KeepVersions, settings.FollowImages, settings.PruneDisabled
	return u, &out
}

// noteOwnAnnotations reports annotations that say how a launch template is kept
// on a pool that has none of its own.
func noteOwnAnnotations(r reporter, m Meta) {
	for _, key := range []string{annotationKeepVersions, annotationAMIPolicy} {
		if _, ok := m.Annotations[key]; ok {
			r.info(annotationPath(key), "not-carried", fmt.Sprintf("annotation %s has no effect: the pool shares its launch template", key),
				"write it on the object that spec.launchConfigRef names")
		}
	}
}

// withoutForbidden leaves out what EKS takes from no launch template: "Customize
// managed nodes with launch templates" in its user guide. Group pools may need
// it in the same declaration, so it is no error.
func withoutForbidden(r reporter, p intent.Path, lt *LaunchTemplate) *LaunchTemplate {
	out := *lt
	leave := func(field string, written bool, detail string) {
		if written {
			at := p.Join(field)
			r.info(at, "not-carried", at.String()+" has no effect on managed pools: EKS takes it from no launch template", detail)
		}
	}
	leave("iamInstanceProfile", lt.IamInstanceProfile != "", "their role is spec.roleName of the AWSManagedMachinePool")
	leave("spotMarketOptions", lt.SpotMarketOptions != nil, "write spec.capacityType: spot in the AWSManagedMachinePool for spot instances")
	leave("marketType", lt.MarketType == "Spot", "write spec.capacityType: spot in the AWSManagedMachinePool for spot instances")
	out.IamInstanceProfile, out.SpotMarketOptions = "", nil
	if out.MarketType == "Spot" {
		out.MarketType = ""
	}
	return &out
}

// hasContent reports whether an object writes more than an empty mapping at p.
func (o Object) hasContent(p ...string) bool {
	n := o.at(p...)
	return n != nil && !isNull(n) && len(n.Content) > 0
}

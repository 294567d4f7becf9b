package derive

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// launchConfigs are the shared launch templates of a render.
type launchConfigs struct {
	// uses has the references by pool object.
	uses map[intent.ObjectRef]*launchConfigUse
	// derived has the AWSLaunchConfigs by the name of their launch template.
	derived map[string]*derivedConfig
	claims  *Builder
}

// launchConfigUse is the resolved reference of a pool object.
type launchConfigUse struct {
	config intent.LaunchConfig
}

// newLaunchConfigs resolves the references of pools. It copies each shared launch template to the field of
// the pool's own template, so that the same rules and derivations apply to both.
func newLaunchConfigs(b *Builder) *launchConfigs {
	l := &launchConfigs{uses: map[intent.ObjectRef]*launchConfigUse{}, derived: map[string]*derivedConfig{}, claims: b}
	used := map[intent.ObjectRef]bool{}
	for _, o := range b.index.Pools.Sorted() {
		ref, r := o.Spec.LaunchConfigRef, o.Reporter(b.faults)
		u, lt := b.launchConfig(r, o.Source, ref, used)
		if lt != nil {
			noteOwnAnnotations(r, o.Metadata)
			o.Spec.AWSLaunchTemplate = *lt
			l.uses[o.Ref()] = u
		}
		o.Broken = o.Broken || ref != nil && lt == nil
	}
	for _, o := range b.index.ManagedPools.Sorted() {
		ref, r := o.Spec.LaunchConfigRef, o.Reporter(b.faults)
		u, lt := b.launchConfig(r, o.Source, ref, used)
		if lt != nil {
			noteOwnAnnotations(r, o.Metadata)
			o.Spec.AWSLaunchTemplate = withoutForbidden(kinds.Reporter{Ref: u.config.Source, To: b.faults}, u.config.Spec(), lt)
			l.uses[o.Ref()] = u
		}
		o.Broken = o.Broken || ref != nil && lt == nil
	}
	for _, ref := range slices.Concat(refsOf(b.index.LaunchConfigs), refsOf(b.index.LaunchConfigTemplates)) {
		if !used[ref] {
			kinds.Reporter{Ref: ref, To: b.faults}.Warn(path("metadata", "name"), "launch-config-unused", fmt.Sprintf("%s is ignored: no pool refers to it", ref), "")
		}
	}
	return l
}

func refsOf[S any](t kinds.Table[S]) []intent.ObjectRef {
	var out []intent.ObjectRef
	for _, o := range t.Sorted() {
		out = append(out, o.Ref())
	}
	return out
}

// launchConfig resolves a pool's launchConfigRef. It returns nil if the pool has none, or if it reported a
// fault.
func (b *Builder) launchConfig(r kinds.Reporter, pool kinds.Object, ref *kinds.LaunchConfigRef, used map[intent.ObjectRef]bool) (*launchConfigUse, *kinds.LaunchTemplate) {
	at := path("spec", "launchConfigRef")
	if ref == nil || ref.Name == "" || ref.Kind != kinds.KindLaunchConfig && ref.Kind != kinds.KindLaunchConfigTemplate {
		return nil, nil // the fault was already reported
	}
	var found intent.ObjectRef
	var meta kinds.Meta
	var lt *kinds.LaunchTemplate
	key := intent.Key{Namespace: r.Ref.Namespace, Name: ref.Name}
	broken := false
	if o, ok := b.index.LaunchConfigs[key]; ok && ref.Kind == kinds.KindLaunchConfig {
		found, meta, lt, broken = o.Ref(), o.Metadata, &o.Spec, o.Broken
	}
	if o, ok := b.index.LaunchConfigTemplates[key]; ok && ref.Kind == kinds.KindLaunchConfigTemplate {
		found, meta, lt, broken = o.Ref(), o.Metadata, &o.Spec.Template.Spec, o.Broken
	}
	if lt == nil {
		b.dangling(r, at.Join("name"), &kinds.ObjectReference{Kind: ref.Kind, Name: ref.Name}, diag.Error, "reference-not-found", "")
		return nil, nil
	}
	used[found] = true
	if pool.HasContent("spec", "awsLaunchTemplate") {
		r.To.Add(kinds.Fault{Code: "exclusive", Summary: "spec.launchConfigRef excludes spec.awsLaunchTemplate", Detail: "write the fields in " + found.String() + ", or leave launchConfigRef out",
			Ref: r.Ref, Path: at, Related: []kinds.RelatedField{{Ref: r.Ref, Path: path("spec", "awsLaunchTemplate"), Message: "the pool's own launch template"}}})
		return nil, nil
	}
	if broken {
		return nil, nil
	}
	out := *lt
	u := &launchConfigUse{config: intent.LaunchConfig{Source: found}}
	var settings intent.Pool
	kinds.ReadAnnotations([]kinds.Annotated{{Reporter: kinds.Reporter{Ref: found, To: &kinds.Faults{}}, Meta: meta}}, &settings)
	u.config.KeepVersions, u.config.FollowImages, u.config.PruneDisabled = settings.KeepVersions, settings.FollowImages, settings.PruneDisabled
	u.config.Remembered = settings.Remembered
	return u, &out
}

// noteOwnAnnotations reports annotations about a launch template on a pool that has no template of its own.
func noteOwnAnnotations(r kinds.Reporter, m kinds.Meta) {
	for _, key := range []string{kinds.AnnotationKeepVersions, kinds.AnnotationAMIPolicy, kinds.AnnotationImageFamily} {
		if _, ok := m.Annotations[key]; ok {
			r.Info(kinds.AnnotationPath(key), "not-carried", fmt.Sprintf("annotation %s has no effect: the pool shares its launch template", key),
				"write it on the object that spec.launchConfigRef names")
		}
	}
}

// withoutForbidden removes the fields that EKS forbids in a launch template ("Customize managed nodes with
// launch templates" in its user guide). This is not an error, because group pools with the same declaration
// may need the fields.
func withoutForbidden(r kinds.Reporter, p intent.Path, lt *kinds.LaunchTemplate) *kinds.LaunchTemplate {
	out := *lt
	leave := func(field string, written bool, detail string) {
		if written {
			at := p.Join(field)
			r.Info(at, "not-carried", at.String()+" has no effect on managed pools: EKS does not use it from launch templates", detail)
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

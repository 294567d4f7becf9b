package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// checkOwnKeys applies the rules for a pool's launch template keys that concern only the pool object.
func checkOwnKeys(r kinds.Reporter, m kinds.Meta, source kinds.Object) {
	k := kinds.ReadOwnKeys(r, m)
	noteOtherKeys(r, m)
	for _, suffix := range kinds.OwnArchitectures() {
		checkOwnKey(k, r, suffix)
		if key, _, ok := k.Named(suffix); ok && suffix != "" {
			checkOwnArchitecture(r, key, suffix, source)
		}
	}
	if c, ok := k[kinds.OwnCapacity]; ok {
		checkOwnCapacity(r, c, source)
	}
	named, ok := k.NamesTemplate()
	if !ok {
		return
	}
	for _, other := range []struct {
		at     intent.Path
		detail string
	}{
		{path("spec", "awsLaunchTemplate"), "the pool has the launch template that it names and no other; write awsLaunchTemplate: {} where the field is required"},
		{path("spec", "launchConfigRef"), "the pool has the launch template that it names and no other"},
		{kinds.AnnotationPath(kinds.AnnotationArchitecture), "the image of the launch template decides the architecture"},
		{path("spec", "diskSize"), "EKS accepts it only without a launch template, which sets the size of the volumes itself"},
		{path("spec", "remoteAccess"), "EKS accepts it only without a launch template, which names key and security groups itself"},
	} {
		if n := source.At(other.at...); n != nil && !strict.IsNull(n) && (n.Kind == yaml.ScalarNode || len(n.Content) > 0) {
			exclusiveKey(r, named.At, other.at, other.detail)
		}
	}
	for _, key := range []string{kinds.AnnotationKeepVersions, kinds.AnnotationAMIPolicy} {
		if _, ok := m.Annotations[key]; ok {
			r.Info(kinds.AnnotationPath(key), "not-carried", fmt.Sprintf("annotation %s has no effect: the pool brings its own launch template", key), "weir makes and deletes no version of it")
		}
	}
}

func exclusiveKey(r kinds.Reporter, key, field intent.Path, detail string) {
	r.To.Add(kinds.Fault{Code: "exclusive", Summary: fmt.Sprintf("%s excludes %s", key, field), Detail: detail, Ref: r.Ref, Path: key,
		Related: []kinds.RelatedField{{Ref: r.Ref, Path: field, Message: "the other field"}}})
}

// checkOwnKey checks the keys that name a foreign launch template and its version. suffix selects the keys
// of one architecture. It is empty for the keys of all architectures.
func checkOwnKey(k kinds.OwnKeys, r kinds.Reporter, suffix string) {
	name, byName := k[kinds.OwnName+suffix]
	id, byID := k[kinds.OwnID+suffix]
	version, hasVersion := k[kinds.OwnVersion+suffix]
	if byName && byID {
		exclusiveKey(r, id.At, name.At, "a launch template has both; write one of them")
	}
	if byName && !kinds.TemplateName.MatchString(name.Value) {
		r.Error(name.At, "bad-name", fmt.Sprintf("%q is not a valid name for a launch template", name.Value), "EC2 allows 3 to 128 letters, digits and ( ) . - / _")
	}
	if byID {
		kinds.CheckID(r, id.At, id.Value, "lt-")
	}
	if !hasVersion {
		return
	}
	if _, ok := k.NamesTemplate(); !ok || suffix != "" && !byName && !byID {
		r.Error(version.At, "incomplete", fmt.Sprintf("%s%s names a version, but nothing names the launch template", kinds.OwnTemplatePrefix, kinds.OwnVersion+suffix),
			fmt.Sprintf("write %s%s beside it", kinds.OwnTemplatePrefix, kinds.OwnName+suffix))
	}
	if _, ok := kinds.TemplateVersionOf(version.Value); !ok {
		r.Error(version.At, "bad-value", fmt.Sprintf("%q is not a version of a launch template", version.Value), `write a number in quotes, "Latest" or "Default"`)
	}
}

// checkOwnArchitecture checks a key for one architecture. Overrides of a group may have their own launch
// templates, but a nodegroup has only one.
func checkOwnArchitecture(r kinds.Reporter, key kinds.OwnKey, suffix string, source kinds.Object) {
	if intent.PoolKind(r.Ref.Kind) != intent.GroupPool {
		r.Error(key.At, "not-allowed", fmt.Sprintf("%s is not allowed for a managed pool: a nodegroup has one launch template", key.At), fmt.Sprintf("write it without %s, and make a pool for each architecture", suffix))
		return
	}
	if overrides := path("spec", "mixedInstancesPolicy", "overrides"); !source.HasContent(overrides...) {
		r.Error(key.At, "incomplete", fmt.Sprintf("%s needs %s, whose instance types have the launch template of their architecture", key.At, overrides),
			fmt.Sprintf("write it without %s, which is for all machines of the pool", suffix))
	}
}

// checkOwnCapacity checks the capacity type against the other fields that set it.
func checkOwnCapacity(r kinds.Reporter, c kinds.OwnKey, source kinds.Object) {
	key := kinds.OwnTemplatePrefix + kinds.OwnCapacity
	if c.Value != "on-demand" && c.Value != "spot" {
		r.Error(c.At, "bad-enum", fmt.Sprintf("%s cannot be %q", key, c.Value), `it must be "on-demand" or "spot"`)
		return
	}
	if n := source.At("spec", "capacityType"); n != nil && !strict.IsNull(n) && n.Value != kinds.EKSCapacity(c.Value) {
		r.To.Add(kinds.Fault{Code: "mismatch", Summary: fmt.Sprintf("%s is %q, but spec.capacityType is %q", key, c.Value, n.Value), Detail: "write it once",
			Ref: r.Ref, Path: c.At, Related: []kinds.RelatedField{{Ref: r.Ref, Path: path("spec", "capacityType"), Message: "the pool's field"}}})
	}
	distribution, lt := path("spec", "mixedInstancesPolicy", "instancesDistribution"), path("spec", "awsLaunchTemplate")
	for _, at := range []intent.Path{distribution.Join("onDemandBaseCapacity"), distribution.Join("onDemandPercentageAboveBaseCapacity"), lt.Join("spotMarketOptions"), lt.Join("marketType")} {
		if source.Has(at...) {
			exclusiveKey(r, c.At, at, "both say which machines are spot instances; write one of them")
		}
	}
}

// noteOwnKeys reports the keys on an object where they have no effect.
func noteOwnKeys(r kinds.Reporter, m kinds.Meta) {
	for _, name := range slices.Sorted(maps.Keys(kinds.ReadOwnKeys(kinds.Reporter{To: &kinds.Faults{}}, m))) {
		key := kinds.OwnTemplatePrefix + name
		at := path("metadata", "annotations", key)
		if _, ok := m.Annotations[key]; !ok {
			at = path("metadata", "labels", key)
		}
		r.Warn(at, "annotation-not-read", fmt.Sprintf("%s is not read on a %s", key, r.Ref.Kind), "write it on the infrastructure pool")
	}
}

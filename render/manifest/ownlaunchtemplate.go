package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/instancetypes"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
)

// Keys by which a pool names a launch template that it brings along, and says
// what its machines cost. They stand in annotations or labels of the pool's
// infrastructure object. Each of the first three may end in a dot and an
// architecture, and is then about the instance types of that architecture.
const (
	ownTemplatePrefix = "node.k8s.aws/"

	ownName     = "launch-template-name"
	ownID       = "launch-template-id"
	ownVersion  = "launch-template-version"
	ownCapacity = "capacity-type"
)

// ownArchitectures are what the keys may end in; the first stands for all types.
func ownArchitectures() []string { return []string{"", ".arm64", ".x86_64"} }

func ownKeyNames() []string {
	out := []string{ownCapacity}
	for _, suffix := range ownArchitectures() {
		out = append(out, ownName+suffix, ownID+suffix, ownVersion+suffix)
	}
	return out
}

// ownKey is the value of a key and the field that has it.
type ownKey struct {
	value string
	at    intent.Path
}

// ownKeys are the keys of a pool, without their prefix.
type ownKeys map[string]ownKey

// readOwnKeys reads the keys of a pool from its annotations and its labels, which
// must not contradict each other.
func readOwnKeys(r reporter, m Meta) ownKeys {
	out := ownKeys{}
	for _, place := range []struct {
		where  string
		values map[string]string
	}{{"annotations", m.Annotations}, {"labels", m.Labels}} {
		for _, key := range slices.Sorted(maps.Keys(place.values)) {
			name, ours := strings.CutPrefix(key, ownTemplatePrefix)
			if !ours {
				continue
			}
			at := path("metadata", place.where, key)
			if !slices.Contains(ownKeyNames(), name) {
				unknownOwnKey(r, at, key, name)
				continue
			}
			value := place.values[key]
			first, twice := out[name]
			if twice && first.value != value {
				r.to.add(Fault{Code: "mismatch", Summary: fmt.Sprintf("%s is %q as a label and %q as an annotation", key, value, first.value),
					Detail: "write it once", Ref: r.ref, Path: at, Related: []RelatedField{{Ref: r.ref, Path: first.at, Message: "the annotation"}}})
			}
			if !twice {
				out[name] = ownKey{value, at}
			}
		}
	}
	return out
}

// otherArchitectureNames are what Go, Debian and others call EC2's architectures:
// by its letters alone, amd64 is nearer to arm64 than to x86_64.
var otherArchitectureNames = strings.NewReplacer(".amd64", ".x86_64", ".x64", ".x86_64", ".x86-64", ".x86_64", ".aarch64", ".arm64")

// unknownOwnKey reports a key that is likely misspelt. The prefix is not weir's,
// so any other key is somebody else's.
func unknownOwnKey(r reporter, at intent.Path, key, name string) {
	near := nearest.Word(otherArchitectureNames.Replace(name), ownKeyNames())
	if near == "" && !strings.HasPrefix(name, "launch-template") {
		return
	}
	detail := "weir reads " + ownTemplatePrefix + strings.Join(ownKeyNames(), ", "+ownTemplatePrefix)
	if near != "" {
		detail = fmt.Sprintf("did you mean %q?", ownTemplatePrefix+near)
	}
	r.to.add(Fault{Code: "unknown-annotation", Summary: "unknown key " + key, Detail: detail, Ref: r.ref, Path: at, Key: true})
}

// named is the key that names the template of an architecture, and whether it
// does so by id.
func (k ownKeys) named(suffix string) (key ownKey, byID, ok bool) {
	if key, ok = k[ownName+suffix]; ok {
		return key, false, true
	}
	key, ok = k[ownID+suffix]
	return key, ok, ok
}

// namesTemplate is the first key that names a template.
func (k ownKeys) namesTemplate() (ownKey, bool) {
	for _, suffix := range ownArchitectures() {
		if key, _, ok := k.named(suffix); ok {
			return key, true
		}
	}
	return ownKey{}, false
}

// bringsTemplate says that a pool names a launch template of its own.
func bringsTemplate(m Meta) bool {
	_, ok := readOwnKeys(reporter{to: &faults{}}, m).namesTemplate()
	return ok
}

// checkOwnKeys applies the rules of the keys that can be told from one pool.
func checkOwnKeys(r reporter, m Meta, source Object) {
	k := readOwnKeys(r, m)
	noteOtherKeys(r, m)
	for _, suffix := range ownArchitectures() {
		checkOwnKey(k, r, suffix)
		if key, _, ok := k.named(suffix); ok && suffix != "" {
			checkOwnArchitecture(r, key, suffix, source)
		}
	}
	if c, ok := k[ownCapacity]; ok {
		checkOwnCapacity(r, c, source)
	}
	named, ok := k.namesTemplate()
	if !ok {
		return
	}
	for _, other := range []struct {
		at     intent.Path
		detail string
	}{
		{path("spec", "awsLaunchTemplate"), "the pool has the launch template that it names and no other; write awsLaunchTemplate: {} where the field is required"},
		{path("spec", "launchConfigRef"), "the pool has the launch template that it names and no other"},
		{annotationPath(annotationArchitecture), "the image of the launch template decides the architecture"},
		{path("spec", "diskSize"), "EKS takes it only without a launch template, which says the size of the volumes itself"},
		{path("spec", "remoteAccess"), "EKS takes it only without a launch template, which names key and security groups itself"},
	} {
		if n := source.at(other.at...); n != nil && !isNull(n) && (n.Kind == yaml.ScalarNode || len(n.Content) > 0) {
			exclusiveKey(r, named.at, other.at, other.detail)
		}
	}
	for _, key := range []string{annotationKeepVersions, annotationAMIPolicy} {
		if _, ok := m.Annotations[key]; ok {
			r.info(annotationPath(key), "not-carried", fmt.Sprintf("annotation %s has no effect: the pool brings its own launch template", key), "weir makes and deletes no version of it")
		}
	}
}

func exclusiveKey(r reporter, key, field intent.Path, detail string) {
	r.to.add(Fault{Code: "exclusive", Summary: fmt.Sprintf("%s excludes %s", key, field), Detail: detail, Ref: r.ref, Path: key,
		Related: []RelatedField{{Ref: r.ref, Path: field, Message: "the other field"}}})
}

// checkOwnKey applies the rules of the keys for one architecture.
func checkOwnKey(k ownKeys, r reporter, suffix string) {
	name, byName := k[ownName+suffix]
	id, byID := k[ownID+suffix]
	version, hasVersion := k[ownVersion+suffix]
	if byName && byID {
		exclusiveKey(r, id.at, name.at, "a launch template has both; write one of them")
	}
	if byName && !templateName.MatchString(name.value) {
		r.error(name.at, "bad-name", fmt.Sprintf("%q is no name for a launch template", name.value), "EC2 takes 3 to 128 letters, digits and ( ) . - / _")
	}
	if byID {
		checkID(r, id.at, id.value, "lt-")
	}
	if !hasVersion {
		return
	}
	if _, ok := k.namesTemplate(); !ok || suffix != "" && !byName && !byID {
		r.error(version.at, "incomplete", fmt.Sprintf("%s%s says a version, and nothing names the launch template", ownTemplatePrefix, ownVersion+suffix),
			fmt.Sprintf("write %s%s beside it", ownTemplatePrefix, ownName+suffix))
	}
	if _, ok := templateVersionOf(version.value); !ok {
		r.error(version.at, "bad-value", fmt.Sprintf("%q is no version of a launch template", version.value), `write a number in quotes, "Latest" or "Default"`)
	}
}

// templateVersionOf is a version as AWS writes it.
func templateVersionOf(s string) (version string, ok bool) {
	switch strings.ToLower(strings.TrimPrefix(s, "$")) {
	case "latest":
		return intent.LatestVersion, true
	case "default":
		return intent.DefaultVersion, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return s, err == nil && n > 0 && strconv.FormatInt(n, 10) == s
}

// checkOwnArchitecture checks a key for one architecture: a group's overrides may
// each have a launch template, a nodegroup has one.
func checkOwnArchitecture(r reporter, key ownKey, suffix string, source Object) {
	if intent.PoolKind(r.ref.Kind) != intent.GroupPool {
		r.error(key.at, "not-allowed", fmt.Sprintf("%s is not allowed for a managed pool: a nodegroup has one launch template", key.at), fmt.Sprintf("write it without %s, and make a pool for each architecture", suffix))
		return
	}
	if overrides := path("spec", "mixedInstancesPolicy", "overrides"); !source.hasContent(overrides...) {
		r.error(key.at, "incomplete", fmt.Sprintf("%s needs %s, whose instance types have the launch template of their architecture", key.at, overrides),
			fmt.Sprintf("write it without %s, which is for all machines of the pool", suffix))
	}
}

// checkOwnCapacity checks the capacity type against what else says it.
func checkOwnCapacity(r reporter, c ownKey, source Object) {
	key := ownTemplatePrefix + ownCapacity
	if c.value != "on-demand" && c.value != "spot" {
		r.error(c.at, "bad-enum", fmt.Sprintf("%s cannot be %q", key, c.value), `it must be "on-demand" or "spot"`)
		return
	}
	if n := source.at("spec", "capacityType"); n != nil && !isNull(n) && n.Value != eksCapacity(c.value) {
		r.to.add(Fault{Code: "mismatch", Summary: fmt.Sprintf("%s is %q, but spec.capacityType is %q", key, c.value, n.Value), Detail: "write it once",
			Ref: r.ref, Path: c.at, Related: []RelatedField{{Ref: r.ref, Path: path("spec", "capacityType"), Message: "the pool's field"}}})
	}
	distribution, lt := path("spec", "mixedInstancesPolicy", "instancesDistribution"), path("spec", "awsLaunchTemplate")
	for _, at := range []intent.Path{distribution.Join("onDemandBaseCapacity"), distribution.Join("onDemandPercentageAboveBaseCapacity"), lt.Join("spotMarketOptions"), lt.Join("marketType")} {
		if source.has(at...) {
			exclusiveKey(r, c.at, at, "both say which machines are spot instances; write one of them")
		}
	}
}

// eksCapacity is spec.capacityType for a value of the key.
func eksCapacity(value string) string {
	if value == "on-demand" {
		return "onDemand"
	}
	return value
}

// noteOwnKeys reports the keys on an object where they are not read.
func noteOwnKeys(r reporter, m Meta) {
	for _, key := range slices.Sorted(maps.Values(keyPlaces(readOwnKeys(reporter{to: &faults{}}, m)))) {
		at := path("metadata", "annotations", key)
		if _, ok := m.Annotations[key]; !ok {
			at = path("metadata", "labels", key)
		}
		r.warn(at, "annotation-not-read", fmt.Sprintf("%s is not read on a %s", key, r.ref.Kind), "write it on the infrastructure pool")
	}
}

func keyPlaces(k ownKeys) map[string]string {
	out := map[string]string{}
	for name := range k {
		out[name] = ownTemplatePrefix + name
	}
	return out
}

// ownTemplate sets the launch template that a pool brings along, which has to
// boot the instance types; ok is false where it brings none.
func (d *draft) ownTemplate(m Meta, types []typeField) bool {
	k := readOwnKeys(reporter{to: &faults{}}, m)
	names, order := map[string][]string{}, []string{}
	for _, t := range types {
		suffix := "." + instancetypes.Architecture(t.name)
		if _, _, ok := k.named(suffix); !ok {
			suffix = ""
		}
		if _, _, ok := k.named(suffix); !ok {
			d.noOwnTemplate(k, t)
			continue
		}
		if names[suffix] == nil && suffix != "" {
			order = append(order, suffix)
		}
		names[suffix] = append(names[suffix], t.name)
	}
	d.ForeignTemplate = foreignTemplate(k, "", names[""])
	for _, suffix := range order {
		if d.ForeignTemplate == nil { // the group itself needs one
			d.ForeignTemplate = foreignTemplate(k, suffix, names[suffix])
		} else {
			d.ForeignOverrides = append(d.ForeignOverrides, *foreignTemplate(k, suffix, names[suffix]))
		}
	}
	for _, suffix := range ownArchitectures()[1:] {
		if key, _, ok := k.named(suffix); ok && len(names[suffix]) == 0 {
			d.infra.info(key.at, "not-carried", fmt.Sprintf("%s has no effect: no instance type of the pool is %s", key.at, suffix[1:]), "")
		}
	}
	return bringsTemplate(m)
}

// foreignTypes has the questions for a group's templates name the instance types
// that launch from them, now that the PoolOptions has added its own: an override
// with a template or an image of its own does not.
func (d *draft) foreignTypes() {
	if d.ForeignTemplate != nil && d.Nodegroup != nil && len(d.Nodegroup.InstanceTypes) > 0 {
		d.ForeignTemplate.Lookup.InstanceType = intent.JoinList(d.Nodegroup.InstanceTypes)
	}
	if d.ForeignTemplate == nil || d.Group == nil || d.Group.MixedInstancesPolicy == nil {
		return
	}
	var types []string
	for _, o := range d.Group.MixedInstancesPolicy.Overrides {
		if o.InstanceType != "" && o.LaunchTemplate == nil && o.ImageID == "" {
			types = append(types, o.InstanceType)
		}
	}
	others := d.ForeignOverrides
	d.ForeignOverrides = nil
	for _, f := range others {
		its := intent.SplitList(f.Lookup.InstanceType)
		not := func(t string) bool { return !slices.Contains(types, t) }
		f.Lookup.InstanceType = intent.JoinList(slices.DeleteFunc(slices.Clone(its), not))
		if f.Lookup.InstanceType != "" {
			d.ForeignOverrides = append(d.ForeignOverrides, f)
		}
		types = slices.DeleteFunc(types, func(t string) bool { return slices.Contains(its, t) })
	}
	d.ForeignTemplate.Lookup.InstanceType = intent.JoinList(types)
}

// noOwnTemplate reports an instance type for which the pool brings no template.
func (d *draft) noOwnTemplate(k ownKeys, t typeField) {
	named, ok := k.namesTemplate()
	if !ok {
		return
	}
	arch, detail := instancetypes.Architecture(t.name), fmt.Sprintf("write %s%s for such types", ownTemplatePrefix, ownName)
	if arch != "" {
		detail = fmt.Sprintf("write %s%s.%s", ownTemplatePrefix, ownName, arch)
	}
	d.faults.add(Fault{Code: "template-for-architecture", Summary: fmt.Sprintf("%s %s is %s, for which the pool brings no launch template", t.at, t.name, cmp.Or(arch, "of an architecture that weir does not know")),
		Detail: detail, Ref: d.Infrastructure, Path: t.at, Related: []RelatedField{{Ref: d.Infrastructure, Path: named.at, Message: "the template of another architecture"}}})
}

// byArchitecture says that a pool brings a template for one architecture, so that
// its instance types may have several.
func byArchitecture(m Meta) bool {
	k := readOwnKeys(reporter{to: &faults{}}, m)
	return slices.ContainsFunc(ownArchitectures()[1:], func(suffix string) bool { _, _, ok := k.named(suffix); return ok })
}

// foreignTemplate is the one that the keys of an architecture name, nil without one.
func foreignTemplate(k ownKeys, suffix string, types []string) *intent.ForeignTemplate {
	key, byID, ok := k.named(suffix)
	if !ok {
		return nil
	}
	out := &intent.ForeignTemplate{NameField: key.at,
		Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: key.value, Version: intent.LatestVersion, InstanceType: intent.JoinList(types)}}
	if byID {
		out.Lookup.Kind = intent.TemplateByID
	}
	version, written := k[ownVersion+suffix]
	if !written {
		version, written = k[ownVersion]
	}
	if written {
		out.VersionField = version.at
		out.Lookup.Version, _ = templateVersionOf(version.value) // checked before
	}
	return out
}

// ownCapacity applies the capacity type of a pool's keys: to a group as a share
// of on-demand instances, to a nodegroup as EKS's own field.
func (d *draft) ownCapacity(m Meta) {
	c, ok := readOwnKeys(reporter{to: &faults{}}, m)[ownCapacity]
	if !ok {
		return
	}
	if d.Nodegroup != nil {
		d.Nodegroup.CapacityType = capacityTypes()[eksCapacity(c.value)]
		return
	}
	if d.Group.MixedInstancesPolicy == nil {
		d.Group.MixedInstancesPolicy = mixed(&MixedInstancesPolicy{})
	}
	d.Group.MixedInstancesPolicy.OnDemandPercentageAboveBaseCapacity = map[string]int32{"on-demand": 100, "spot": 0}[c.value]
}

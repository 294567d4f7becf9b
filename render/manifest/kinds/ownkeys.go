package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
)

// Keys by which a pool names a launch template that it brings along, and says
// what its machines cost. They stand in annotations or labels of the pool's
// infrastructure object. Each of the first three may end in a dot and an
// architecture, and is then about the instance types of that architecture.
const (
	OwnTemplatePrefix = "node.k8s.aws/"

	OwnName     = "launch-template-name"
	OwnID       = "launch-template-id"
	OwnVersion  = "launch-template-version"
	OwnCapacity = "capacity-type"
)

// OwnArchitectures returns the possible suffixes of the keys; the first stands for all types.
func OwnArchitectures() []string { return []string{"", ".arm64", ".x86_64"} }

func ownKeyNames() []string {
	out := []string{OwnCapacity}
	for _, suffix := range OwnArchitectures() {
		out = append(out, OwnName+suffix, OwnID+suffix, OwnVersion+suffix)
	}
	return out
}

// OwnKey is the value of a key and the field that has it.
type OwnKey struct {
	Value string
	At    intent.Path
}

// OwnKeys are the keys of a pool, without their prefix.
type OwnKeys map[string]OwnKey

// ReadOwnKeys reads the keys of a pool from its annotations and its labels, which
// must not contradict each other.
func ReadOwnKeys(r Reporter, m Meta) OwnKeys {
	out := OwnKeys{}
	for _, part := range []struct {
		where  string
		values map[string]string
	}{{"annotations", m.Annotations}, {"labels", m.Labels}} {
		for _, key := range slices.Sorted(maps.Keys(part.values)) {
			name, ours := strings.CutPrefix(key, OwnTemplatePrefix)
			if !ours {
				continue
			}
			at := path("metadata", part.where, key)
			if !slices.Contains(ownKeyNames(), name) {
				unknownOwnKey(r, at, key, name)
				continue
			}
			value := part.values[key]
			first, twice := out[name]
			if twice && first.Value != value {
				r.To.Add(Fault{Code: "mismatch", Summary: fmt.Sprintf("%s is %q as a label and %q as an annotation", key, value, first.Value),
					Detail: "write it once", Ref: r.Ref, Path: at, Related: []RelatedField{{Ref: r.Ref, Path: first.At, Message: "the annotation"}}})
			}
			if !twice {
				out[name] = OwnKey{value, at}
			}
		}
	}
	return out
}

// otherArchitectureNames maps other names for EC2's architectures, such as those of Go and Debian:
// by its letters alone, amd64 is nearer to arm64 than to x86_64.
var otherArchitectureNames = strings.NewReplacer(".amd64", ".x86_64", ".x64", ".x86_64", ".x86-64", ".x86_64", ".aarch64", ".arm64")

// unknownOwnKey reports a key that is likely misspelt. The prefix is not weir's,
// so any other key belongs to another program.
func unknownOwnKey(r Reporter, at intent.Path, key, name string) {
	near := nearest.Word(otherArchitectureNames.Replace(name), ownKeyNames())
	if near == "" && !strings.HasPrefix(name, "launch-template") {
		return
	}
	detail := "weir reads " + OwnTemplatePrefix + strings.Join(ownKeyNames(), ", "+OwnTemplatePrefix)
	if near != "" {
		detail = fmt.Sprintf("did you mean %q?", OwnTemplatePrefix+near)
	}
	r.To.Add(Fault{Code: "unknown-annotation", Summary: "unknown key " + key, Detail: detail, Ref: r.Ref, Path: at, Key: true})
}

// Named is the key that names the template of an architecture, and whether it
// does so by id.
func (k OwnKeys) Named(suffix string) (key OwnKey, byID, ok bool) {
	if key, ok = k[OwnName+suffix]; ok {
		return key, false, true
	}
	key, ok = k[OwnID+suffix]
	return key, ok, ok
}

// NamesTemplate is the first key that names a template.
func (k OwnKeys) NamesTemplate() (OwnKey, bool) {
	for _, suffix := range OwnArchitectures() {
		if key, _, ok := k.Named(suffix); ok {
			return key, true
		}
	}
	return OwnKey{}, false
}

// BringsTemplate says that a pool names a launch template of its own.
func BringsTemplate(m Meta) bool {
	_, ok := ReadOwnKeys(Reporter{To: &Faults{}}, m).NamesTemplate()
	return ok
}

// TemplateVersionOf is a version as AWS writes it.
func TemplateVersionOf(s string) (version string, ok bool) {
	switch strings.ToLower(strings.TrimPrefix(s, "$")) {
	case "latest":
		return intent.LatestVersion, true
	case "default":
		return intent.DefaultVersion, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return s, err == nil && n > 0 && strconv.FormatInt(n, 10) == s
}

// EKSCapacity is spec.capacityType for a value of the key.
func EKSCapacity(value string) string {
	if value == "on-demand" {
		return "onDemand"
	}
	return value
}

// ByArchitecture says that a pool brings a template for one architecture, so that
// its instance types may have several.
func ByArchitecture(m Meta) bool {
	k := ReadOwnKeys(Reporter{To: &Faults{}}, m)
	return slices.ContainsFunc(OwnArchitectures()[1:], func(suffix string) bool { _, _, ok := k.Named(suffix); return ok })
}

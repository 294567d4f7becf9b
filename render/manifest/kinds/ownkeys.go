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

// Keys for a launch template that the pool does not declare, and for its capacity type. They are annotations
// or labels of the pool's infrastructure object. The first three may end in a dot and an architecture, and
// then apply to the instance types of that architecture.
const (
	OwnTemplatePrefix = "node.k8s.aws/"

	OwnName     = "launch-template-name"
	OwnID       = "launch-template-id"
	OwnVersion  = "launch-template-version"
	OwnCapacity = "capacity-type"
)

// OwnArchitectures returns the possible suffixes of the keys. The first one, "", means all types.
func OwnArchitectures() []string { return []string{"", ".arm64", ".x86_64"} }

func ownKeyNames() []string {
	out := []string{OwnCapacity}
	for _, suffix := range OwnArchitectures() {
		out = append(out, OwnName+suffix, OwnID+suffix, OwnVersion+suffix)
	}
	return out
}

// OwnKey is the value of a key and its field.
type OwnKey struct {
	Value string
	At    intent.Path
}

// OwnKeys are the keys of a pool, without their prefix.
type OwnKeys map[string]OwnKey

// ReadOwnKeys reads the keys of a pool from its annotations and labels. It reports contradictions between the
// two.
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

// otherArchitectureNames maps other names of architectures, such as those of Go and Debian, to EC2's names.
// Without it, a spelling correction would turn amd64 into arm64 rather than x86_64.
var otherArchitectureNames = strings.NewReplacer(".amd64", ".x86_64", ".x64", ".x86_64", ".x86-64", ".x86_64", ".aarch64", ".arm64")

// unknownOwnKey reports a key that is likely misspelled. The prefix is not only weir's, so any other key may
// belong to another program.
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

// Named returns the key that names the template of an architecture. byID is true if the key has the
// template's id.
func (k OwnKeys) Named(suffix string) (key OwnKey, byID, ok bool) {
	if key, ok = k[OwnName+suffix]; ok {
		return key, false, true
	}
	key, ok = k[OwnID+suffix]
	return key, ok, ok
}

// NamesTemplate returns the first key that names a template.
func (k OwnKeys) NamesTemplate() (OwnKey, bool) {
	for _, suffix := range OwnArchitectures() {
		if key, _, ok := k.Named(suffix); ok {
			return key, true
		}
	}
	return OwnKey{}, false
}

// BringsTemplate reports whether a pool names a foreign launch template.
func BringsTemplate(m Meta) bool {
	_, ok := ReadOwnKeys(Reporter{To: &Faults{}}, m).NamesTemplate()
	return ok
}

// TemplateVersionOf returns a version in AWS's spelling.
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

// EKSCapacity returns spec.capacityType for a value of the key.
func EKSCapacity(value string) string {
	if value == "on-demand" {
		return "onDemand"
	}
	return value
}

// ByArchitecture reports whether a pool names a template for a single architecture. Its instance types may
// then have several architectures.
func ByArchitecture(m Meta) bool {
	k := ReadOwnKeys(Reporter{To: &Faults{}}, m)
	return slices.ContainsFunc(OwnArchitectures()[1:], func(suffix string) bool { _, _, ok := k.Named(suffix); return ok })
}

package manifest_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// silent are fields of pools that change nothing and say nothing, by path below
// spec, each with the reason.
var silent = map[string]string{
	"providerID":                               "controllers write it",
	"providerIDList":                           "controllers write it",
	"template.spec.providerID":                 "controllers write it",
	"template.spec.infrastructureRef.apiGroup": "the kind tells",
	"refreshPreferences.strategy":              "it takes one value alone",
	"template.metadata":                        "metadata of machines, which pools of AWS have none of",
}

// TestEveryFieldCounts writes each field of a pool, one at a time: the intents
// must change, or a finding must say why they do not.
func TestEveryFieldCounts(t *testing.T) {
	const infra = "infrastructure.cluster.x-k8s.io/v1beta2"
	bases := map[string]struct {
		apiVersion string
		spec       map[string]any
		rest       string
	}{
		"MachinePool": {"cluster.x-k8s.io/v1beta2", map[string]any{"clusterName": "c", "template": map[string]any{"spec": map[string]any{"clusterName": "c",
			"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSMachinePool", "name": "web"}, "bootstrap": map[string]any{"dataSecretName": ""}}}},
			groupPool("maxSize: 9\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")},
		"AWSMachinePool": {infra, map[string]any{"awsLaunchTemplate": map[string]any{"instanceType": "m5.large", "ami": map[string]any{"id": "ami-00000001"}}}, machinePool("AWSMachinePool", "", noBootstrap)},
		"PoolOptions": {"weir.dev/v1alpha1", map[string]any{"poolRef": map[string]any{"kind": "AWSMachinePool", "name": "web"}},
			stream(machinePool("AWSMachinePool", "", noBootstrap), groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"))},
		"AWSLaunchConfig": {infra, map[string]any{"instanceType": "m5.large", "ami": map[string]any{"id": "ami-00000001"}}, user("pool", "AWSMachinePool", "AWSLaunchConfig", "")},
		"AWSLaunchConfigTemplate": {infra, map[string]any{"template": map[string]any{"spec": map[string]any{"instanceType": "m5.large", "ami": map[string]any{"id": "ami-00000001"}}}},
			user("pool", "AWSMachinePool", "AWSLaunchConfigTemplate", "")},
		"AWSManagedMachinePool": {infra, map[string]any{"awsLaunchTemplate": map[string]any{"instanceType": "m5.large"}}, machinePool("AWSManagedMachinePool", "", noBootstrap)},
	}
	for kind, base := range bases {
		name := "web"
		if strings.HasPrefix(kind, "AWSLaunchConfig") {
			name = "shared"
		}
		run := func(spec map[string]any) (any, []kinds.Fault) {
			text, err := json.Marshal(map[string]any{"apiVersion": base.apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec})
			if err != nil {
				t.Fatal(err)
			}
			return manifest.Intents(objects(t, stream(string(text), base.rest, eksCluster)), manifest.Options{})
		}
		want, known := run(base.spec)
		schema := kinds.Schemas()[kinds.SchemaVersion{APIVersion: base.apiVersion, Kind: kind}].Properties["spec"]
		for _, path := range leaves(schema, nil) {
			name := strings.Join(path, ".")
			if slices.ContainsFunc(slices.Collect(maps.Keys(silent)), func(p string) bool { return name == p || strings.HasPrefix(name, p+".") }) {
				continue
			}
			set, faults := run(put(schema, base.spec, path).(map[string]any))
			if cmp.Diff(want, set) == "" && len(faults) <= len(known) {
				t.Errorf("%s: spec.%s changes nothing, and nothing says so", kind, name)
			}
		}
	}
}

// leaves are the paths below a schema that hold no further fields.
func leaves(s *kinds.Schema, path []string) (out [][]string) {
	switch {
	case len(s.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			out = append(out, leaves(s.Properties[name], append(slices.Clone(path), name))...)
		}
		return out
	case s.Items != nil && len(s.Items.Properties) > 0:
		return leaves(s.Items, append(slices.Clone(path), "[]"))
	}
	return [][]string{path}
}

// put returns a copy of v with a value at path that differs from the default.
func put(s *kinds.Schema, v any, path []string) any {
	if len(path) == 0 {
		return other(s)
	}
	if path[0] == "[]" {
		return []any{put(s.Items, nil, path[1:])}
	}
	m, _ := v.(map[string]any)
	if m = maps.Clone(m); m == nil {
		m = map[string]any{}
	}
	m[path[0]] = put(s.Properties[path[0]], m[path[0]], path[1:])
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			m[name] = other(s.Properties[name])
		}
	}
	return m
}

// other is a value that is not the default.
func other(s *kinds.Schema) any {
	switch s.Type {
	case "integer":
		if s.Minimum != nil {
			return *s.Minimum + 2
		}
		return 2
	case "boolean":
		return s.Default != true
	case "array":
		return []any{other(s.Items)}
	case "object":
		m := map[string]any{}
		if s.AdditionalProperties != nil {
			m["k"] = other(s.AdditionalProperties)
		}
		for _, name := range s.Required {
			m[name] = other(s.Properties[name])
		}
		return m
	}
	for _, word := range slices.Backward(s.Enum) {
		if word != s.Default && word != "" {
			return word
		}
	}
	if s.Format == "duration" {
		return "45s"
	}
	return "us-east-1a"
}

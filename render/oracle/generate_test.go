package oracle

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// seed is a spec that both accept once it is completed, to which one thing is done
// at a time.
func seed(s subject) map[string]any {
	if s.Kind != "MachinePool" {
		return map[string]any{}
	}
	reference := map[string]any{"kind": "AWSMachinePool", "name": "web", "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2"}
	if strings.HasSuffix(s.APIVersion, "v1beta2") {
		reference = map[string]any{"kind": "AWSMachinePool", "name": "web", "apiGroup": "infrastructure.cluster.x-k8s.io"}
	}
	return map[string]any{"clusterName": "c", "template": map[string]any{"spec": map[string]any{
		"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "s"}, "infrastructureRef": reference,
	}}}
}

// minimal is a value with only what a schema requires.
func minimal(s *spec.Schema) any {
	if s.Default != nil {
		return clone(s.Default)
	}
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type.Contains("string"):
		return sample(s)
	case s.Type.Contains("integer"), s.Type.Contains("number"):
		if s.Minimum != nil && *s.Minimum > 1 {
			return int64(*s.Minimum)
		}
		return int64(1)
	case s.Type.Contains("boolean"):
		return true
	case s.Type.Contains("array"):
		return []any{minimal(s.Items.Schema)}
	}
	out := map[string]any{}
	complete(s, out)
	return out
}

// complete adds what a schema requires and is not there.
func complete(s *spec.Schema, out map[string]any) {
	for _, name := range s.Required {
		if _, ok := out[name]; !ok {
			out[name] = minimal(ptr(s.Properties[name]))
		}
	}
}

// sample is a text that a schema takes.
func sample(s *spec.Schema) any {
	for _, text := range []string{"xx1", "v1.31.0", "AWSCluster", "cagw-1"} {
		if int64(len(text)) >= value(s.MinLength) && (s.Pattern == "" || matches(s.Pattern, text)) {
			return text
		}
	}
	return strings.Repeat("x", int(value(s.MinLength)))
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// fields lists the paths below a schema, leaves and containers.
func fields(s *spec.Schema, path []string) (out [][]string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := append(slices.Clone(path), name)
		out = append(append(out, below), fields(ptr(s.Properties[name]), below)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		out = append(out, fields(s.Items.Schema, append(slices.Clone(path), "[]"))...)
		if len(s.Items.Schema.Properties) == 0 {
			out = append(out, append(slices.Clone(path), "[]"))
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		out = append(out, append(slices.Clone(path), "{}"))
	}
	return out
}

// below is the schema at a path.
func below(s *spec.Schema, path []string) *spec.Schema {
	for _, e := range path {
		switch e {
		case "[]":
			s = s.Items.Schema
		case "{}":
			s = s.AdditionalProperties.Schema
		default:
			s = ptr(s.Properties[e])
		}
	}
	return s
}

// with returns a copy of a value in which path holds v, with all that is required
// on the way there.
func with(s *spec.Schema, root any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	next := below(s, path[:1])
	if path[0] == "[]" {
		list, _ := root.([]any)
		if len(list) == 0 {
			list = []any{minimal(next)}
		}
		list = slices.Clone(list)
		list[0] = with(next, list[0], path[1:], v)
		return list
	}
	object, _ := root.(map[string]any)
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	key := path[0]
	if key == "{}" {
		key = "key"
	}
	object[key] = with(next, object[key], path[1:], v)
	complete(s, object)
	return object
}

// candidates are values to put in a field: good, at the bounds, and bad.
func candidates(s *spec.Schema) []any {
	out := []any{nil, "x", int64(5), true, []any{}, map[string]any{}}
	switch {
	case s.Type.Contains("string"):
		out = append(out, "", "xx1", "0s", "-5s", "500ms", "29s", "30s", "48h", "48h1s", "subnet-00000001", "sg-00000001", "ami-00000001", "1.5", "v1.31", "v1.31.2", "arn:aws:iam::1:role/r",
			strings.Repeat("a", 64), strings.Repeat("a", 300))
		for _, n := range []*int64{s.MinLength, s.MaxLength} {
			if n != nil && *n < 20000 {
				out = append(out, strings.Repeat("a", int(max(*n-1, 0))), strings.Repeat("a", int(*n)), strings.Repeat("a", int(*n)+1))
			}
		}
		out = append(out, s.Enum...)
	case s.Type.Contains("integer"):
		out = append(out, int64(-1), int64(0), int64(1), int64(2), int64(7), int64(8), int64(99), int64(100), int64(101), int64(124), int64(125), int64(200), int64(201),
			int64(2000), int64(2001), int64(1<<31-1), int64(1<<31), int64(1<<40), 1.5, "5")
		for _, n := range []*float64{s.Minimum, s.Maximum} {
			if n != nil {
				out = append(out, int64(*n)-1, int64(*n), int64(*n)+1)
			}
		}
	case s.Type.Contains("boolean"):
		out = append(out, false, "true", int64(0))
	case s.Type.Contains("array"):
		one := minimal(s.Items.Schema)
		out = append(out, []any{one}, []any{one, one}, []any{nil}, "x")
		for _, n := range []*int64{s.MinItems, s.MaxItems} {
			if n != nil && *n < 200 {
				out = append(out, slices.Repeat([]any{one}, int(*n)), slices.Repeat([]any{one}, int(*n)+1))
			}
		}
	default:
		out = append(out, minimal(s), map[string]any{"unknownField": int64(1)})
		if s.AdditionalProperties != nil {
			for _, key := range []string{"", "aws:x", "AWS:x", "a b", "a*b", "ключ", "weir.dev/x", strings.Repeat("k", 128), strings.Repeat("k", 129)} {
				out = append(out, map[string]any{key: "v"})
			}
			for _, v := range []any{nil, "", "a*b", strings.Repeat("v", 256), strings.Repeat("v", 257), "значение"} {
				out = append(out, map[string]any{"key": v})
			}
		}
	}
	return out
}

// generator makes values at random, without what weir passes over.
type generator struct {
	*rand.Rand
	weir *kinds.Schema
}

// value mostly obeys a schema, and refers to things by ids.
func (r generator) value(s *spec.Schema, path []string) any {
	switch {
	case s.Type.Contains("array"):
		out := make([]any, r.IntN(3))
		for i := range out {
			out[i] = r.value(s.Items.Schema, append(slices.Clone(path), "[]"))
		}
		return out
	case len(s.Properties) > 0:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			at := append(slices.Clone(path), name)
			if !passedOver(r.weir, at) && (slices.Contains(s.Required, name) || r.IntN(3) == 0) {
				out[name] = r.value(ptr(s.Properties[name]), at)
			}
		}
		return out
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		out := map[string]any{}
		for range r.IntN(3) {
			out[string(rune('a'+r.IntN(5)))] = r.value(s.AdditionalProperties.Schema, append(slices.Clone(path), "{}"))
		}
		return out
	case len(s.Enum) > 0:
		return s.Enum[r.IntN(len(s.Enum))]
	case s.Type.Contains("boolean"):
		return r.IntN(2) == 0
	case s.Type.Contains("integer"):
		return r.number(s)
	case s.Type.Contains("string"):
		return r.text(s, path)
	}
	return minimal(s)
}

func (r generator) number(s *spec.Schema) any {
	low, high := int64(0), int64(300)
	if s.Minimum != nil {
		low = int64(*s.Minimum)
	}
	if s.Maximum != nil {
		high = int64(*s.Maximum)
	}
	return low + r.Int64N(high-low+1)
}

func (r generator) text(s *spec.Schema, path []string) any {
	last := ""
	for _, e := range path {
		if e != "[]" && e != "{}" {
			last = e
		}
	}
	choices := []string{}
	switch {
	case last == "type":
		choices = []string{"gp2", "gp3", "io1", "io2"}
	case strings.HasSuffix(last, "imeout") || strings.HasPrefix(last, "default"):
		choices = []string{"0s", "1s", "999ms", "30s", "5m", "1h"}
	case last == "id" && slices.Contains(path, "subnets"), last == "subnetIDs":
		choices = []string{"subnet-00000001", "subnet-00000002"}
	case last == "id" && slices.Contains(path, "additionalSecurityGroups"):
		choices = []string{"sg-00000001", "sg-00000002"}
	case last == "id":
		choices = []string{"ami-00000001"}
	case last == "maxPrice":
		choices = []string{"", "0.5", "1"}
	case last == "strategy":
		choices = []string{"Rolling"}
	}
	if len(choices) > 0 {
		return choices[r.IntN(len(choices))]
	}
	if text, ok := sample(s).(string); ok && r.IntN(8) > 0 {
		return text
	}
	return "x" + string(rune('a'+r.IntN(26)))
}

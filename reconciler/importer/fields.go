package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/field"
)

// elsewhere lists the rows of the table that fields does not write, each with the reason. A test compares it
// with the table.
var elsewhere = map[field.Kind]map[string]string{
	field.Group: {
		"SkipZonalShiftValidation": "it goes with requests; no group has it",
		"DeleteWarmPool":           "it says that there is no warm pool, which a manifest without one leaves as it is",
		"LoadBalancerNames":        "Auto Scaling lists them among the traffic sources",
		"TargetGroupARNs":          "Auto Scaling lists them among the traffic sources",
	},
	field.Nodegroup: {
		"Version": "the MachinePool has it",
	},
	field.Template: {
		"SecurityGroupIds":                              "each is an object in manifests",
		"TagSpecifications[].ResourceType":              "the pool's tags are on machines and volumes",
		"TagSpecifications[].Tags[].Key":                "they are the pool's additionalTags",
		"TagSpecifications[].Tags[].Value":              "they are the pool's additionalTags",
		"UserData":                                      "it comes from the bootstrap configuration",
		"BlockDeviceMappings[].Ebs.DeleteOnTermination": "volumes of a pool end with their machine, and others are refused",
	},
}

// fields writes the members of settings of a kind where manifests have them: into the pool's spec and the
// spec of its PoolOptions. It changes both.
func fields(of field.Kind, settings any, spec, options map[string]any) {
	tree := plain(settings)
	for _, r := range field.Rows(of) {
		if elsewhere[of][r.AWS] != "" {
			continue
		}
		found := func(at []int, v any) {
			switch {
			case !r.Required && r.Absent != "" && !r.OfPool() && fmt.Sprint(v) == r.Absent:
			case r.OfPool():
				put(spec, split(r.PoolFields()[0]), at, converted(of, r.AWS, v))
			default:
				put(options, split(r.OptionsField()), at, v)
			}
		}
		path := split(cmp.Or(r.Member, r.AWS))
		collect(tree, path, nil, found)
		if inner, ok := tree.(map[string]any)["options"]; ok && of == field.Group {
			collect(inner, path, nil, found)
		}
	}
}

// converted returns a value in the spelling of Cluster API Provider AWS.
func converted(of field.Kind, member string, v any) any {
	switch {
	case of == field.Template:
		return templateWords(member, v)
	case of == field.Group && (member == "DefaultCooldown" || member == "DefaultInstanceWarmup"):
		return fmt.Sprint(v, "s")
	case of == field.Nodegroup && member == "CapacityType":
		return map[any]string{"ON_DEMAND": "onDemand", "SPOT": "spot"}[v]
	case of == field.Nodegroup && member == "Taints[].Effect":
		return strings.ReplaceAll(strings.ToLower(v.(string)), "_", "-")
	}
	return v
}

// plain returns a value as maps, lists, texts and numbers, by its JSON keys.
func plain(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("importer: %T cannot be JSON: %v", v, err)) // the structs of package intent can
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out any
	_ = d.Decode(&out) // it was just encoded
	return numbers(out)
}

// numbers replaces json.Number by integers.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// split splits A.B[].C into A, B, [] and C.
func split(path string) []string { return strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".") }

// collect calls found for each value at a path, with the positions in the lists along it.
func collect(v any, path []string, at []int, found func([]int, any)) {
	if len(path) == 0 {
		found(at, v)
		return
	}
	switch v := v.(type) {
	case []any:
		if path[0] == "[]" {
			for i := range v {
				collect(v[i], path[1:], append(at[:len(at):len(at)], i), found)
			}
		}
	case map[string]any:
		for k, item := range v {
			if strings.EqualFold(k[:1], path[0][:1]) && k[1:] == path[0][1:] {
				collect(item, path[1:], at, found)
			}
		}
	}
}

// put sets the value at a path. at has the positions in the lists along it.
func put(in any, path []string, at []int, v any) any {
	if len(path) == 0 {
		return v
	}
	if path[0] == "[]" {
		list, _ := in.([]any)
		for len(list) <= at[0] {
			list = append(list, nil)
		}
		list[at[0]] = put(list[at[0]], path[1:], at[1:], v)
		return list
	}
	m, _ := in.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	m[path[0]] = put(m[path[0]], path[1:], at, v)
	return m
}

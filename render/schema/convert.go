package schema

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// converter converts decoder schemas to JSON Schema.
type converter struct{ Options }

// object returns the schema of a whole object.
func (c converter) object(k Kind, s *kinds.Schema) Node {
	out := c.convert(s, true)
	out["title"] = k.Name + " " + k.apiVersion()
	props := out["properties"].(Node)
	props["apiVersion"], props["kind"] = Node{"const": k.apiVersion()}, Node{"const": k.Name}
	required := []string{"apiVersion", "kind"}
	if !c.Partial {
		required = slices.Compact(slices.Sorted(slices.Values(append(required, s.Required...))))
	}
	out["required"] = required
	return out
}

// convert returns the schema of a field. Null is accepted for a field that is not required, and means that
// the field is not written.
func (c converter) convert(s *kinds.Schema, required bool) Node {
	out := Node{}
	switch s.Type {
	case "":
		return out
	case "object":
		out = c.members(s)
	case "array":
		out = Node{"type": "array", "items": c.convert(s.Items, true)}
		bound(out, "minItems", s.MinItems)
		bound(out, "maxItems", s.MaxItems)
		if c.Partial {
			delete(out, "minItems")
		}
	default:
		out = scalar(s)
	}
	if !required || c.Partial {
		out = orNull(out)
	}
	if s.Default != nil {
		out["default"] = s.Default
	}
	return out
}

// members returns the schema of a struct or a map.
func (c converter) members(s *kinds.Schema) Node {
	out := Node{"type": "object"}
	if s.Properties == nil {
		// Null for a key means an empty value.
		out["additionalProperties"] = c.convert(s.AdditionalProperties, false)
	} else {
		props := Node{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if p := s.Properties[name]; !p.Refused {
				props[name] = c.convert(p, slices.Contains(s.Required, name))
			}
		}
		out["properties"], out["additionalProperties"] = props, false
		if len(s.Required) > 0 && !c.Partial {
			out["required"] = s.Required
		}
		if c.Partial {
			// directives such as $patch and $retainKeys
			out["patternProperties"] = Node{`^\$`: Node{}}
		}
	}
	if !c.Partial {
		bound(out, "minProperties", s.MinProperties)
	}
	return out
}

// Duration is the pattern of durations that Go can parse.
const Duration = `^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$`

// scalar returns the schema of a string, number or boolean. If only certain values are valid, a string with a
// variable is accepted as well.
func scalar(s *kinds.Schema) Node {
	out := Node{"type": s.Type}
	if s.Enum != nil {
		out["enum"] = s.Enum
	}
	if s.Minimum != nil {
		out["minimum"] = *s.Minimum
	}
	if s.Maximum != nil {
		out["maximum"] = *s.Maximum
	}
	bound(out, "minLength", s.MinLength)
	bound(out, "maxLength", s.MaxLength)
	if s.Pattern != "" {
		out["pattern"] = s.Pattern
	}
	if s.Format == "duration" {
		// JSON Schema defines "duration" differently.
		out["pattern"] = Duration
	}
	if s.Type == "string" && len(out) == 1 {
		return out
	}
	return Node{"anyOf": []any{out, ref("variable")}}
}

func bound(n Node, name string, value int64) {
	if value > 0 {
		n[name] = value
	}
}

// orNull adds null to the accepted values.
func orNull(n Node) Node {
	if list, ok := n["anyOf"].([]any); ok {
		n["anyOf"] = append(list, Node{"type": "null"})
		return n
	}
	if t, ok := n["type"].(string); ok {
		n["type"] = []string{t, "null"}
	}
	return n
}

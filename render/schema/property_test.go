package schema_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/schema"
)

// generator draws values that a schema describes, and from time to time others.
type generator struct {
	rt *rapid.T
	// faults is how many values in a hundred are of another type, out of their
	// range, not in the list, or of a field that does not exist.
	faults int
}

func (g *generator) chance(percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(g.rt, what) < percent
}

func (g *generator) value(s *kinds.Schema, depth int) any {
	if g.chance(g.faults, "fault") {
		return rapid.SampledFrom([]any{"text", "", 7, -1, 1.5, true, nil, []any{}, []any{"a"}, map[string]any{}, map[string]any{"a": "b"}, "yes"}).Draw(g.rt, "wrong")
	}
	switch s.Type {
	case "object":
		return g.object(s, depth)
	case "array":
		out := []any{}
		for range rapid.IntRange(int(s.MinItems), int(s.MinItems)+2).Draw(g.rt, "items") {
			out = append(out, g.value(s.Items, depth-1))
		}
		return out
	case "boolean":
		return rapid.Bool().Draw(g.rt, "bool")
	case "integer":
		low, high := int64(0), int64(1000)
		if s.Minimum != nil {
			low = *s.Minimum
		}
		if s.Maximum != nil {
			high = *s.Maximum
		}
		return rapid.Int64Range(low, max(low, high)).Draw(g.rt, "number")
	case "string":
		switch {
		case s.Enum != nil:
			return rapid.SampledFrom(s.Enum).Draw(g.rt, "word")
		case s.Format == "duration":
			return rapid.SampledFrom([]string{"5m", "1h30m", "0", "1.5h", "-2s", "100ms"}).Draw(g.rt, "duration")
		case s.Pattern != "":
			return rapid.StringMatching(s.Pattern).Draw(g.rt, "matching")
		}
		return strings.Repeat("a", max(1, int(s.MinLength)))
	}
	return "anything"
}

func (g *generator) object(s *kinds.Schema, depth int) map[string]any {
	out := map[string]any{}
	if s.Properties == nil {
		for range rapid.IntRange(0, 2).Draw(g.rt, "keys") {
			out[rapid.StringMatching(`[a-z]{1,5}`).Draw(g.rt, "key")] = g.value(s.AdditionalProperties, depth-1)
		}
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		wanted := slices.Contains(s.Required, name) && !g.chance(g.faults, "left out")
		if !p.Refused && (wanted || depth > 0 && g.chance(40, "written")) {
			out[name] = g.value(p, depth-1)
		}
	}
	if g.chance(g.faults, "unknown") {
		out["unknownField"] = "a"
	}
	return out
}

// TestWhatTheDecoderTakesTheSchemaTakes checks it for objects of all kinds, those
// with faults included: what the schema refuses, the decoder refuses.
func TestWhatTheDecoderTakesTheSchemaTakes(t *testing.T) {
	all := kinds.Schemas()
	every := schema.Kinds()
	validators := map[schema.Kind]interface{ Validate(any) error }{}
	for _, k := range every {
		n, err := schema.Of(k, schema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		validators[k] = compiled(t, n)
	}
	accepted, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.SampledFrom(every).Draw(rt, "kind")
		g := &generator{rt: rt, faults: rapid.SampledFrom([]int{0, 0, 1, 4}).Draw(rt, "faults")}
		apiVersion := k.Group + "/" + k.Version
		o := g.object(all[kinds.SchemaVersion{APIVersion: apiVersion, Kind: k.Name}], rapid.IntRange(1, 6).Draw(rt, "depth"))
		o["apiVersion"], o["kind"], o["metadata"] = apiVersion, k.Name, map[string]any{"name": "web"}
		text, err := yaml.Marshal(o)
		if err != nil {
			rt.Fatal(err)
		}
		said := validators[k].Validate(toJSON(t, string(text)))
		if said == nil {
			accepted++
			return
		}
		refused++
		if faults := refuses(t, string(text)); len(faults) == 0 {
			rt.Fatalf("the schema refuses what the decoder takes: %v\n%s", said, text)
		}
	})
	if accepted == 0 || refused == 0 {
		t.Errorf("%d accepted and %d refused: one side was not tried", accepted, refused)
	}
}

// TestUnknownFieldsAndWordsAreRefusedEverywhere puts one fault into each place of
// each kind that has a list of words or a fixed set of fields.
func TestUnknownFieldsAndWordsAreRefusedEverywhere(t *testing.T) {
	all := kinds.Schemas()
	for _, k := range schema.Kinds() {
		n, err := schema.Of(k, schema.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v := compiled(t, n)
		apiVersion := k.Group + "/" + k.Version
		s := all[kinds.SchemaVersion{APIVersion: apiVersion, Kind: k.Name}]
		for _, place := range faultyPlaces(s.Properties["spec"], nil) {
			head := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: web}\n", apiVersion, k.Name)
			text := head + "spec: " + place + "\n"
			if err := v.Validate(toJSON(t, text)); err == nil {
				t.Errorf("%s %s: the schema takes spec: %s", k.Name, k.Version, place)
			}
			if len(refuses(t, text)) == 0 {
				t.Errorf("%s %s: the decoder takes spec: %s", k.Name, k.Version, place)
			}
		}
	}
}

var noName = regexp.MustCompile(`^[^a-zA-Z]`)

// faultyPlaces returns specs in YAML's flow form, each with one fault, for each
// place below s.
func faultyPlaces(s *kinds.Schema, path []string) []string {
	wrap := func(inner string) string {
		for _, e := range slices.Backward(path) {
			if e == "[]" {
				inner = "[" + inner + "]"
			} else {
				inner = "{" + e + ": " + inner + "}"
			}
		}
		return inner
	}
	var out []string
	switch {
	case s == nil || s.Refused || len(path) > 12:
	case s.Type == "string" && s.Enum != nil:
		out = append(out, wrap("no-such-word"))
	case s.Type == "array":
		out = faultyPlaces(s.Items, append(slices.Clone(path), "[]"))
	case s.Type == "object" && s.Properties == nil:
		out = faultyPlaces(s.AdditionalProperties, append(slices.Clone(path), "key"))
	case s.Type == "object":
		out = append(out, wrap("{noSuchField: 1}"))
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if !noName.MatchString(name) {
				out = append(out, faultyPlaces(s.Properties[name], append(slices.Clone(path), name))...)
			}
		}
	}
	return out
}

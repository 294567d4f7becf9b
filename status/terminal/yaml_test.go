package terminal

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestYAMLKeepsTheOrder(t *testing.T) {
	got, err := YAML([]byte(`{"z":1,"a":{"list":[1.5,"1.5","yes",null,true,{}],"none":[]},"text":"two\nlines","date":"2026-01-02","n":"~"}`))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "value.yaml", string(got))
	for _, broken := range []string{"", "{", `{"a":1}{"b":2}`, "[1,]"} {
		if out, err := YAML([]byte(broken)); err == nil {
			t.Errorf("%q gives %q", broken, out)
		}
	}
}

// TestYAMLIsTheJSON reads both forms back: a text never becomes a number, a date
// or a truth value.
func TestYAMLIsTheJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "null", "~", "on", "0x1f", "1e3", "2026-01-02", "- a", "a: b", "#", "'", "\"", "<<", "=", "\u2028", "\u0085", "\ufeff", "a\n\n b\n"}))
		in := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			in[text.Draw(t, "name")] = []any{text.Draw(t, "value"), rapid.Bool().Draw(t, "bool"), rapid.IntRange(-1e9, 1e9).Draw(t, "int"), nil}
		}
		asJSON, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := YAML(asJSON)
		if err != nil {
			t.Fatal(err)
		}
		var back, want any
		if err := yaml.Unmarshal(out, &back); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		again, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if json.Unmarshal(again, &got) != nil || json.Unmarshal(asJSON, &want) != nil {
			t.Fatal("no JSON")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-JSON +YAML): %s\n%s", diff, out)
		}
	})
}

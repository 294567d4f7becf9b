package oracle

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// moduleDir returns where a module's files are.
var moduleDir = func() func(module string) (string, error) {
	var mu sync.Mutex
	dirs := map[string]string{}
	return func(module string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if dir, ok := dirs[module]; ok {
			return dir, nil
		}
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			return "", fmt.Errorf("find module %s: %w", module, err)
		}
		dirs[module] = strings.TrimSpace(string(out))
		return dirs[module], nil
	}
}()

// schemaOf reads the schema that the API server has for a subject.
func schemaOf(t testing.TB, s subject) *spec.Schema {
	t.Helper()
	dir, err := moduleDir(s.module)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.file)))
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema json.RawMessage
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatalf("%s: %v", s.file, err)
	}
	for _, v := range crd.Spec.Versions {
		if strings.HasSuffix(s.APIVersion, "/"+v.Name) {
			out := &spec.Schema{}
			if err := json.Unmarshal(v.Schema.OpenAPIV3Schema, out); err != nil {
				t.Fatalf("%s: %v", s.file, err)
			}
			return out
		}
	}
	t.Fatalf("%s has no version of %s", s.file, s.APIVersion)
	return nil
}

var update = flag.Bool("update", false, "write weir's limits.txt anew from the schemas")

// TestSchemas compares defaults and constraints of the custom resource
// definitions with those of weir's schemas.
func TestSchemas(t *testing.T) {
	found, schemas := findings{}, kinds.Schemas()
	var limits []string
	for _, s := range subjects() {
		theirs := schemaOf(t, s)
		own := schemas[s.SchemaVersion]
		compareSchemas(found, s, "spec", ptr(theirs.Properties["spec"]), own.Properties["spec"])
		limits = append(limits, limitsOf(s, "spec", ptr(theirs.Properties["spec"]), own.Properties["spec"])...)
	}
	if *update {
		slices.Sort(limits)
		text := "# Written by the oracle module from the schemas of Cluster API and CAPA: see CONTRIBUTING.md.\n" + strings.Join(limits, "\n") + "\n"
		if err := os.WriteFile("../manifest/kinds/limits.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Skip("limits.txt is written: run the test again without -update")
	}
	found.judge(t, "schema")
}

func ptr[T any](v T) *T { return &v }

// compareSchemas compares what both know; what only one knows is TestPaths's.
func compareSchemas(found findings, s subject, path string, theirs *spec.Schema, own *kinds.Schema) {
	if own.Type == "" {
		return // weir passes over it, which TestPaths says
	}
	note := func(what string, theirs, own any) {
		if a, b := printed(theirs), printed(own); a != b {
			found.add(finding{"schema", s.name(), path, what + ": they have " + a + ", weir has " + b}, "")
		}
	}
	note("default", theirs.Default, own.Default)
	note("enum", words(theirs.Enum), words(own.Enum))
	note("minimum", theirs.Minimum, own.Minimum)
	note("maximum", theirs.Maximum, own.Maximum)
	note("minLength", notZero(theirs.MinLength), positive(own.MinLength))
	note("maxLength", theirs.MaxLength, positive(own.MaxLength))
	note("minItems", notZero(theirs.MinItems), positive(own.MinItems))
	note("maxItems", theirs.MaxItems, positive(own.MaxItems))
	note("minProperties", theirs.MinProperties, positive(own.MinProperties))
	note("pattern", theirs.Pattern, own.Pattern)
	note("rules", rules(theirs), nil)
	for name, property := range theirs.Properties {
		if weir := own.Properties[name]; weir != nil {
			at := path + "." + name
			// A field with a default is never missing.
			required := slices.Contains(theirs.Required, name) && property.Default == nil
			if own := slices.Contains(own.Required, name); own && !required {
				found.add(finding{"schema", s.name(), at, "weir requires it, they do not"}, "")
			} else if required && !own {
				found.add(finding{"schema", s.name(), at, "they require it, weir does not"}, "")
			}
			compareSchemas(found, s, at, &property, weir)
		}
	}
	if theirs.Items != nil && own.Items != nil {
		compareSchemas(found, s, path+"[]", theirs.Items.Schema, own.Items)
	}
	if theirs.AdditionalProperties != nil && own.AdditionalProperties != nil {
		compareSchemas(found, s, path+"{}", theirs.AdditionalProperties.Schema, own.AdditionalProperties)
	}
}

// limitsOf writes the lines of weir's limits.txt for what both know.
func limitsOf(s subject, path string, theirs *spec.Schema, own *kinds.Schema) (lines []string) {
	if own == nil || own.Type == "" || theirs == nil {
		return nil
	}
	var bounds []string
	for _, b := range []struct {
		name  string
		value *int64
	}{
		{"minLength", theirs.MinLength}, {"maxLength", theirs.MaxLength}, {"minItems", theirs.MinItems},
		{"maxItems", theirs.MaxItems}, {"minProperties", theirs.MinProperties},
		{"minimum", whole(theirs.Minimum)}, {"maximum", whole(theirs.Maximum)},
	} {
		if b.value != nil && (*b.value != 0 || b.name == "minimum") {
			bounds = append(bounds, fmt.Sprintf("%s=%d", b.name, *b.value))
		}
	}
	if len(theirs.Enum) > 0 {
		bounds = append(bounds, "enum="+strings.Join(words(theirs.Enum), "|"))
	}
	if theirs.Pattern != "" {
		bounds = append(bounds, "pattern="+theirs.Pattern)
	}
	if len(bounds) > 0 {
		lines = append(lines, strings.Join(append([]string{s.name(), path}, bounds...), " "))
	}
	for name, property := range theirs.Properties {
		lines = append(lines, limitsOf(s, path+"."+name, &property, own.Properties[name])...)
	}
	if theirs.Items != nil {
		lines = append(lines, limitsOf(s, path+"[]", theirs.Items.Schema, own.Items)...)
	}
	if theirs.AdditionalProperties != nil {
		lines = append(lines, limitsOf(s, path+"{}", theirs.AdditionalProperties.Schema, own.AdditionalProperties)...)
	}
	return lines
}

func whole(n *float64) *int64 {
	if n == nil {
		return nil
	}
	return ptr(int64(*n))
}

// printed is a value as JSON, so that numbers of different types compare.
func printed(v any) string {
	out, err := json.Marshal(v)
	if err != nil || string(out) == "[]" || string(out) == `""` || string(out) == "null" {
		return "none"
	}
	return string(out)
}

// notZero leaves out a minimum that says nothing.
func notZero(n *int64) *int64 {
	if n == nil {
		return nil
	}
	return positive(*n)
}

func positive(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func words[T any](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	slices.Sort(out)
	return out
}

// rules are the expressions of x-kubernetes-validations, which weir's schemas
// cannot say.
func rules(s *spec.Schema) []string {
	var list []struct{ Rule string }
	text, err := json.Marshal(s.Extensions["x-kubernetes-validations"])
	if err != nil || json.Unmarshal(text, &list) != nil {
		return []string{"unreadable"}
	}
	var out []string
	for _, r := range list {
		out = append(out, r.Rule)
	}
	return out
}

package terminal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/terminal"
)

// someFindings have all that a finding can have, and what is hard to write out.
func someFindings() []diag.Finding {
	return diag.Merge([]string{"overlays/a", "overlays/b"}, []diag.List{
		{
			{Severity: diag.Error, Code: "wrong-type", Summary: "spec.maxSize must be a number", Detail: "write 3\nnot \"3\"", Object: "AWSMachinePool default/web", Field: "spec.maxSize",
				Position: diag.Position{File: "base/pool 100%,a:b.yaml", Line: 12, Column: 3},
				Related:  []diag.Related{{Position: diag.Position{File: "c:1.yaml", Line: 1}, Message: "the other"}, {Message: "placeless"}}},
			{Severity: diag.Warning, Code: "default-network", Summary: "bell \a and 50%", Position: diag.Position{File: "ü/ß.yaml", Line: 2}},
			{Severity: diag.Info, Code: "no-such-code", Summary: "unregistered"},
		},
		{
			{Severity: diag.Error, Code: "wrong-type", Summary: "spec.maxSize must be a number", Object: "AWSMachinePool default/x-other", Field: "spec.maxSize",
				Position: diag.Position{File: "base/pool 100%,a:b.yaml", Line: 12, Column: 3}},
			{Severity: diag.Error, Code: "wrong-type", Summary: "elsewhere", Position: diag.Position{File: "/tmp/x y.yaml"}},
		},
	})
}

// objects are the members that SARIF 2.1.0 gives to the objects that occur in a
// log of weir's, required ones with a bang; sections 3.13 to 3.49 of the standard.
var objects = map[string][]string{
	"sarifLog":               {"$schema", "version!", "runs!", "inlineExternalProperties", "properties"},
	"run":                    {"tool!", "invocations", "originalUriBaseIds", "artifacts", "results", "columnKind", "language", "taxonomies", "properties"},
	"tool":                   {"driver!", "extensions", "properties"},
	"toolComponent":          {"name!", "version", "semanticVersion", "informationUri", "organization", "rules", "properties"},
	"reportingDescriptor":    {"id!", "name", "shortDescription", "fullDescription", "help", "helpUri", "defaultConfiguration", "properties"},
	"reportingConfiguration": {"enabled", "level", "rank", "parameters", "properties"},
	"multiformatMessage":     {"text!", "markdown", "properties"},
	"message":                {"text", "markdown", "id", "arguments", "properties"},
	"result":                 {"ruleId", "ruleIndex", "kind", "level", "message!", "locations", "relatedLocations", "fingerprints", "partialFingerprints", "properties"},
	"location":               {"id", "physicalLocation", "logicalLocations", "message", "properties"},
	"logicalLocation":        {"name", "fullyQualifiedName", "kind", "properties"},
	"physicalLocation":       {"artifactLocation", "region", "contextRegion", "properties"},
	"artifactLocation":       {"uri", "uriBaseId", "index", "description", "properties"},
	"region":                 {"startLine", "startColumn", "endLine", "endColumn", "snippet", "properties"},
}

// members says which object a member holds, itself or as a list.
var members = map[string]string{
	"runs": "run", "tool": "tool", "driver": "toolComponent", "rules": "reportingDescriptor", "defaultConfiguration": "reportingConfiguration",
	"shortDescription": "multiformatMessage", "help": "multiformatMessage", "description": "message", "message": "message", "results": "result",
	"locations": "location", "relatedLocations": "location", "logicalLocations": "logicalLocation", "physicalLocation": "physicalLocation",
	"artifactLocation": "artifactLocation", "region": "region",
}

func checkObject(t *testing.T, at, object string, v any) {
	t.Helper()
	m, ok := v.(map[string]any)
	if !ok {
		t.Errorf("%s is no object", at)
		return
	}
	known := map[string]bool{}
	for _, name := range objects[object] {
		bare := strings.TrimSuffix(name, "!")
		known[bare] = true
		if _, ok := m[bare]; !ok && bare != name {
			t.Errorf("%s: a %s needs %s", at, object, bare)
		}
	}
	for name, v := range m {
		below := at + "." + name
		if !known[name] {
			t.Errorf("%s: a %s has no %s", at, object, name)
		}
		if name == "originalUriBaseIds" {
			for id, place := range v.(map[string]any) {
				checkObject(t, below+"."+id, "artifactLocation", place)
			}
		}
		inner, ok := members[name]
		if !ok {
			continue
		}
		if list, ok := v.([]any); ok {
			for i, e := range list {
				checkObject(t, fmt.Sprintf("%s[%d]", below, i), inner, e)
			}
			continue
		}
		checkObject(t, below, inner, v)
	}
}

func TestSARIF(t *testing.T) {
	var out bytes.Buffer
	if err := terminal.SARIF(&out, "1.2.3", someFindings()); err != nil {
		t.Fatal(err)
	}
	var log any
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	checkObject(t, "log", "sarifLog", log)
	type region struct{ StartLine, StartColumn *int }
	type location struct {
		ID               int
		PhysicalLocation struct {
			ArtifactLocation struct{ URI, URIBaseID string }
			Region           *region
		}
		Message struct{ Text string }
	}
	var typed struct {
		Version string
		Runs    []struct {
			OriginalURIBaseIDs map[string]any
			Tool               struct {
				Driver struct {
					Rules []struct {
						ID                   string
						Help                 struct{ Text string }
						DefaultConfiguration struct{ Level string }
					}
				}
			}
			Results []struct {
				RuleID, Level    string
				RuleIndex        int
				Locations        []location
				RelatedLocations []location
				Message          struct{ Text string }
				Properties       struct{ Paths []string }
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &typed); err != nil {
		t.Fatal(err)
	}
	run := typed.Runs[0]
	if typed.Version != "2.1.0" || len(run.Results) != 4 || len(run.Tool.Driver.Rules) != 3 {
		t.Fatalf("got %d results and %d rules:\n%s", len(run.Results), len(run.Tool.Driver.Rules), &out)
	}
	seen := map[string]bool{}
	for _, r := range run.Results {
		if rule := run.Tool.Driver.Rules[r.RuleIndex]; rule.ID != r.RuleID {
			t.Errorf("result %s points at rule %s", r.RuleID, rule.ID)
		}
		if r.Level != "error" && r.Level != "warning" && r.Level != "note" {
			t.Errorf("level %q", r.Level)
		}
		if len(r.Locations) != 1 {
			t.Errorf("%s has %d locations", r.RuleID, len(r.Locations))
		}
		for _, l := range append(r.Locations, r.RelatedLocations...) {
			a := l.PhysicalLocation.ArtifactLocation
			u, err := url.Parse(a.URI)
			if err != nil || u.IsAbs() == (a.URIBaseID != "") || a.URI == "" {
				t.Errorf("address %q, base %q: %v", a.URI, a.URIBaseID, err)
			}
			if _, ok := run.OriginalURIBaseIDs[a.URIBaseID]; a.URIBaseID != "" && !ok {
				t.Errorf("base %q is not declared", a.URIBaseID)
			}
			if at := l.PhysicalLocation.Region; at != nil && (at.StartLine == nil || *at.StartLine < 1 || at.StartColumn != nil && *at.StartColumn < 1) {
				t.Errorf("region %+v", at)
			}
		}
		key := fmt.Sprint(r.RuleID, r.Locations[0].PhysicalLocation.ArtifactLocation, r.Message)
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
	}
	type fact struct{ URI, Related, Text, Paths string }
	var got []fact
	for _, r := range run.Results {
		f := fact{URI: r.Locations[0].PhysicalLocation.ArtifactLocation.URI, Text: r.Message.Text, Paths: strings.Join(r.Properties.Paths, " ")}
		for _, l := range r.RelatedLocations {
			f.Related += l.PhysicalLocation.ArtifactLocation.URI + " " + l.Message.Text
		}
		got = append(got, f)
	}
	want := []fact{
		{URI: "overlays/a", Text: "unregistered.", Paths: "overlays/a"},
		{URI: "file:///tmp/x%20y.yaml", Text: "elsewhere.", Paths: "overlays/b"},
		{URI: "base/pool%20100%25,a:b.yaml", Related: "./c:1.yaml the other", Text: "spec.maxSize must be a number.\n\nwrite 3\nnot \"3\"", Paths: "overlays/a overlays/b"},
		{URI: "%C3%BC/%C3%9F.yaml", Text: "bell <U+0007> and 50%.", Paths: "overlays/a"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s\n%s", d, &out)
	}
}

// TestGitHubTakesNoOtherCommand: no name of a file and no message makes a line of its
// own, ends a parameter, or hides something.
func TestGitHubTakesNoOtherCommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune(":,%\r\n\x1b\u0085\u2028\u202e\u200bset-output name=x")))).Draw(t, "text")
		var out bytes.Buffer
		if err := terminal.GitHub(&out, []diag.Finding{{Diagnostic: diag.Diagnostic{
			Severity: diag.Error, Code: "bad", Summary: text, Detail: text, Object: text, Position: diag.Position{File: text, Line: 3},
			Related: []diag.Related{{Position: diag.Position{File: text}, Message: text}},
		}}}); err != nil {
			t.Fatal(err)
		}
		line, rest, _ := strings.Cut(out.String(), "\n")
		head, _, ok := strings.Cut(strings.TrimPrefix(line, "::error "), "::")
		if rest != "" || !ok || !strings.HasPrefix(line, "::error ") || strings.ContainsFunc(line, visible.Hidden) {
			t.Fatalf("%q gives %q", text, out.String())
		}
		for _, p := range strings.Split(head, ",") {
			if name, value, _ := strings.Cut(p, "="); !slices.Contains([]string{"file", "line", "title"}, name) || strings.Contains(value, ":") {
				t.Fatalf("%q gives the parameter %q", text, p)
			}
		}
	})
}

func TestGitHub(t *testing.T) {
	var out bytes.Buffer
	if err := terminal.GitHub(&out, someFindings()); err != nil {
		t.Fatal(err)
	}
	want := `::notice file=overlays/a,title=weir%3A no-such-code::unregistered.
::error file=/tmp/x y.yaml,title=weir%3A wrong-type::elsewhere.
::error file=base/pool 100%25%2Ca%3Ab.yaml,line=12,col=3,title=weir%3A wrong-type::spec.maxSize must be a number.%0A%0Awrite 3%0Anot "3"%0Ac:1.yaml:1: the other%0Aplaceless
::warning file=ü/ß.yaml,line=2,title=weir%3A default-network::bell <U+0007> and 50%25.
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/schema"
	"github.com/weir-gitops/weir/render/tree"
)

// compiled makes a validator of a schema.
func compiled(t testing.TB, n schema.Node) *jsonschema.Schema {
	t.Helper()
	text, err := schema.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weir.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("weir.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func union(t testing.TB, o schema.Options) *jsonschema.Schema {
	t.Helper()
	n, err := schema.Union(schema.Kinds(), o)
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, n)
}

// documents splits a stream of YAML, and gives each document as JSON has it.
func documents(t testing.TB, text string) []any {
	t.Helper()
	var out []any
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		one, err := yaml.Marshal(&n)
		if err != nil {
			t.Fatal(err)
		}
		if doc := toJSON(t, string(one)); doc != nil {
			out = append(out, doc)
		}
	}
}

// toJSON reads one document of YAML as Kubernetes does.
func toJSON(t testing.TB, text string) any {
	t.Helper()
	data, err := sigsyaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestEachSchemaCompiles(t *testing.T) {
	kinds := schema.Kinds()
	if len(kinds) < 20 {
		t.Errorf("only %d kinds", len(kinds))
	}
	for _, k := range kinds {
		for _, partial := range []bool{false, true} {
			n, err := schema.Of(k, schema.Options{Partial: partial})
			if err != nil {
				t.Fatal(err)
			}
			compiled(t, n)
		}
	}
	if _, err := schema.Of(schema.Kind{Group: "weir.dev", Version: "v1", Name: "Nothing"}, schema.Options{}); err == nil {
		t.Error("a kind that does not exist has a schema")
	}
}

// TestExampleRepository checks every file as it is, by the schema for parts, and
// what every overlay renders to, by the schema for whole objects.
func TestExampleRepository(t *testing.T) {
	root := os.DirFS("../../example-repo")
	files, partial, whole := tree.Map{}, union(t, schema.Options{Partial: true}), union(t, schema.Options{})
	err := fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(name) != ".yaml" {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files[name] = string(data)
		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	vars := map[string]string{"CLUSTER_NAME": "demo", "AWS_REGION": "eu-west-1", "KUBERNETES_VERSION": "v1.31.2", "API_SERVER": "a:6443", "JOIN_TOKEN": "t", "CA_CERT_HASH": "sha256:a"}
	for name, text := range files {
		for _, doc := range documents(t, text) {
			if err := partial.Validate(doc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if dir := filepath.Dir(name); filepath.Base(name) == "kustomization.yaml" && strings.HasPrefix(dir, "overlays/") {
			r, err := render.Render(context.Background(), files, dir, render.Options{Vars: vars})
			if err != nil || r.Diags.HasErrors() {
				t.Fatalf("%s: %v %v", dir, err, r.Diags)
			}
			for _, doc := range documents(t, string(r.YAML())) {
				if err := whole.Validate(doc); err != nil {
					t.Errorf("%s: %v", dir, err)
				}
			}
		}
	}
}

// TestPublishedTemplates checks the templates that Cluster API's AWS provider
// publishes, with their variables still in them.
func TestPublishedTemplates(t *testing.T) {
	names, err := filepath.Glob("../../../shared/corpus/capa/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Skip("the published templates are not beside the project")
	}
	s := union(t, schema.Options{})
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range documents(t, string(text)) {
			if err := s.Validate(doc); err != nil {
				t.Errorf("%s: %v", filepath.Base(name), err)
			}
		}
	}
}

// refuses says whether decoding finds a fault in an object, and which.
func refuses(t testing.TB, text string) []kinds.Fault {
	t.Helper()
	b, err := kust.Build(context.Background(), tree.Map{"a.yaml": text}, "a.yaml", kust.Options{})
	if err != nil || b.Diags.HasErrors() {
		t.Fatalf("%v %v in\n%s", err, b.Diags, text)
	}
	_, faults := manifest.Intents(b.Objects, manifest.Options{})
	var out []kinds.Fault
	for _, f := range faults {
		switch f.Code {
		case "unknown-field", "wrong-type", "bad-enum", "out-of-range", "missing-required", "not-supported", "bad-value", "unknown-version":
			out = append(out, f)
		}
	}
	return out
}

const wholePool = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: web}
spec:
  minSize: 1
  maxSize: 3
  availabilityZoneSubnetType: private
  defaultCoolDown: 5m
  capacityRebalance: true
  subnets: [{id: subnet-00000001}]
  awsLaunchTemplate: {instanceType: m5.large}
  mixedInstancesPolicy: {overrides: [{instanceType: m5a.large}]}
`

func TestFaultsAreSeen(t *testing.T) {
	s, patch := union(t, schema.Options{}), union(t, schema.Options{Partial: true})
	tests := map[string]struct {
		from, to      string
		valid, partly bool
		undecided     bool // not for the decoder: it has a variable
	}{
		"fine":                           {valid: true, partly: true},
		"an unknown field":               {from: "minSize", to: "minsize"},
		"an unknown field far below":     {from: "{instanceType", to: "{instancetype"},
		"a word that is not in the list": {from: "private", to: "hidden"},
		"text for a number":              {from: "minSize: 1", to: "minSize: one"},
		"quotes around a number":         {from: "minSize: 1", to: `minSize: "1"`},
		"a fraction":                     {from: "minSize: 1", to: "minSize: 1.5"},
		"a number below the least":       {from: "minSize: 1", to: "minSize: -1"},
		"text for a boolean":             {from: "Rebalance: true", to: "Rebalance: 'true'"},
		"a number for a text":            {from: "m5.large", to: "5"},
		"no duration":                    {from: "5m", to: "5"},
		"a bare subnet":                  {from: "{id: subnet-00000001}", to: "subnet-00000001"},
		"a list for a mapping":           {from: "{instanceType: m5.large}", to: "[]"},
		"a required field":               {from: "{instanceType: m5a.large}", to: "{}", partly: true},
		"a required field that is null":  {from: "{instanceType: m5a.large}", to: "{instanceType: null}", partly: true},
		"no name":                        {from: "{name: web}", to: "{}", partly: true, undecided: true},
		"an unknown version":             {from: "v1beta2", to: "v1beta9"},
		"a field of the other version":   {from: "v1beta2", to: "v1beta1"},
		"null for a field":               {from: "minSize: 1", to: "minSize:", valid: true, partly: true},
		"a whole number with a fraction": {from: "minSize: 1", to: "minSize: 1.0", valid: true, partly: true},
		"a variable for a number":        {from: "minSize: 1", to: "minSize: ${N:-1}", valid: true, partly: true, undecided: true},
		"a variable for a boolean":       {from: "Rebalance: true", to: "Rebalance: ${B}", valid: true, partly: true, undecided: true},
		"a variable for a word":          {from: "private", to: "${KIND}", valid: true, partly: true, undecided: true},
		"a variable in a duration":       {from: "5m", to: "${N}m", valid: true, partly: true, undecided: true},
		"another kind":                   {from: "kind: AWSMachinePool", to: "kind: Other", valid: true, partly: true},
		"a directive of a patch":         {from: "minSize: 1", to: "$patch: replace", partly: true, undecided: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(wholePool, tt.from, tt.to, 1)
			doc := toJSON(t, text)
			if err := s.Validate(doc); (err == nil) != tt.valid {
				t.Errorf("the schema says %v", err)
			}
			if err := patch.Validate(doc); (err == nil) != tt.partly {
				t.Errorf("the schema of parts says %v", err)
			}
			if tt.undecided {
				return
			}
			if faults := refuses(t, text); (len(faults) == 0) != tt.valid {
				t.Errorf("the decoder says %v", faults)
			}
		})
	}
}

// TestPathsFitKubeconform checks the layout against its documented variables.
func TestPathsFitKubeconform(t *testing.T) {
	k := schema.Kind{Group: "cluster.x-k8s.io", Version: "v1beta1", Name: "MachinePool"}
	if got := k.Path(); got != "cluster.x-k8s.io/machinepool_v1beta1.json" {
		t.Error(got)
	}
	seen := map[string]bool{}
	for _, k := range schema.Kinds() {
		if seen[k.Path()] {
			t.Errorf("two schemas at %s", k.Path())
		}
		seen[k.Path()] = true
	}
}

// TestMarshalIsStable checks that a schema is the same bytes each time.
func TestMarshalIsStable(t *testing.T) {
	for range 3 {
		a, _ := schema.Union(schema.Kinds(), schema.Options{})
		b, _ := schema.Union(schema.Kinds(), schema.Options{})
		x, err1 := schema.Marshal(a)
		y, err2 := schema.Marshal(b)
		if err1 != nil || err2 != nil || !bytes.Equal(x, y) || !json.Valid(x) {
			t.Fatal("two schemas of the same kinds differ")
		}
	}
}

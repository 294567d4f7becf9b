package oracle

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/tree"
)

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// TestAcceptance compares what weir accepts and reads with what an API server
// accepts and stores, over manifests of four kinds.
func TestAcceptance(t *testing.T) {
	found, servers := findings{}, map[kinds.SchemaVersion]server{}
	for _, s := range subjects() {
		servers[s.SchemaVersion] = serverFor(t, s)
		eachField(t, found, servers[s.SchemaVersion])
		if s.Kind == "MachinePool" || strings.HasSuffix(s.Kind, "MachinePool") || strings.HasSuffix(s.Kind, "Config") {
			atRandom(t, found, servers[s.SchemaVersion])
		}
	}
	allScalars(t, found, servers)
	written(t, found, servers)
	found.judge(t, "accept")
}

// eachField sets every field of a kind, one at a time, to values that are good, at
// the bounds, or bad.
func eachField(t *testing.T, found findings, s server) {
	body, weir := ptr(s.schema.Properties["spec"]), kinds.Schemas()[s.SchemaVersion].Properties["spec"]
	base := seed(s.subject)
	complete(body, base)
	for _, path := range fields(body, nil) {
		if passedOver(weir, path) {
			continue
		}
		for _, v := range candidates(below(body, path)) {
			compare(t, found, s, document(s.subject, with(body, base, path, v)))
		}
	}
}

// passedOver reports whether weir does not look at a path: TestPaths lists those.
func passedOver(s *kinds.Schema, path []string) bool {
	for _, e := range path {
		switch {
		case s == nil || s.Type == "" || s.Refused:
			return true
		case e == "[]":
			s = s.Items
		case e == "{}":
			s = s.AdditionalProperties
		default:
			s = s.Properties[e]
		}
	}
	return s == nil || s.Type == "" || s.Refused
}

// atRandom makes manifests at random, always the same ones, a third of them with
// one bad value.
func atRandom(t *testing.T, found findings, s server) {
	body, weir := ptr(s.schema.Properties["spec"]), kinds.Schemas()[s.SchemaVersion].Properties["spec"]
	g := generator{rand.New(rand.NewPCG(1, 2)), weir}
	var paths [][]string
	for _, path := range fields(body, nil) {
		if !passedOver(weir, path) {
			paths = append(paths, path)
		}
	}
	for range 400 {
		v := g.value(body, nil)
		if g.IntN(3) == 0 {
			path := paths[g.IntN(len(paths))]
			c := candidates(below(body, path))
			v = with(body, v, path, c[g.IntN(len(c))])
		}
		compare(t, found, s, document(s.subject, v))
	}
}

// allScalars writes the same fields in all the ways that YAML has.
func allScalars(t *testing.T, found findings, servers map[kinds.SchemaVersion]server) {
	scalars := strings.Fields(`5 0 -1 05 0o5 0x5 0b1 5.0 5e0 5e3 1_000 +5 .5 5. '5' "5" !!str¦5 !!int¦5 !!int¦'5' true True TRUE yes on Y n 'yes' false ~ null Null NULL
		x 'x' |-¦x 2024-01-01 '' "" 1:30 .inf .nan - [] {} [5] {a:¦5} 12345678901234567890 1e400 0.1 !!float¦5 !!bool¦true`)
	s := servers[kinds.SchemaVersion{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta2", Kind: "AWSMachinePool"}]
	for _, field := range []string{"maxSize: §\n  awsLaunchTemplate: {}", "capacityRebalance: §\n  awsLaunchTemplate: {}", "awsLaunchTemplate: {instanceType: § }",
		"additionalTags: {a: § }\n  awsLaunchTemplate: {}", "additionalTags: {? § : b}\n  awsLaunchTemplate: {}", "defaultCoolDown: §\n  awsLaunchTemplate: {}",
		"availabilityZones: [ § ]\n  awsLaunchTemplate: {}", "awsLaunchTemplate: {rootVolume: {size: § }}", "awsLaunchTemplate: {rootVolume: {size: 8, throughput: §, type: gp3}}"} {
		for _, v := range scalars {
			compare(t, found, s, "apiVersion: "+s.APIVersion+"\nkind: "+s.Kind+"\nmetadata: {name: web, namespace: default}\nspec:\n  "+
				strings.ReplaceAll(field, "§", strings.ReplaceAll(v, "¦", " "))+"\n")
		}
	}
}

// written compares manifests that people wrote: those of testdata, and those of
// the directory that WEIR_ORACLE_CORPUS names.
func written(t *testing.T, found findings, servers map[kinds.SchemaVersion]server) {
	dirs := []string{"testdata"}
	if corpus := os.Getenv("WEIR_ORACLE_CORPUS"); corpus != "" {
		dirs = append(dirs, corpus)
	} else {
		t.Log("WEIR_ORACLE_CORPUS is not set: testdata alone")
	}
	n := 0
	for _, dir := range dirs {
		files := tree.Map{}
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			files[strings.ReplaceAll(filepath.ToSlash(path), "/", "_")] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for name := range files {
			n += compareFile(t, found, servers, files, name)
		}
	}
	if n == 0 {
		t.Error("no manifest was compared")
	}
	t.Logf("%d objects", n)
}

func compareFile(t *testing.T, found findings, servers map[kinds.SchemaVersion]server, files tree.Map, name string) (n int) {
	vars := map[string]string{}
	for _, m := range regexp.MustCompile(`\$\{(\w+)`).FindAllStringSubmatch(files[name], -1) {
		vars[m[1]] = "x1"
		if strings.HasSuffix(m[1], "_COUNT") {
			vars[m[1]] = "3"
		}
		if strings.HasSuffix(m[1], "VERSION") {
			vars[m[1]] = "v1.31.2"
		}
	}
	r, err := render.Render(context.Background(), files, name, render.Options{Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Objects) == 0 {
		t.Errorf("%s: nothing rendered: %v", name, r.Diags)
	}
	for _, o := range r.Objects {
		s, ok := servers[kinds.SchemaVersion{APIVersion: o.Ref.APIVersion, Kind: o.Ref.Kind}]
		if !ok {
			continue
		}
		text, err := yaml.Marshal(o.Node)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, found, s, string(text))
		n++
	}
	return n
}

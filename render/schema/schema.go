// Package schema writes JSON Schemas for the manifests that weir reads, so that editors and other validators
// can check them. The schemas are made from the types of the decoder.
//
// The dialect is draft-07. yaml-language-server, which most editors use, supports no newer one, and
// kubeconform supports all of them. The schemas are for files in a repository, whose variables are not
// substituted yet. So a string with ${VAR} is accepted in place of a number, a boolean, or a string of a
// certain form.
//
// The schemas accept everything that weir validate accepts, and more if JSON Schema cannot express a rule.
package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// Draft is the dialect of the schemas.
const Draft = "http://json-schema.org/draft-07/schema#"

// Node is a JSON object of a schema.
type Node = map[string]any

// Kind is a version of a kind that weir reads.
type Kind struct{ Group, Version, Name string }

// Path returns the path of a kind's schema below a directory of schemas. The layout is the template
// {{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json of kubeconform.
func (k Kind) Path() string {
	return k.Group + "/" + strings.ToLower(k.Name) + "_" + k.Version + ".json"
}

func (k Kind) apiVersion() string { return k.Group + "/" + k.Version }

// Options of schemas.
type Options struct {
	// Partial makes schemas for patches and for bases that an overlay completes. Only apiVersion and kind are
	// required, and the directives of a strategic merge patch are accepted.
	Partial bool
}

// Kinds returns the kinds that have schemas, sorted.
func Kinds() []Kind {
	var out []Kind
	for v := range kinds.Schemas() {
		group, version, _ := strings.Cut(v.APIVersion, "/")
		out = append(out, Kind{group, version, v.Kind})
	}
	slices.SortFunc(out, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// Of returns the schema of a kind as a separate document.
func Of(k Kind, o Options) (Node, error) {
	s, ok := kinds.Schemas()[kinds.SchemaVersion{APIVersion: k.apiVersion(), Kind: k.Name}]
	if !ok {
		return nil, fmt.Errorf("there is no schema of %s %s", k.apiVersion(), k.Name)
	}
	out := converter{o}.object(k, s)
	out["$schema"], out["definitions"] = Draft, definitions()
	return out, nil
}

// Union returns one schema for files with objects of several kinds. It accepts objects of all other kinds.
func Union(list []Kind, o Options) (Node, error) {
	defs := definitions()
	all := kinds.Schemas()
	var rules []any
	versions := map[[2]string][]string{}
	for _, k := range list {
		s, ok := all[kinds.SchemaVersion{APIVersion: k.apiVersion(), Kind: k.Name}]
		if !ok {
			return nil, fmt.Errorf("there is no schema of %s %s", k.apiVersion(), k.Name)
		}
		name := k.Group + "." + k.Name + "." + k.Version
		defs[name] = converter{o}.object(k, s)
		rules = append(rules, Node{"if": is(Node{"const": k.apiVersion()}, k.Name), "then": ref(name)})
		id := [2]string{k.Group, k.Name}
		versions[id] = append(versions[id], k.apiVersion())
	}
	// For these kinds, versions that weir does not read are faults.
	for _, k := range list {
		id := [2]string{k.Group, k.Name}
		if known := versions[id]; known != nil && known[0] == k.apiVersion() {
			group := Node{"type": "string", "pattern": "^" + strings.ReplaceAll(k.Group, ".", `\.`) + "/"}
			rules = append(rules, Node{"if": is(group, k.Name), "then": Node{"properties": Node{"apiVersion": Node{"enum": known}}}})
		}
	}
	return Node{"$schema": Draft, "title": "Objects that weir reads", "type": "object", "allOf": rules, "definitions": defs}, nil
}

// is returns a schema that matches objects of a kind.
func is(apiVersion Node, kind string) Node {
	return Node{"properties": Node{"apiVersion": apiVersion, "kind": Node{"const": kind}}, "required": []string{"apiVersion", "kind"}}
}

// Marshal returns a schema as indented JSON. Equal schemas result in equal bytes.
func Marshal(n Node) ([]byte, error) {
	out, err := json.MarshalIndent(n, "", "  ")
	return append(out, '\n'), err
}

func ref(name string) Node { return Node{"$ref": "#/definitions/" + name} }

func definitions() Node {
	return Node{
		"variable": Node{"description": "A text with a variable in it.", "type": "string", "pattern": `\$\{.*\}`},
	}
}

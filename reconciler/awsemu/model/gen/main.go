// Command gen writes the facts of AWS's published service models for package model: the operations in
// operations.txt, and the shapes that they use.
//
//	go run ./gen -models DIR
//
// DIR is the data directory of a botocore installation, in which AWS publishes its models under the
// Apache License 2.0. Without -models, gen asks Python for the directory.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

//go:embed operations.txt
var wanted string

// published is a service model in AWS's published form.
type published struct {
	Metadata struct {
		APIVersion, EndpointPrefix, SigningName, Protocol, JSONVersion, TargetPrefix, XMLNamespace string

		Protocols          []string
		AWSQueryCompatible *struct{}
	}
	Operations map[string]struct {
		HTTP          struct{ Method, RequestURI string }
		Input, Output *struct{ Shape, ResultWrapper string }
		Errors        []struct{ Shape string }
	}
	Shapes map[string]*publishedShape
}

type publishedShape struct {
	Type, Pattern      string
	Required, Enum     []string
	Members            map[string]publishedMember
	Member, Key, Value *publishedMember
	Min, Max           *float64
	Flattened          bool
	Sensitive          bool
	Error              struct{ Code string }
}

type publishedMember struct {
	Shape, LocationName, QueryName, Location string
}

func main() {
	models := flag.String("models", "", "botocore's data `directory`")
	out := flag.String("out", "data", "the `directory` to write")
	flag.Parse()
	if err := run(*models, *out); err != nil {
		log.Fatal(err)
	}
}

func run(models, out string) error {
	if models == "" {
		said, err := exec.Command("python3", "-c", "import botocore, os; print(os.path.dirname(botocore.__file__) + '/data')").Output()
		if err != nil {
			return fmt.Errorf("find botocore's models: %w", err)
		}
		models = strings.TrimSpace(string(said))
	}
	release, err := os.ReadFile(filepath.Join(models, "..", "__init__.py"))
	if err != nil {
		return err
	}
	version := regexp.MustCompile(`__version__ = '([^']+)'`).FindSubmatch(release)
	if version == nil {
		return fmt.Errorf("%s does not say its version", models)
	}
	operations := map[string][]string{}
	for line := range strings.Lines(wanted) {
		if service, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			operations[service] = append(operations[service], name)
		}
	}
	for service, names := range operations {
		if err := write(models, out, service, string(version[1]), names); err != nil {
			return fmt.Errorf("%s: %w", service, err)
		}
	}
	return nil
}

// write writes the table of one service from the newest version of its API.
func write(models, out, service, release string, names []string) error {
	versions, err := filepath.Glob(filepath.Join(models, service, "*", "service-2.json.gz"))
	if err != nil || len(versions) == 0 {
		return fmt.Errorf("no model in %s: %w", models, err)
	}
	from := slices.Max(versions)
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	var p published
	if err := json.NewDecoder(plain).Decode(&p); err != nil {
		return err
	}
	sv := &model.Service{
		Source: fmt.Sprintf("botocore %s of %s, Copyright Amazon.com, Inc. or its affiliates, Apache License 2.0; written by gen", release, info.ModTime().UTC().Format("2006-01-02")),
		Name:   cmp.Or(p.Metadata.SigningName, p.Metadata.EndpointPrefix), Protocol: p.Metadata.Protocol, Version: p.Metadata.APIVersion, Namespace: p.Metadata.XMLNamespace, Target: p.Metadata.TargetPrefix, JSON: p.Metadata.JSONVersion,
		Operations: map[string]*model.Operation{}, Shapes: map[string]*model.Shape{},
	}
	if sv.Protocol == "smithy-rpc-v2-cbor" && slices.Contains(p.Metadata.Protocols, "json") {
		// The metadata names one of the service's protocols here, and lists the others in addition.
		sv.Protocol, sv.CBOR, sv.Codes = "json", true, p.Metadata.AWSQueryCompatible != nil
	}
	w := &writer{p: &p, sv: sv}
	for _, name := range names {
		if err := w.operation(name); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, sv.Name+".json"), lines(sv), 0o644)
}

type writer struct {
	p  *published
	sv *model.Service
}

func (w *writer) operation(name string) error {
	from, ok := w.p.Operations[name]
	if !ok {
		return fmt.Errorf("the model has no operation %s", name)
	}
	op := &model.Operation{}
	if w.sv.Protocol == "rest-json" {
		op.Method, op.Path = from.HTTP.Method, from.HTTP.RequestURI
	}
	if from.Input != nil {
		op.Input = w.shape(from.Input.Shape)
	}
	if from.Output != nil {
		op.Output, op.Wrapper = w.shape(from.Output.Shape), from.Output.ResultWrapper
	}
	for _, e := range from.Errors {
		code := w.p.Shapes[e.Shape].Error.Code
		if code == "" {
			code = e.Shape
		}
		op.Errors = append(op.Errors, code)
	}
	slices.Sort(op.Errors)
	w.sv.Operations[name] = op
	return nil
}

// shape copies a shape and all shapes that it uses, and returns its name in the table. A shape without
// limits is named after its type.
func (w *writer) shape(name string) string {
	from := w.p.Shapes[name]
	s := &model.Shape{Type: from.Type, Required: from.Required, Enum: from.Enum, Min: from.Min, Max: from.Max, Flat: from.Flattened, Sensitive: from.Sensitive}
	switch from.Type {
	case "structure", "list", "map":
	default:
		if _, err := model.Pattern(from.Pattern); err != nil {
			log.Fatalf("the pattern of %s is none that Go can hold texts against: %v", name, err)
		}
		s.Pattern = from.Pattern
		if s.Pattern == "" && len(s.Enum) == 0 && s.Min == nil && s.Max == nil && !s.Sensitive {
			return from.Type
		}
	}
	if _, known := w.sv.Shapes[name]; known {
		return name
	}
	w.sv.Shapes[name] = s
	if len(from.Members) > 0 {
		s.Members = map[string]*model.Member{}
	}
	for member, m := range from.Members {
		s.Members[member] = w.member(member, &m)
	}
	s.Item, s.Key, s.Value = w.member("member", from.Member), w.member("key", from.Key), w.member("value", from.Value)
	return name
}

func (w *writer) member(name string, m *publishedMember) *model.Member {
	if m == nil {
		return nil
	}
	out := &model.Member{Type: w.shape(m.Shape), Query: m.QueryName, Location: m.Location}
	if m.LocationName != name {
		out.Wire = m.LocationName
	}
	return out
}

// lines formats a service with one operation or shape per line, in order.
func lines(sv *model.Service) []byte {
	var b bytes.Buffer
	table := func(name string, keys []string, value func(string) any, last string) {
		fmt.Fprintf(&b, "%q: {\n", name)
		for i, key := range keys {
			end := ","
			if i == len(keys)-1 {
				end = ""
			}
			fmt.Fprintf(&b, "%q: %s%s\n", key, encoded(value(key)), end)
		}
		b.WriteString("}" + last + "\n")
	}
	b.WriteString("{\n")
	for _, f := range [][2]string{{"source", sv.Source}, {"name", sv.Name}, {"protocol", sv.Protocol}, {"version", sv.Version}, {"namespace", sv.Namespace}, {"target", sv.Target}, {"json", sv.JSON}} {
		fmt.Fprintf(&b, "%q: %s,\n", f[0], encoded(f[1]))
	}
	if sv.CBOR {
		fmt.Fprintf(&b, "\"cbor\": true,\n\"codes\": %t,\n", sv.Codes)
	}
	table("operations", slices.Sorted(maps.Keys(sv.Operations)), func(k string) any { return sv.Operations[k] }, ",")
	table("shapes", slices.Sorted(maps.Keys(sv.Shapes)), func(k string) any { return sv.Shapes[k] }, "")
	b.WriteString("}\n")
	return b.Bytes()
}

func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		log.Fatal(err) // all table values can be encoded
	}
	return bytes.TrimSpace(b.Bytes())
}

package schema_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/schema"
	"github.com/weir-gitops/weir/render/schema/comments"
)

var updateReference = flag.Bool("update", false, "write the reference of kinds anew")

const referenceDir = "../../deploy/docs/reference/kinds"

// TestReference keeps deploy/docs/reference/kinds at what decoding takes: a page for each kind, with a line for each field. testdata/aws.txt says
// what becomes of a field in AWS, and every field must have a line there that fits.
func TestReference(t *testing.T) {
	text, err := comments.Table("json", "../manifest/kinds", "../userdata")
	if err != nil {
		t.Fatal(err)
	}
	about := map[string]string{}
	for line := range strings.Lines(text) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		about[id] = rest
	}
	aws, err := readAWS("testdata/aws.txt")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	used := map[string]bool{}
	for _, name := range kindNames() {
		r := &referencePage{kind: name, about: about, aws: aws, used: used}
		pages[name+".md"] = r.write(t)
	}
	pages["README.md"] = referenceIndex(about)
	for _, id := range slices.Sorted(maps.Keys(aws)) {
		if !used[id] {
			t.Errorf("testdata/aws.txt: %q fits no field", id)
		}
	}
	if t.Failed() {
		return
	}
	if *updateReference {
		if err := os.MkdirAll(referenceDir, 0o755); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
	}
	for name, want := range pages {
		file := filepath.Join(referenceDir, name)
		if *updateReference {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // documentation
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file) //nolint:gosec // documentation
		if err != nil || string(got) != want {
			t.Errorf("%s is not what the types say (%v): go test ./render/schema -run TestReference -update", file, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(referenceDir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := pages[filepath.Base(f)]; !ok {
			t.Errorf("%s is about no kind", f)
		}
	}
}

func kindNames() (out []string) {
	for _, k := range schema.Kinds() {
		out = append(out, k.Name)
	}
	return slices.Compact(out)
}

// apiVersions are those of a kind, in all groups.
func apiVersions(kind string) (out []string) {
	for _, k := range schema.Kinds() {
		if k.Name == kind {
			out = append(out, k.Group+"/"+k.Version)
		}
	}
	return out
}

// referencePage is the page of a kind.
type referencePage struct {
	kind       string
	about, aws map[string]string
	used       map[string]bool
	rows       []referenceRow
}

// referenceRow is a field in one or more versions.
type referenceRow struct {
	field, takes, aws, note string
	required                bool
	versions                []string
}

func (r *referencePage) write(t *testing.T) string {
	versions := apiVersions(r.kind)
	all := kinds.Schemas()
	var spec string
	for _, v := range versions {
		s := all[kinds.SchemaVersion{APIVersion: v, Kind: r.kind}].Properties["spec"]
		spec = s.Of
		r.object(t, v, "spec", s, nil)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", r.kind)
	b.WriteString("For authors of manifests. This page lists every field of this kind that weir reads, its values, and what weir does with it in AWS. It is generated from weir's types by `go test ./render/schema -run TestReference -update`.\n\n")
	fmt.Fprintf(&b, "Versions: `%s`.", strings.Join(versions, "`, `"))
	if text := sentence(r.about[spec], spec, r.kind); text != "" {
		b.WriteString(" " + text)
	}
	b.WriteString("\n\n| Field | Takes | In AWS |\n| --- | --- | --- |\n")
	for _, row := range r.rows {
		takes := row.takes
		if row.required {
			takes += "; required"
		}
		if len(row.versions) < len(versions) {
			short := make([]string, len(row.versions))
			for i, v := range row.versions {
				short[i] = v[strings.LastIndex(v, "/")+1:]
			}
			takes += "; in " + strings.Join(slices.Compact(short), ", ") + " only"
		}
		says := row.aws
		if row.note != "" {
			says += ". " + row.note
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.field, takes, says)
	}
	b.WriteString("\nAnnotations that weir reads are in [annotations and tags](../annotations.md), messages about fields in [diagnostics](../../../../render/diag/DIAGNOSTICS.md). `weir schema " + r.kind + "` prints the JSON Schema, and `weir explain PATH POOL FIELD` shows where a value comes from.\n")
	return b.String()
}

// sentence is the comment of a type, about the kind's spec.
func sentence(text, typeName, kind string) string {
	rest, ok := strings.CutPrefix(text, typeName+" is ")
	if !ok {
		return ""
	}
	rest = strings.TrimPrefix(rest, kind+".spec: ")
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// object adds the rows of an object's members.
func (r *referencePage) object(t *testing.T, version, path string, s *kinds.Schema, in []string) {
	if s.Of == "LaunchTemplate" {
		in = []string{"LaunchTemplate", path}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if p.Refused {
			continue
		}
		field := path + "." + name
		note := ""
		if text := r.about[s.Of+"."+name]; text != "" {
			note = strings.ToUpper(text[:1]) + text[1:]
		}
		inner, suffix := p, ""
		for inner.Type == "array" && inner.Items != nil {
			inner, suffix = inner.Items, suffix+"[]"
		}
		if inner.Type == "object" && len(inner.Properties) == 0 && inner.AdditionalProperties != nil && len(inner.AdditionalProperties.Properties) > 0 {
			inner, suffix = inner.AdditionalProperties, suffix+".*"
		}
		r.row(t, version, field, p, slices.Contains(s.Required, name), note, in)
		if len(inner.Properties) > 0 && strings.Count(field, ".") < 8 {
			r.object(t, version, field+suffix, inner, in)
		}
	}
}

func (r *referencePage) row(t *testing.T, version, field string, s *kinds.Schema, required bool, note string, in []string) {
	if i := slices.IndexFunc(r.rows, func(o referenceRow) bool { return o.field == field }); i >= 0 {
		r.rows[i].versions = append(r.rows[i].versions, version)
		if more := takes(s); more != r.rows[i].takes {
			r.rows[i].takes = more // the newest version's
		}
		return
	}
	aws := r.inAWS(field, in)
	if aws == "" {
		t.Errorf("testdata/aws.txt does not say what becomes of %s %s", r.kind, field)
	}
	row := referenceRow{field: field, takes: takes(s), aws: aws, note: note, required: required, versions: []string{version}}
	at := slices.IndexFunc(r.rows, func(o referenceRow) bool { return o.field > field })
	if at < 0 {
		at = len(r.rows)
	}
	r.rows = slices.Insert(r.rows, at, row)
}

// setBy returns the rows of a kind whose members a field of the pool sets before any
// other, or fields below it: its path is below spec, with [] for each item of a list.
func setBy(of field.Kind, path string) (out []*field.Row) {
	for _, r := range field.Rows(of) {
		if f := r.PoolFields(); len(f) > 0 && (f[0] == path || strings.HasPrefix(f[0], path+".") || strings.HasPrefix(f[0], path+"[]")) {
			out = append(out, r)
		}
	}
	return out
}

func plural(s *kinds.Schema) string {
	switch {
	case len(s.Properties) > 0:
		return "objects"
	case s.Type == "array":
		return "lists"
	case s.Type == "integer":
		return "numbers"
	case s.Type == "string":
		return "texts"
	default:
		return "values"
	}
}

func referenceIndex(about map[string]string) string {
	var b strings.Builder
	b.WriteString("# Kinds\n\nFor authors of manifests. Each page lists every field of a kind that weir reads, and what weir does with it in AWS. weir ignores objects of other kinds; `weir validate -v` lists them.\n\n| Kind | Versions | What it is |\n| --- | --- | --- |\n")
	all := kinds.Schemas()
	for _, name := range kindNames() {
		versions := apiVersions(name)
		of := all[kinds.SchemaVersion{APIVersion: versions[0], Kind: name}].Properties["spec"].Of
		text := sentence(about[of], of, name)
		if name == "AWSLaunchConfig" {
			text = "One launch template under its own name, for pools that agree in all of it."
		}
		fmt.Fprintf(&b, "| [%[1]s](%[1]s.md) | `%[2]s` | %[3]s |\n", name, strings.Join(versions, "`, `"), text)
	}
	b.WriteString("\nSecrets and ConfigMaps (`v1`) are read where another object refers to them. An AWSClusterStaticIdentity is refused: no keys from Git.\n")
	return b.String()
}

package importer

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// TestEveryFieldIsImported gives each member of the table a value of its own and looks for
// it at the place where manifests say it.
func TestEveryFieldIsImported(t *testing.T) {
	for of, settings := range map[field.Kind]any{field.Group: &intent.GroupSettings{}, field.Nodegroup: &intent.NodegroupSettings{}, field.Template: &intent.TemplateData{}} {
		fill(reflect.ValueOf(settings).Elem(), new(int32))
		spec, options := map[string]any{}, map[string]any{}
		fields(of, settings, spec, options)
		for _, r := range field.Rows(of) {
			root, place := options, r.OptionsField()
			if r.OfPool() && r.Pool != "-" {
				root, place = spec, r.PoolFields()[0]
			}
			var want, got []any
			tree := plain(settings)
			for _, from := range []any{tree, tree.(map[string]any)["options"]} {
				collect(from, split(cmp.Or(r.Member, r.AWS)), nil, func(_ []int, v any) { want = append(want, converted(of, r.AWS, v)) })
			}
			if r.Pool != "-" {
				collect(root, split(place), nil, func(_ []int, v any) { got = append(got, v) })
			}
			if why := elsewhere[of][r.AWS]; why != "" {
				if len(got) > 0 {
					t.Errorf("%s %s is written, and excepted because %s", of, r.AWS, why)
				}
				continue
			}
			if r.AWS == "IamInstanceProfile.Arn" && len(got) == 1 {
				continue // AWS has either the ARN or the name, and so the field
			}
			if len(want) == 0 || fmt.Sprint(want) != fmt.Sprint(got) {
				t.Errorf("%s %s: %v at %s, want %v", of, r.AWS, got, place, want)
			}
		}
	}
	for of, rows := range elsewhere {
		for member := range rows {
			if _, ok := field.Find(of, split(member)); !ok {
				t.Errorf("%s has no row %s", of, member)
			}
		}
	}
}

// fill sets all that a value holds to values that differ.
func fill(v reflect.Value, n *int32) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": "v" + strconv.Itoa(int(*n))}))
	case reflect.String:
		v.SetString("text" + strconv.Itoa(int(*n)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(int64(*n) + 1000)
	default:
		panic(v.Kind())
	}
}

// TestTextsOfAWSAreNoVariables: what AWS holds is data, whatever it looks like.
func TestTextsOfAWSAreNoVariables(t *testing.T) {
	out, err := encode([]object{{"a": "${HOME}", "b": []any{"x: y", "- z", "true", "1_0", "0o7", "é\n---\nkind: Secret"}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); !strings.Contains(text, "$${HOME}") || strings.Contains(text, "\n---\n") || strings.Contains(text, "- true\n") {
		t.Errorf("got\n%s", text)
	}
}

func TestObjectNamesAreThoseOfKubernetes(t *testing.T) {
	for in, want := range map[string]string{"web": "web", "Web_A": "web-a", "-a-": "a", "é": "x", strings.Repeat("a", 80): strings.Repeat("a", 63), "../x": "x"} {
		if got := objectName(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

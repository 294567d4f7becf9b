package importer

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
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

// What Cluster API Provider AWS makes of namespace and name gets the name alone, where the
// launch template shows that it did.
func TestNamesWithANamespace(t *testing.T) {
	nodegroup := func(cluster, name, template string) observed.Nodegroup {
		return observed.Nodegroup{NodegroupName: observed.NodegroupName{Cluster: cluster, Name: name}, Template: observed.TemplateRef{Name: template}, Status: "ACTIVE"}
	}
	for name, tc := range map[string]struct {
		clusters   map[string]bool
		nodegroups []observed.Nodegroup
		want       string // cluster/pool own template, of each
	}{
		"both are made":           {map[string]bool{"team_cp": true}, []observed.Nodegroup{nodegroup("team_cp", "team_web", "cp-web")}, "cp/web cp-web"},
		"the cluster has a name":  {map[string]bool{"demo": true}, []observed.Nodegroup{nodegroup("demo", "team_web", "demo-web")}, "demo/web demo-web"},
		"another's template":      {map[string]bool{"demo": true}, []observed.Nodegroup{nodegroup("demo", "team_web", "team-web")}, "demo/team-web demo-team-web"},
		"none":                    {map[string]bool{"demo": true}, []observed.Nodegroup{nodegroup("demo", "team_web", "")}, "demo/team-web demo-team-web"},
		"more words":              {map[string]bool{"demo": true}, []observed.Nodegroup{nodegroup("demo", "team_a_b", "demo-a_b")}, "demo/team-a-b demo-team-a-b"},
		"nothing before it":       {map[string]bool{"_demo": true}, []observed.Nodegroup{nodegroup("_demo", "_web", "demo-web")}, "demo/web demo-web"},
		"two clusters of a name":  {map[string]bool{"a_cp": true, "b_cp": true}, []observed.Nodegroup{nodegroup("a_cp", "a_web", "cp-web")}, "a-cp/a-web a-cp-a-web"},
		"two pools of a name":     {map[string]bool{"demo": true}, []observed.Nodegroup{nodegroup("demo", "a_web", "demo-web"), nodegroup("demo", "b_web", "demo-web")}, "demo/demo-a-web demo-web, demo/demo-b-web demo-web"},
		"it is no cluster of EKS": {nil, []observed.Nodegroup{nodegroup("team_cp", "team_web", "cp-web")}, "team-cp/team-web team-cp-team-web"},
	} {
		s := observed.State{Clusters: tc.clusters, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{}}
		for _, n := range tc.nodegroups {
			s.Nodegroups[n.NodegroupName] = n
		}
		var got []string
		for _, p := range Make(s, Options{Templates: Name}) {
			n := s.Nodegroups[observed.NodegroupName{Cluster: p.Cluster, Name: p.Name}]
			got = append(got, clusterName(s, p.Cluster)+"/"+p.Key+" "+ownName(s, n))
			if text, _ := encode(p.objects, ""); !strings.Contains(string(text), "eksNodegroupName: "+n.Name) {
				t.Errorf("%s: the nodegroup would not be found:\n%s", name, text)
			}
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("%s: %s, want %s", name, text, tc.want)
		}
	}
}

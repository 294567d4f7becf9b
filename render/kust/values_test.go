package kust

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

const valued = `apiVersion: v1
kind: ConfigMap
metadata: {name: m}
data: {a: "${A:-none}", b: "${B:-none}", c: "${C:-none}", kept: "$${D}"}
`

// strictly builds o/one with values for every variable demanded.
func strictly(t *testing.T, m tree.Map, o Options) *Result {
	t.Helper()
	o.Strict = func(intent.ObjectRef) bool { return true }
	r, err := Build(t.Context(), m, "o/one", o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestValuesOfTheTreeFillWhatIsNotFixed(t *testing.T) {
	m := tree.Map{
		"o/one/m.yaml": valued, "o/one/values.env": "# ours\nA=1\nB=1\n", "o/common.yaml": "A: x\nB: \"2\"\nC: 3\n",
		"o/linked.env": "symlink:one/values.env",
	}
	r := strictly(t, m, Options{Vars: map[string]string{"C": "fixed"}, ValueFiles: []string{"o/linked.env", "o/common.yaml"}})
	got := string(r.YAML())
	for _, want := range []string{"a: x\n", `b: "2"`, "c: fixed\n", "kept: ${D}"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	want := diag.List{{Severity: diag.Warning, Code: "value-ignored", Position: diag.Position{File: "o/common.yaml", Line: 3, Column: 1}}}
	for i := range r.Diags {
		r.Diags[i].Summary, r.Diags[i].Detail = "", ""
	}
	if diff := cmp.Diff(want, r.Diags); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	for _, p := range []string{"o/linked.env", "o/one/values.env", "o/common.yaml"} {
		if !strings.Contains(strings.Join(r.Reads.Paths(), " "), p) {
			t.Errorf("the read set lacks %s: %q", p, r.Reads.Paths())
		}
	}
	if unused, ok := r.Unused([]string{"A", "AB", "D", "Z"}); !ok || !cmp.Equal(unused, []string{"AB", "D", "Z"}) {
		t.Errorf("unused: %q, %t", unused, ok)
	}
}

func TestFaultsOfValuesOfTheTree(t *testing.T) {
	for name, tc := range map[string]struct {
		content, code, says string
		at                  diag.Position
	}{
		"missing":       {"", "missing-file", "o/one/values.env does not exist", diag.Position{File: "o/one/values.env"}},
		"no values":     {"A=1\n- x\n", "bad-values", "want KEY=VALUE", diag.Position{File: "o/one/values.env", Line: 2, Column: 1}},
		"a list":        {"\n- x\n", "bad-values", "want a mapping", diag.Position{File: "o/one/values.env", Line: 2, Column: 1}},
		"nested":        {"A: 1\nB: {c: d}\n", "bad-values", "the value of B", diag.Position{File: "o/one/values.env", Line: 2, Column: 4}},
		"no YAML":       {"a: [\n", "bad-values", "no valid YAML", diag.Position{File: "o/one/values.env"}},
		"large":         {strings.Repeat("A=1\n", 20_000), "too-large", "at most 65536", diag.Position{File: "o/one/values.env"}},
		"encrypted":     {"A=ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\nsops_version=3.9.0\nsops_mac=ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\nsops_lastmodified=2026-01-01T00:00:00Z\n", "bad-values", "is encrypted", diag.Position{File: "o/one/values.env"}},
		"a link out":    {"symlink:../../../etc/passwd", "symlink-escape", "out of the repository", diag.Position{File: "o/one/values.env"}},
		"a link to one": {"symlink:m.yaml", "bad-values", "not a single text", diag.Position{File: "o/one/values.env", Line: 3, Column: 11}},
		"a directory":   {"symlink:../one", "bad-path", "is a directory", diag.Position{File: "o/one/values.env"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := tree.Map{"o/one/m.yaml": valued, "o/one/values.env": tc.content}
			if tc.content == "" {
				delete(m, "o/one/values.env")
			}
			r := strictly(t, m, Options{ValueFiles: []string{"o/one/values.env"}})
			if len(r.Diags) != 1 || r.Diags[0].Code != tc.code || r.Diags[0].Position != tc.at || !strings.Contains(r.Diags[0].Summary, tc.says) || r.Objects != nil {
				t.Errorf("%+v", r.Diags)
			}
			if _, ok := r.Unused([]string{"A"}); ok {
				t.Error("it says what is used")
			}
			// Once it is mended the same build is made again.
			mended := tree.Map{"o/one/m.yaml": valued, "o/one/values.env": "A=1\n"}
			if same, err := r.Reads.Same(mended); err != nil || same {
				t.Errorf("the read set does not tell: %t, %v", same, err)
			}
		})
	}
}

// The finding about an unset variable says in the caller's words where to give it a value.
func TestAnUnsetVariableSaysWhereItsValueIsWritten(t *testing.T) {
	m := tree.Map{"o/one/m.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: \"${A}\"}\n"}
	r := strictly(t, m, Options{GiveValue: "in this place"})
	if len(r.Diags) != 1 || !strings.HasPrefix(r.Diags[0].Detail, "Give it a value in this place, write ${A:-default}") {
		t.Errorf("%v", r.Diags)
	}
}

package fleet

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
)

func TestValuesOfEachDirectory(t *testing.T) {
	h := newHarness(t, "- {name: '{1}', path: 'o/*', region: eu-west-1, vars: {NAME: 'in-{1}'}, varsFrom: [{file: '{1}.env'}]}\n")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one.env", "MAX=7\n")
	m := pools("o/one", "o/two")
	for name, text := range m {
		m[name] = strings.ReplaceAll(text, "metadata: {name: pool-", "metadata: {labels: {n: \"${NAME}\"}, name: pool-")
	}
	view := View{Snapshot: snap("r1", m)}
	_, got := h.compose(view)
	if d := got["one"]; d.Err != nil || d.Set == nil || d.Set.Pools[0].Group.MaxSize != 7 {
		t.Errorf("one: %v, %v", d.Err, d.Diagnostics)
	}
	if d := got["two"]; d.Err == nil || !strings.Contains(d.Err.Error(), "two.env") || d.Whole {
		t.Errorf("a file that is missing: %v", d.Err)
	}
	write("two.env", "MAX=8\n")
	_, first := h.compose(view)
	write("two.env", "MAX=9\n")
	_, second := h.compose(view)
	if first["one"].Set != second["one"].Set || first["two"].Set == second["two"].Set || second["two"].Set.Pools[0].Group.MaxSize != 9 {
		t.Errorf("a file changes its own directory's target: %+v", second["two"].Err)
	}
	// A source that cannot be read is no fault of the files.
	if _, got := h.compose(View{Err: errors.New("gone")}); got["{1}"].Err == nil || !strings.Contains(got["{1}"].Err.Error(), "gone") {
		t.Errorf("%v", got["{1}"].Err)
	}
}

// Values beside a directory are part of what its target read: a commit that changes them renders that target again, and no other. Values that the
// configuration fixes stay.
func TestValuesOfTheRepository(t *testing.T) {
	h := newHarness(t, "- {name: '{1}', path: 'o/*', region: eu-west-1, vars: {NAME: '{1}'}, varsFrom: [{path: values.env}]}\n")
	m := pools("o/one", "o/two")
	for name, text := range m {
		m[name] = strings.ReplaceAll(text, "metadata: {name: pool-", "metadata: {labels: {n: \"${NAME}\"}, name: pool-")
	}
	m["o/one/values.env"], m["o/two/values.env"] = "MAX=7\n", "MAX: 8\n"
	_, first := h.compose(View{Snapshot: snap("r1", m)})
	size := func(got map[string]reconciler.Desired, target string) int32 {
		t.Helper()
		d := got[target]
		if d.Err != nil || d.Set == nil || len(d.Set.Pools) != 1 {
			t.Fatalf("%s: %v, %v", target, d.Err, d.Diagnostics)
		}
		return d.Set.Pools[0].Group.MaxSize
	}
	if one, two := size(first, "one"), size(first, "two"); one != 7 || two != 8 || !first["one"].Whole || len(first["one"].Diagnostics) > 0 {
		t.Errorf("%d and %d, %v", one, two, first["one"].Diagnostics)
	}
	m = maps.Clone(m)
	m["o/two/values.env"] = "MAX: 9\n"
	c, second := h.compose(View{Snapshot: snap("r2", m)})
	if !slices.Equal(c.Revisions[0].Touched, []string{"two"}) || second["one"].Set != first["one"].Set || size(second, "two") != 9 {
		t.Errorf("touched %q, one rendered again: %t, size %d", c.Revisions[0].Touched, second["one"].Set != first["one"].Set, size(second, "two"))
	}
	// A proposal sees the same, whoever it is from, and the configuration wins.
	r := h.review(View{Snapshot: snap("r2", m)}, Proposal{Snapshot: snap("head", with(m, map[string]string{"o/one/values.env": "MAX=6\nNAME=prod\n"})), Owner: "pull 1", Untrusted: true})
	if !slices.Equal(r.Touched, []string{"one"}) {
		t.Fatalf("touched %q", r.Touched)
	}
	for _, d := range r.Batches[0].Targets {
		if d.Policy.Target == "one" && (d.Set.Pools[0].Group.MaxSize != 6 || !slices.Equal(codes(d), []string{"value-ignored"})) {
			t.Errorf("size %d, %v", d.Set.Pools[0].Group.MaxSize, d.Diagnostics)
		}
	}
	// Without its file the target has a fault there, and nothing of it is deleted.
	_, third := h.compose(View{Snapshot: snap("r3", with(m, map[string]string{"o/one/values.env": ""}))})
	if d := third["one"]; !slices.Equal(codes(d), []string{"missing-file"}) || d.Diagnostics[0].File != "o/one/values.env" || d.Set != nil || d.Whole || !third["two"].Whole {
		t.Errorf("%v", d.Diagnostics)
	}
	_, fourth := h.compose(View{Snapshot: snap("r4", m)})
	if size(fourth, "one") != 7 {
		t.Error("it is not rendered again once its file is back")
	}
}

// No file of the repository replaces a secret value of the configuration.
func TestASecretValueIsNotTheRepositorys(t *testing.T) {
	h := newHarness(t, "- {name: one, path: o/one, region: eu-west-1, varsFrom: [{file: secret.env, secret: true}, {path: values.env}]}\n")
	if err := os.WriteFile(filepath.Join(h.dir, "secret.env"), []byte("TOKEN=hunter2hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := pools("o/one")
	m["o/one/pool.yaml"] = strings.ReplaceAll(m["o/one/pool.yaml"], "instanceType: m5.large", "instanceType: \"${TYPE}\", sshKeyName: \"${TOKEN}\"")
	m["o/one/values.env"] = "TYPE=m5.large\nTOKEN=plain\n"
	_, got := h.compose(View{Snapshot: snap("r1", m)})
	d := got["one"]
	if !slices.Equal(codes(d), []string{"secret-in-plain-field", "value-ignored"}) || d.Set != nil && len(d.Set.Pools) > 0 && d.Set.Pools[0].Blocked == nil {
		t.Errorf("%v", d.Diagnostics)
	}
	if text := fmt.Sprint(d.Diagnostics); strings.Contains(text, "hunter2") {
		t.Error(text)
	}
}

func TestAnUnsetVariableNamesTheConfiguration(t *testing.T) {
	for targets, want := range map[string]string{
		"- {name: one, path: o/one, region: eu-west-1}\n":                                 "Give it a value in targets[].vars of weir's configuration, write",
		"- {name: one, path: o/one, region: eu-west-1, varsFrom: [{path: values.env}]}\n": "Give it a value in o/one/values.env or in targets[].vars of weir's configuration, write",
	} {
		h := newHarness(t, targets)
		m := pools("o/one")
		m["o/one/pool.yaml"] = strings.ReplaceAll(m["o/one/pool.yaml"], "minSize: 1", "minSize: ${MIN}")
		m["o/one/values.env"] = ""
		_, got := h.compose(View{Snapshot: snap("r1", m)})
		if d := got["one"]; len(d.Diagnostics) != 1 || !strings.HasPrefix(d.Diagnostics[0].Detail, want) {
			t.Errorf("%v: %s", d.Diagnostics, d.Diagnostics[0].Detail)
		}
	}
}

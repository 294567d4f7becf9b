package diag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
)

func TestMerge(t *testing.T) {
	base := diag.Diagnostic{Severity: diag.Error, Code: "wrong-type", Summary: "no number", Position: diag.Position{File: "base/pool.yaml", Line: 3}}
	inA, inB := base, base
	inA.Object, inB.Object = "AWSMachinePool default/a-web", "AWSMachinePool default/b-web"
	placeless := diag.Diagnostic{Code: "timeout", Summary: "too slow", Object: "A"}
	other := placeless
	other.Object = "B"
	got := diag.Merge([]string{"a", "b", "c"}, []diag.List{{inA, placeless}, {inB, inB, other}, nil})
	want := []diag.Finding{
		{Diagnostic: placeless, Paths: []string{"a"}},
		{Diagnostic: other, Paths: []string{"b"}},
		{Diagnostic: inA, Paths: []string{"a", "b"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := diag.Merge(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("nothing merges to %#v", got)
	}
}

func TestHinted(t *testing.T) {
	got := diag.List{{Code: "timeout"}, {Code: "timeout", Detail: "wait"}, {Code: "no-such-code"}}.Hinted()
	if got[0].Detail == "" || got[1].Detail != "wait" || got[2].Detail != "" {
		t.Errorf("got %v", got)
	}
}

func TestFold(t *testing.T) {
	about := func(name string) diag.Diagnostic {
		return diag.Diagnostic{Severity: diag.Warning, Code: "no-drain", Summary: "nothing drains " + name, Detail: `give "` + name[len("default/"):] + `" a hook`,
			Object: "AWSMachinePool " + name, Position: diag.Position{File: name + ".yaml", Line: 3}}
	}
	fault := about("default/a")
	fault.Severity = diag.Error
	elsewhere := about("default/g")
	elsewhere.Detail = "something else"
	list := diag.List{fault, fault, about("default/a"), elsewhere}
	for _, name := range []string{"default/b", "default/c", "default/d", "default/e", "default/f", "default/h"} {
		list = append(list, about(name))
	}
	got := list.Fold()
	if len(got) != 4 || got[2].Object != "AWSMachinePool default/a" || len(got[2].Others) != 6 || len(got[3].Others) != 0 {
		t.Fatalf("got %+v", got)
	}
	if also := got[2].Also(); also != "and 6 more: default/b, default/c, default/d, default/e, default/f, …" {
		t.Error(also)
	}
	if also := got[0].Also() + got[3].Also(); also != "" {
		t.Error(also)
	}
}

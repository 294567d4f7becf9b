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

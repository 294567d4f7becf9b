package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/wording"
)

func AccountRegion(r *plan.Report) string {
	return cmp.Or(r.Account, "–") + ", " + cmp.Or(r.Region, "–")
}

func Problems(r *plan.Report) string {
	var out []string
	list := Diagnostics(r)
	for _, s := range []diag.Severity{diag.Error, diag.Warning} {
		if n := list.Count(s); n > 0 {
			out = append(out, wording.Count(n, s.String()))
		}
	}
	return strings.Join(out, ", ")
}

// Diagnostics are a report's, with its error before them.
func Diagnostics(r *plan.Report) diag.List {
	list := r.Diagnostics
	if r.Plan != nil {
		list = r.Plan.Diagnostics
	}
	if r.Err != nil {
		list = append(diag.List{{Severity: diag.Error, Summary: r.Err.Error()}}, list...)
	}
	return list
}

// SummaryWords count the pools of a target by what happens to them.
func SummaryWords(r *plan.Report) string {
	if r.Plan == nil {
		return "no plan"
	}
	s := r.Plan.Summary
	var out []string
	for _, f := range []struct {
		n    int
		what string
	}{
		{s.Delete, "to delete"}, {s.Replace, "to replace"}, {s.Rollout, "to roll"}, {s.Create, "to create"},
		{s.Update, "to update"}, {s.Unchanged, "unchanged"},
	} {
		if f.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	if len(out) == 0 {
		return wording.Count(len(r.Plan.Steps), "step")
	}
	return "pools: " + strings.Join(out, ", ")
}

package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
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

// FindingKey identifies a finding independent of its position, so that it stays the same if lines are added
// to the file.
func FindingKey(d diag.Diagnostic) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s\x00%s\x00%s", d.Severity, d.Code, d.Object, d.Field, d.Summary))
	return hex.EncodeToString(sum[:12])
}

// FindingKeys returns the keys of the warnings and notes of a report.
func FindingKeys(r *plan.Report) (out []string) {
	for _, d := range Diagnostics(r) {
		if d.Severity != diag.Error {
			out = append(out, FindingKey(d))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Diagnostics returns the diagnostics of a report, with the report's error first.
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

// SummaryWords counts the pools of a target by their changes.
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

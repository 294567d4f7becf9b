package reconciler

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
)

// addUnknownNames adds to the steps that failed for it which field names what AWS does
// not know.
func addUnknownNames(ctx context.Context, t Desired, r *plan.Report) {
	var found diag.List
	for _, o := range r.Failures() {
		if o.Err == nil || o.Err.Unknown == (observed.UnknownName{}) {
			continue
		}
		for i := range t.Set.Pools {
			if pool := &t.Set.Pools[i]; pool.Key.String() == o.Step.Pool {
				found = append(found, observed.DiagnoseUnknownName(pool, o.Err))
			}
		}
	}
	if len(found) == 0 {
		return
	}
	attachPositions(ctx, found, t)
	// The same diagnostics from before the step say less.
	before := slices.DeleteFunc(slices.Clone(r.Plan.Diagnostics), func(d diag.Diagnostic) bool {
		return slices.ContainsFunc(found, func(f diag.Diagnostic) bool { return d.Code == f.Code && d.Object == f.Object && d.Field == f.Field })
	})
	r.Plan.Diagnostics = append(before, found...).Sorted()
	r.Diagnostics = r.Plan.Diagnostics
}

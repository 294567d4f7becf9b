package plan

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// codeOlderField is the diagnostic code of manifests that use a field which a launch template has
// too.
const codeOlderField = "older-field"

// Apt returns the findings about manifests without advice that does not fit the resources in AWS. A
// nodegroup without a launch template cannot get one, so moving a field into a launch template
// would replace the nodegroup.
func Apt(in model.Input, found diag.List) diag.List {
	if !slices.ContainsFunc(found, func(d diag.Diagnostic) bool { return d.Code == codeOlderField }) {
		return found
	}
	bare := map[string]bool{}
	for i := range in.Set.Pools {
		if p := &in.Set.Pools[i]; p.Kind == intent.NodegroupPool && p.LaunchTemplate == nil && p.ForeignTemplate == nil {
			bare[p.Infrastructure.String()] = slices.ContainsFunc(in.NodegroupsOf(p), func(n observed.Nodegroup) bool { return n.Template == observed.TemplateRef{} })
		}
	}
	return slices.DeleteFunc(slices.Clone(found), func(d diag.Diagnostic) bool { return d.Code == codeOlderField && bare[d.Object] })
}

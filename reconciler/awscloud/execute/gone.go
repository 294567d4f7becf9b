package execute

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// gone reports whether the resource of an action no longer exists. AWS checks IAM before the resource, and a
// missing resource has no tags. So a policy that allows writes only with the owner's tag turns "not found"
// into a denial. Only a read distinguishes the two.
// Assumed of AWS: denied-where-missing.
func (x *Executor) gone(ctx context.Context, a step.About) bool {
	switch {
	case a.Group != "":
		found, err := x.reader.Groups(ctx, a.Group)
		_, there := found[a.Group]
		return err == nil && !there
	case a.Nodegroup != (observed.NodegroupName{}):
		n, err := x.reader.Nodegroup(ctx, a.Nodegroup)
		return err == nil && n == nil
	case a.Template.ID != "":
		found, err := x.reader.TemplatesByID(ctx, a.Template.ID)
		return err == nil && len(found) == 0
	}
	return false
}

// missing returns the not-found error in place of a denied write to a missing resource.
func missing(denied *observed.Error) *observed.Error {
	out := *denied
	out.Kind, out.Err = observed.NotFound, denied
	out.Message = "it no longer exists, and AWS denies writes that depend on its tags"
	return &out
}

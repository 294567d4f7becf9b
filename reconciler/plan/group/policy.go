package group

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/render/intent"
)

// OfOverride reports whether an instance runs the launch template that an override of the policy
// names for it. If the override names $Latest or $Default, any version matches: the template is not
// the pool's own, so a new version of it causes no rollout.
func OfOverride(policy *intent.MixedInstances, i observed.Instance) bool {
	if policy == nil {
		return false
	}
	own := false // whether an override names the instance's type
	for _, o := range policy.Overrides {
		own = own || o.InstanceType == i.Type
	}
	for _, o := range policy.Overrides {
		if own && o.InstanceType != i.Type || o.LaunchTemplate == nil {
			continue
		}
		want := *o.LaunchTemplate
		has := intent.LaunchTemplateSpecification{ID: i.Template.ID, Name: i.Template.Name, Version: i.Template.Version}
		if want.Version == "" || want.Version[0] == '$' {
			want.Version, has.Version = "", ""
		}
		if want.Same(has) {
			return true
		}
	}
	return false
}

// runs reports whether a machine runs the wanted launch configuration, whatever its type: the
// version, or an override's template, and the image.
func runs(policy *intent.MixedInstances, version template.Version, i observed.Instance) bool {
	return (version.Runs(i.Template) || version.Alike[i.ID] || OfOverride(policy, i)) && hasImage(policy, version, i)
}

// hasImage reports whether a machine has the image that an override names for it, or else its
// launch template's image. If the override names a parameter, only AWS knows the image, and every
// image matches.
func hasImage(policy *intent.MixedInstances, version template.Version, i observed.Instance) bool {
	known := false // whether an override applies to the machine's type
	if policy != nil {
		for _, o := range policy.Overrides {
			if o.InstanceType != "" && o.InstanceType != i.Type {
				continue
			}
			known = true
			switch {
			case o.ImageID == "" && (i.ImageID == "" || i.ImageID == version.Image || version.Image == ""):
				return true
			case o.ImageID != "" && !strings.HasPrefix(o.ImageID, "ami-"), o.ImageID != "" && o.ImageID == i.ImageID:
				return true
			case o.ImageID != "" && i.ImageID == "" && o.ImageID == version.Image && version.Resolves(i.Template):
				return true
			}
		}
	}
	return !known && (i.ImageID == "" || i.ImageID == version.Image || version.Image == "")
}

// wantedTypes returns the instance types that the pool's group may launch. It is empty if they are
// unknown: AWS chooses them by attributes, or the pool brings its launch template along.
func wantedTypes(pool *intent.Pool) []string {
	var own string
	if t := pool.LaunchTemplate; t != nil {
		own = t.Data.InstanceType
	}
	policy := pool.Group.MixedInstancesPolicy
	if policy == nil || len(policy.Overrides) == 0 {
		if own == "" {
			return nil
		}
		return []string{own}
	}
	var out []string
	for _, o := range policy.Overrides {
		switch {
		case o.InstanceRequirements != nil:
			return nil
		case o.InstanceType != "":
			out = append(out, o.InstanceType)
		case own != "":
			out = append(out, own)
		default:
			return nil
		}
	}
	return out
}

// rest returns a refresh without the preferences that triedWith compares itself.
func rest(r intent.Refresh) intent.Refresh {
	r.Disable, r.Strategy, r.InstanceWarmup, r.MinHealthyPercentage, r.MaxHealthyPercentage = false, "", nil, nil, nil
	if len(r.CheckpointPercentages) == 0 {
		r.CheckpointPercentages = nil
	}
	return r
}

package derive

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// applyDrainer adds the drainer to a pool. It must run after the group's options, which have the policy for
// abandoned machines.
func applyDrainer(d *draft, o *kinds.Decoded[kinds.PoolOptionsSpec]) {
	if o.Spec.Drainer == nil {
		return
	}
	d.AtOptions = o.Reporter(d.Faults)
	if d.Group == nil {
		d.AtOptions.Error(kinds.OptionsDrainer, "not-allowed", kinds.OptionsDrainer.String()+" is not allowed for a managed pool: EKS drains its machines itself", "")
		return
	}
	drainer := o.Spec.Drainer.Intent()
	d.Group.Drainer = &drainer
	d.CheckDrainer()
	d.Group.LifecycleHooks = append(slices.Clone(d.Group.LifecycleHooks), drainer.Hook())
	slices.SortFunc(d.Group.LifecycleHooks, func(a, b intent.LifecycleHook) int { return strings.Compare(a.Name, b.Name) })
	if !slices.ContainsFunc(d.Faults.List, func(f kinds.Fault) bool { return f.Code == "too-many-tags" }) {
		d.CheckTagCount(d.Group.Tags)
	}
}

package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

func checkDrainer(r kinds.Reporter, d *kinds.DrainerOptions) {
	if d == nil {
		return
	}
	if at := kinds.OptionsDrainer.Join("timeout"); d.Timeout < intent.LeastDrain || d.Timeout > intent.MostDrain || d.Timeout%time.Second != 0 {
		r.Error(at, "out-of-range", fmt.Sprintf("%s is %s; it is from 1m to 24h, in whole seconds", at, d.Timeout), "AWS keeps no machine longer than 48 hours")
	}
}

// CheckDrainer checks the requirements of the drainer for its group: no other hook has the name of its hook,
// and for abandoned machines the group has a policy that retains them ("Configure instance retention" in the
// user guide of Auto Scaling).
func (d *Derived) CheckDrainer() {
	g := d.Group
	if i := slices.IndexFunc(g.LifecycleHooks, func(h intent.LifecycleHook) bool { return h.Name == intent.DrainHook }); i >= 0 {
		d.OptionsExclude(kinds.OptionsDrainer, path("spec", "lifecycleHooks"), "the drainer makes the lifecycle hook "+intent.DrainHook+"; give the pool's own another name")
	}
	p := g.Options.InstanceLifecyclePolicy
	retains := p != nil && p.RetentionTriggers != nil && p.RetentionTriggers.TerminateHookAbandon == "retain"
	at := kinds.OptionsDrainer.Join("onDeadline")
	switch {
	case !g.Drainer.Abandon:
	case !retains:
		d.AtOptions.Error(at, "incomplete", at.String()+" abandon needs a group that retains machines: AWS would end them as it does for proceed",
			"write spec.autoScalingGroup.instanceLifecyclePolicy.retentionTriggers.terminateHookAbandon: retain, or onDeadline: proceed")
	case g.Options.WarmPool != nil:
		d.AtOptions.Error(at, "exclusive", at.String()+" abandon excludes spec.autoScalingGroup.warmPool: the machines of a warm pool have no node, and nothing would complete their termination hook", "write onDeadline: proceed")
	}
	if w := g.Options.WarmPool; w != nil && w.InstanceReusePolicy.ReuseOnScaleIn {
		d.AtOptions.Error(kinds.OptionsDrainer, "exclusive", kinds.OptionsDrainer.String()+" excludes "+kinds.OptionsGroup.Join("warmPool", "instanceReusePolicy", "reuseOnScaleIn").String(),
			"a machine that comes back from the warm pool would still be cordoned")
	}
}

package kinds

import (
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// DrainerOptions ask weir to move the pods off machines that Auto Scaling ends, before
// they end: weir keeps a terminating lifecycle hook on the group, cordons the node,
// evicts its pods and lets the machine go. It needs the target's kubeconfig. Written as
// {} all is as it is by default.
type DrainerOptions struct {
	// For how long pods have to go, from 1m to 24h.
	Timeout time.Duration `json:"timeout" default:"15m"`
	// What becomes of a machine whose pods did not go in time: proceed ends it with them,
	// abandon leaves it running beside the group, which takes
	// autoScalingGroup.instanceLifecyclePolicy.retentionTriggers.terminateHookAbandon: retain.
	OnDeadline string `json:"onDeadline" enum:"proceed|abandon" default:"proceed"`
}

// OptionsDrainer is the field that enables the drainer for a pool.
var OptionsDrainer = path("spec", "drainer")

func (o *DrainerOptions) Intent() intent.Drainer {
	return intent.Drainer{Timeout: int32(o.Timeout / time.Second), Abandon: o.OnDeadline == "abandon"}
}

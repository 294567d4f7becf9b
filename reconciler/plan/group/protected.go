package group

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
)

// noteProtected warns of machines that are protected from scale-in and that a rollout would
// replace. By default AWS waits an hour for somebody to end the protection, and then fails the
// refresh (ScaleInProtectedInstances of RefreshPreferences).
func (r *roll) noteProtected() {
	follows := "the rollout waits until somebody ends the protection, and fails after an hour"
	switch r.pool.Group.Refresh.ScaleInProtectedInstances {
	case "Refresh":
		return // AWS replaces them like all other machines
	case "Ignore":
		follows = "the rollout leaves them as they are"
	}
	policy, wanted := r.pool.Group.MixedInstancesPolicy, wantedTypes(r.pool)
	var ids []string
	for _, i := range r.have.Instances {
		if i.Protected && !i.Leaving() && (!runs(policy, r.version, i) || len(wanted) > 0 && !slices.Contains(wanted, i.Type)) {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	r.Note(diag.Warning, r.pool, nil, "machines-protected", "the machines "+strings.Join(ids, ", ")+" of "+r.have.Name+" are protected from scale-in: "+follows,
		"end the protection: aws autoscaling set-instance-protection --auto-scaling-group-name "+observed.ShellWord(r.have.Name)+" --instance-ids "+strings.Join(ids, " ")+
			" --no-protected-from-scale-in; or write spec.autoScalingGroup.refreshPreferences.scaleInProtectedInstances: Refresh in the pool's PoolOptions")
}

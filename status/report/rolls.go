package report

import (
	"fmt"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/wording"
)

// usualMinHealthy is AWS's default of MinHealthyPercentage for a group without an instance maintenance
// policy.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/understand-instance-refresh-default-values.html
const usualMinHealthy = 90

// RolloutBatches returns how many of a group's instances an instance refresh replaces at once, and
// the number of batches. Percentages are of the desired size; nil means that a percentage was not
// set. It returns 0, 0 if AWS does not document the result.
//
// The number of instances that stay healthy is rounded up. The remaining instances form a batch; if none
// remain, as with 100 percent, a batch is one instance. With a maximum above 100 percent, AWS launches
// before it terminates: if all instances stay healthy, a batch is the number that the maximum allows in
// addition. AWS does not document how it combines both percentages, or how it rounds the maximum.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RefreshPreferences.html
// Assumed of AWS: refresh-batches.
func RolloutBatches(desired int32, minHealthy, maxHealthy *int32) (size, batches int) {
	low, high := int64(usualMinHealthy), int64(100)
	if minHealthy != nil {
		low = int64(*minHealthy)
	}
	if maxHealthy != nil {
		high = int64(*maxHealthy)
	}
	n := int64(desired)
	if n <= 0 || low < 0 || low > 100 || high < 100 || high > 200 {
		return 0, 0
	}
	batch := max(1, n-(n*low+99)/100)
	if high > 100 {
		if low < 100 || n*high%100 != 0 {
			return 0, 0
		}
		batch = n*high/100 - n
	}
	return int(batch), int((n + batch - 1) / batch)
}

// Roll describes how a step replaces instances, as far as weir can tell.
type Roll struct {
	instances     int
	Size, batches int // 0 if unknown
	// usual says that the number of batches is based on AWS's default.
	usual bool
	note  string
}

// RollOf returns the Roll of a step. The batches are known if the step starts a refresh of a group, and the
// size of the group is known in instances.
func RollOf(r *plan.Report, s step.Step) Roll {
	out := Roll{instances: s.Instances}
	start, ok := s.Do.(step.StartRefresh)
	if !ok || s.Instances == 0 {
		return out
	}
	if m := start.MixedInstancesPolicy; m != nil {
		for _, o := range m.Overrides {
			if o.WeightedCapacity != "" {
				return out
			}
		}
	}
	p := start.Preferences
	if p.Strategy != "" && p.Strategy != "Rolling" {
		return out
	}
	if n := len(p.CheckpointPercentages); n > 0 {
		out.note = "it pauses at " + wording.Count(n, "checkpoint")
		return out
	}
	for _, pool := range r.Pools {
		if pool.Namespace+"/"+pool.Name != s.Pool {
			continue
		}
		if out.Size, _ = RolloutBatches(pool.DesiredReplicas, p.MinHealthyPercentage, p.MaxHealthyPercentage); out.Size > 0 {
			out.batches = (s.Instances + out.Size - 1) / out.Size
			out.usual = p.MinHealthyPercentage == nil
		}
	}
	return out
}

// Batches returns the number of batches in which the instances are replaced, 0 if unknown.
func (r Roll) Batches() int { return r.batches }

// Words describes the replacement, such as "6 instances in 3 batches". A number that depends on a default
// of AWS appears only in the long text, which names the default.
func (r Roll) Words(long bool) string {
	text := wording.Count(r.instances, "instance")
	switch {
	case r.batches == 1 && (long || !r.usual):
		text += " at once"
	case r.Size == 1 && (long || !r.usual):
		text += ", one at a time"
	case r.batches > 1 && (long || !r.usual):
		text += fmt.Sprintf(" in %d batches", r.batches)
		if long {
			text += fmt.Sprintf(" of at most %d", r.Size)
		}
	}
	if long && r.batches > 0 && r.usual {
		text += fmt.Sprintf(", as AWS keeps %d %% healthy unless the group says otherwise", usualMinHealthy)
	}
	if long && r.note != "" {
		text += "; " + r.note
	}
	return text
}

// rollingOnly returns the fields of a step's request that control how instances are replaced, nil if the
// step replaces none.
func rollingOnly(a step.Action) step.Action {
	start, ok := a.(step.StartRefresh)
	if !ok {
		return nil
	}
	out := step.StartRefresh{Group: start.Group, Preferences: intent.Refresh{
		Strategy: start.Preferences.Strategy, CheckpointPercentages: start.Preferences.CheckpointPercentages,
		MinHealthyPercentage: start.Preferences.MinHealthyPercentage, MaxHealthyPercentage: start.Preferences.MaxHealthyPercentage,
	}}
	if m := start.MixedInstancesPolicy; m != nil {
		out.MixedInstancesPolicy = &intent.MixedInstances{}
		for _, o := range m.Overrides {
			out.MixedInstancesPolicy.Overrides = append(out.MixedInstancesPolicy.Overrides, intent.Override{WeightedCapacity: o.WeightedCapacity})
		}
	}
	return out
}

package convert

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Refresh converts an instance refresh.
func Refresh(r types.InstanceRefresh) observed.Refresh {
	out := observed.Refresh{
		ID: aws.ToString(r.InstanceRefreshId), Status: string(r.Status), Reason: aws.ToString(r.StatusReason),
		Percentage: aws.ToInt32(r.PercentageComplete), InstancesLeft: aws.ToInt32(r.InstancesToUpdate),
		StartedAt: aws.ToTime(r.StartTime), EndedAt: aws.ToTime(r.EndTime),
	}
	if p := r.Preferences; p != nil {
		Carry(p, &out.Preferences)
	}
	if d := r.DesiredConfiguration; d != nil {
		out.Template = TemplateRef(d.LaunchTemplate)
		if d.MixedInstancesPolicy != nil {
			var unknown bool
			out.MixedInstancesPolicy, out.Template, unknown = Policy(d.MixedInstancesPolicy)
			if unknown {
				// Such a refresh must not look like one of weir's, because weir would never start it.
				out.Template = observed.TemplateRef{}
			}
		}
	}
	return out
}

// Preferences sets SkipMatching unless Git sets it, so that a repeated refresh replaces nothing.
func Preferences(r intent.Refresh) *types.RefreshPreferences {
	var out types.RefreshPreferences
	Carry(r, &out)
	if out.SkipMatching == nil {
		out.SkipMatching = aws.Bool(true)
	}
	return &out
}

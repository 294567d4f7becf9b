package convert

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// TemplateRef converts a template version in an answer of Auto Scaling.
func TemplateRef(s *types.LaunchTemplateSpecification) observed.TemplateRef {
	if s == nil {
		return observed.TemplateRef{}
	}
	return observed.TemplateRef{ID: aws.ToString(s.LaunchTemplateId), Name: aws.ToString(s.LaunchTemplateName), Version: aws.ToString(s.Version)}
}

// TemplateSpec returns a template version for a request. It uses the id if known, because AWS refuses id and
// name together.
func TemplateSpec(r observed.TemplateRef) *types.LaunchTemplateSpecification {
	out := &types.LaunchTemplateSpecification{Version: StringOrNil(r.Version)}
	if r.ID != "" {
		out.LaunchTemplateId = aws.String(r.ID)
	} else {
		out.LaunchTemplateName = StringOrNil(r.Name)
	}
	return out
}

// CarrySettings writes a group's settings into a request. The settings of PoolOptions are one level deeper
// in the intent.
func CarrySettings(s *intent.GroupSettings, in any) {
	Carry(s, in)
	Carry(&s.Options, in)
}

// TrafficSources converts traffic sources for a request.
func TrafficSources(list []intent.TrafficSource) []types.TrafficSourceIdentifier {
	var out []types.TrafficSourceIdentifier
	for _, s := range list {
		out = append(out, types.TrafficSourceIdentifier{Identifier: aws.String(s.Identifier), Type: StringOrNil(s.Type)})
	}
	return out
}

// Hook converts a lifecycle hook, with AWS's defaults.
func Hook(h types.LifecycleHook) intent.LifecycleHook {
	return observed.HookDefaults(intent.LifecycleHook{
		Name: aws.ToString(h.LifecycleHookName), LifecycleTransition: aws.ToString(h.LifecycleTransition),
		NotificationTargetARN: aws.ToString(h.NotificationTargetARN), RoleARN: aws.ToString(h.RoleARN),
		HeartbeatTimeout: aws.ToInt32(h.HeartbeatTimeout), DefaultResult: aws.ToString(h.DefaultResult),
		NotificationMetadata: aws.ToString(h.NotificationMetadata),
	})
}

// HookRequests converts hooks for CreateAutoScalingGroup.
func HookRequests(in []intent.LifecycleHook) []types.LifecycleHookSpecification {
	var out []types.LifecycleHookSpecification
	for _, h := range in {
		out = append(out, types.LifecycleHookSpecification{
			LifecycleHookName: aws.String(h.Name), LifecycleTransition: aws.String(h.LifecycleTransition),
			NotificationTargetARN: StringOrNil(h.NotificationTargetARN), RoleARN: StringOrNil(h.RoleARN),
			HeartbeatTimeout: numberOrNil(h.HeartbeatTimeout), DefaultResult: StringOrNil(h.DefaultResult),
			NotificationMetadata: StringOrNil(h.NotificationMetadata),
		})
	}
	return out
}

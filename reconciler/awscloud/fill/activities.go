package fill

import (
	"context"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// fillActivities reads the activities that explain the state of groups. Nothing depends on them, so an error
// here has no other effect.
func (f *Filler) fillActivities(ctx context.Context, s *observed.State, queries []observed.ActivityQuery) {
	for _, q := range queries {
		known, ok := f.memory.Activities.Get(q, f.client.Now())
		if ok {
			s.Activities[q] = known
			continue
		}
		list, err := f.reader.Activities(ctx, q.Group, true)
		var found observed.Activities
		e := sdk.Classify("autoscaling", "DescribeScalingActivities", err)
		if e != nil {
			found.Refused = "the cause is unknown: " + e.Message
		}
		for _, a := range list {
			found.List = append(found.List, observed.Activity{Description: a.Description, Cause: a.Cause, At: a.Started})
		}
		s.Activities[q] = found
		if e == nil || e.Kind == observed.Denied {
			f.memory.Activities.Put(q, found, f.client.Now())
		}
	}
}

package awscloud

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/weir-gitops/weir/reconciler/plan"
)

const (
	// activitiesRead is how many of a group's newest scaling activities are read:
	// there is one for each machine that starts or ends.
	activitiesRead = 50
	// findingsKept bounds the memory of findings.
	findingsKept = 1000
)

// activityLog remembers the scaling activities that were read for a finding, so
// that one which stays costs no call at each pass.
type activityLog struct {
	mu    sync.Mutex
	known map[plan.ActivityQuery]plan.Activities
}

func (l *activityLog) get(q plan.ActivityQuery) (plan.Activities, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.known[q]
	return a, ok
}

func (l *activityLog) put(q plan.ActivityQuery, a plan.Activities) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= findingsKept {
		l.known = map[plan.ActivityQuery]plan.Activities{}
	}
	l.known[q] = a
}

// fillActivities reads why groups are as they are. It only explains, so nothing
// fails for want of it.
func (c *Cloud) fillActivities(ctx context.Context, s *plan.State, queries []plan.ActivityQuery) {
	for _, q := range queries {
		if known, ok := c.activities.get(q); ok {
			s.Activities[q] = known
			continue
		}
		out, err := c.autoscaling.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{
			AutoScalingGroupName: aws.String(q.Group), IncludeDeletedGroups: aws.Bool(true), MaxRecords: aws.Int32(activitiesRead),
		})
		var found plan.Activities
		if e := classify("autoscaling", "DescribeScalingActivities", err); e != nil {
			found.Refused = "the cause is not known: " + e.Message
			s.Activities[q] = found
			if e.Kind == plan.Denied {
				c.activities.put(q, found)
			}
			continue
		}
		for _, a := range out.Activities {
			found.List = append(found.List, plan.Activity{Description: aws.ToString(a.Description), Cause: aws.ToString(a.Cause), At: aws.ToTime(a.StartTime)})
		}
		s.Activities[q] = found
		c.activities.put(q, found)
	}
}

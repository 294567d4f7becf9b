package awscloud

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/weir-gitops/weir/reconciler/observed"
)

const (
	// activitiesRead is how many of a group's newest scaling activities are read:
	// there is one for each machine that starts or ends.
	activitiesRead = 50
	// findingsKept bounds the memory of findings, findingsUnusedFor is after what time
	// one that no plan has is forgotten.
	findingsKept      = 1000
	findingsUnusedFor = time.Hour
)

// activityLog remembers the scaling activities that were read for a finding, so
// that one which stays costs no call at each pass.
type activityLog struct {
	mu    sync.Mutex
	known map[observed.ActivityQuery]knownActivities
}

type knownActivities struct {
	observed.Activities
	used time.Time
}

func (l *activityLog) get(q observed.ActivityQuery, now time.Time) (observed.Activities, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.known[q]
	if ok {
		a.used = now
		l.known[q] = a
	}
	return a.Activities, ok
}

func (l *activityLog) put(q observed.ActivityQuery, a observed.Activities, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= findingsKept {
		l.known = map[observed.ActivityQuery]knownActivities{}
	}
	l.known[q] = knownActivities{a, now}
}

// forget lets go of findings that no plan has any more.
func (l *activityLog) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(_ observed.ActivityQuery, a knownActivities) bool { return now.Sub(a.used) >= findingsUnusedFor })
}

// fillActivities reads why groups are as they are. It only explains, so nothing
// fails for want of it.
func (c *Cloud) fillActivities(ctx context.Context, s *observed.State, queries []observed.ActivityQuery) {
	for _, q := range queries {
		if known, ok := c.activities.get(q, c.now()); ok {
			s.Activities[q] = known
			continue
		}
		out, err := c.autoscaling.DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{
			AutoScalingGroupName: aws.String(q.Group), IncludeDeletedGroups: aws.Bool(true), MaxRecords: aws.Int32(activitiesRead),
		})
		var found observed.Activities
		if e := classify("autoscaling", "DescribeScalingActivities", err); e != nil {
			found.Refused = "the cause is not known: " + e.Message
			s.Activities[q] = found
			if e.Kind == observed.Denied {
				c.activities.put(q, found, c.now())
			}
			continue
		}
		for _, a := range out.Activities {
			found.List = append(found.List, observed.Activity{Description: aws.ToString(a.Description), Cause: aws.ToString(a.Cause), At: aws.ToTime(a.StartTime)})
		}
		s.Activities[q] = found
		c.activities.put(q, found, c.now())
	}
}

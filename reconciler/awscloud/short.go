package awscloud

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/weir-gitops/weir/reconciler/plan"
)

const (
	// shortGrace is how long a group may lack machines until AWS is asked why: a
	// launch that goes well takes no call.
	shortGrace = 15 * time.Second
	// shortSoonest and shortLatest bound the time between two questions about one
	// group; it doubles while the answer is the same.
	shortSoonest, shortLatest = time.Minute, 16 * time.Minute
	// togetherFrom is for how many groups one call asks about all of the account.
	togetherFrom = 4
	// failureCounts is how old a failed launch may be to tell of a machine that lacks now.
	failureCounts = time.Hour
)

// shortLog remembers which groups lack machines, and what AWS said of it.
type shortLog struct {
	mu    sync.Mutex
	known map[string]*shortGroup // nil before the first question
}

type shortGroup struct {
	seen, asked time.Time
	wait        time.Duration
	failure     plan.LaunchFailure
	// alone has it asked about by itself, because the newest activities of the
	// account did not hold one of it.
	alone bool
}

// due notes which groups lack machines, forgets the others, and returns those that
// AWS is to be asked about.
func (l *shortLog) due(groups map[string]plan.Group, names []string, now, clock time.Time) (due []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, before := l.known == nil, l.known
	l.known = make(map[string]*shortGroup, len(names))
	for _, name := range names {
		g := before[name]
		if g == nil {
			g = &shortGroup{seen: now, wait: shortSoonest}
			if first && clock.Sub(groups[name].CreatedAt) >= shortSoonest {
				g.seen = now.Add(-shortGrace) // it was there before the process
			}
		}
		l.known[name] = g
		if g.asked.IsZero() && now.Sub(g.seen) >= shortGrace || !g.asked.IsZero() && now.Sub(g.asked) >= g.wait {
			due = append(due, name)
		}
	}
	slices.SortStableFunc(due, func(a, b string) int { return l.known[a].asked.Compare(l.known[b].asked) })
	return due
}

// note takes what AWS said of a group.
func (l *shortLog) note(name string, list []types.Activity, now, clock time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.known[name]
	if g == nil { // another read has looked since
		return
	}
	f := launchFailureOf(list, clock)
	if g.asked.IsZero() || f.Message != g.failure.Message {
		g.wait = shortSoonest
	} else {
		g.wait = min(2*g.wait, shortLatest)
	}
	g.asked, g.failure = now, f
}

// unanswered notes that AWS did not say, or that weir may not ask: what was known stays.
func (l *shortLog) unanswered(names []string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if g := l.known[name]; g != nil {
			g.asked, g.wait = now, min(2*g.wait, shortLatest)
		}
	}
}

// launchFailureOf is the newest failed launch, zero where there is none of late.
func launchFailureOf(list []types.Activity, clock time.Time) plan.LaunchFailure {
	for _, a := range list {
		at := aws.ToTime(a.StartTime)
		if a.StatusCode == types.ScalingActivityStatusCodeFailed && strings.HasPrefix(aws.ToString(a.Description), "Launching") && clock.Sub(at) < failureCounts {
			return plan.LaunchFailure{Message: aws.ToString(a.StatusMessage), At: at}
		}
	}
	return plan.LaunchFailure{}
}

// fillShort tells why machines of groups do not come: as often as is due, with calls
// to spare, and one call for many groups.
func (c *Cloud) fillShort(ctx context.Context, s *plan.State, names []string) error {
	if len(names) == 0 {
		return nil
	}
	due := c.short.due(s.Groups, names, c.now(), c.clock())
	apart := due
	if len(due) >= togetherFrom {
		var together []string
		apart = nil
		for _, name := range due {
			if c.short.isAlone(name) {
				apart = append(apart, name)
			} else {
				together = append(together, name)
			}
		}
		if err := poll(ctx, c, "autoscaling", "DescribeScalingActivities", [][]string{together}, c.askTogether); err != nil {
			return err
		}
	}
	if err := poll(ctx, c, "autoscaling", "DescribeScalingActivities", apart, func(ctx context.Context, name string) error {
		list, err := c.newestActivities(ctx, name)
		if err != nil {
			c.short.unanswered([]string{name}, c.now())
			return err
		}
		c.short.note(name, list, c.now(), c.clock())
		return nil
	}); err != nil {
		return err
	}
	s.LaunchFailures = c.short.failures()
	return nil
}

// askTogether asks about the newest activities of the account.
func (c *Cloud) askTogether(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	list, err := c.newestActivities(ctx, "")
	if err != nil {
		c.short.unanswered(names, c.now())
		return err
	}
	of := map[string][]types.Activity{}
	for _, a := range list {
		name := aws.ToString(a.AutoScalingGroupName)
		of[name] = append(of[name], a)
	}
	for _, name := range names {
		if len(of[name]) == 0 {
			c.short.setAlone(name)
		} else {
			c.short.note(name, of[name], c.now(), c.clock())
		}
	}
	return nil
}

func (c *Cloud) newestActivities(ctx context.Context, group string) ([]types.Activity, error) {
	in := &autoscaling.DescribeScalingActivitiesInput{MaxRecords: aws.Int32(activitiesRead)}
	if group != "" {
		in.AutoScalingGroupName = aws.String(group)
	} else {
		in.MaxRecords = aws.Int32(2 * activitiesRead)
	}
	out, err := c.autoscaling.DescribeScalingActivities(ctx, in)
	if e := classify("autoscaling", "DescribeScalingActivities", err); e != nil {
		return nil, e
	}
	return out.Activities, nil
}

func (l *shortLog) isAlone(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.known[name]
	return g != nil && g.alone
}

func (l *shortLog) setAlone(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.known[name]; g != nil {
		g.alone = true
	}
}

func (l *shortLog) failures() map[string]plan.LaunchFailure {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]plan.LaunchFailure{}
	for name, g := range l.known {
		if g.failure.Message != "" {
			out[name] = g.failure
		}
	}
	return out
}

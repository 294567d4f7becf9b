package preflight

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/diag"
)

const (
	// maxRounds bounds the rounds in which facts lead to further facts. The longest chain belongs to a
	// quota: instances, their types, and then a dry run.
	maxRounds = 5
	// patience is the maximum time that a plan waits for answers. onePatience is the maximum for one kind of
	// fact, so that a hanging call leaves time for the questions that follow from other answers. The plan
	// lists the questions without an answer.
	patience    = 10 * time.Second
	onePatience = 5 * time.Second
)

// errPatience distinguishes these timeouts from the end of the caller's context.
var errPatience = errors.New("AWS takes too long")

// Request is a plan to check, with its input.
type Request struct {
	*plan.Plan
	Input model.Input
	// Followed says that weir follows the commit, and that its planner may apply it.
	Followed bool
}

// Asker checks plans of one account and region, and caches the answers. It is safe for concurrent use. Calls
// run one after the other.
type Asker struct {
	cloud    Cloud
	launcher Launcher
	now      func() time.Time
	turn     chan struct{} // contains one token, whose owner may use facts
	facts    *facts
}

// New returns an Asker. Without a launcher it makes no dry run. now is nil for time.Now.
func New(cloud Cloud, launcher Launcher, now func() time.Time) *Asker {
	if now == nil {
		now = time.Now
	}
	a := &Asker{cloud: cloud, launcher: launcher, now: now, turn: make(chan struct{}, 1), facts: newFacts()}
	a.turn <- struct{}{}
	return a
}

// Answer is AWS's answer about one plan.
type Answer struct {
	// Findings lists what AWS would refuse.
	Findings diag.List
	// Refused explains for pools ("namespace/name") why no new machine can start: AWS said that a named
	// resource does not exist or cannot be used. Short capacity, dry runs and unanswered questions do not
	// count.
	Refused map[string][]string
}

// Ask reports for each plan what AWS would refuse. It never fails: unanswered questions are among the
// findings. A nil plan has no findings.
func (a *Asker) Ask(ctx context.Context, plans []Request) []Answer {
	out := make([]Answer, len(plans))
	launches := make([][]*launch, len(plans))
	asks := false
	for i, p := range plans {
		if p.Plan != nil && len(p.Steps) > 0 {
			launches[i] = launchesOf(p.Plan, p.Input)
			asks = asks || len(launches[i]) > 0
		}
	}
	if !asks {
		return out
	}
	asked := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	select {
	case <-a.turn:
	case <-ctx.Done():
		for i := range plans {
			if len(launches[i]) > 0 && asked.Err() == nil {
				out[i].Findings = diag.List{unasked("another plan is still waiting for AWS's answers")}
			}
		}
		return out
	}
	defer func() { a.turn <- struct{}{} }()
	a.facts.expire(a.now())
	tries := a.launcher != nil
	for range maxRounds {
		lacks := false
		for i := range plans {
			if len(launches[i]) > 0 {
				var more bool
				out[i], more = judge(launches[i], a.facts, plans[i].Followed && tries)
				lacks = lacks || more
			}
		}
		if !lacks {
			break
		}
		a.read(ctx)
		if asked.Err() != nil {
			return make([]Answer, len(plans)) // the caller no longer waits for them
		}
	}
	return out
}

// read reads all wanted facts in as few calls as AWS allows. It reads different kinds concurrently, so that
// a slow call delays no other kind.
func (a *Asker) read(ctx context.Context) {
	r, f := reading{ctx, a.now()}, a.facts
	var kinds sync.WaitGroup
	for _, kind := range []func(){
		func() { readEach(r, f.profiles, "iam", "GetInstanceProfile", a.cloud.Profile) },
		func() { readBatch(r, f.keyPairs, "ec2", "DescribeKeyPairs", a.cloud.KeyPairs) },
		func() { readBatch(r, f.groups, "ec2", "DescribeSecurityGroups", a.cloud.GroupsThatExist) },
		func() { readBatch(r, f.subnets, "ec2", "DescribeSubnets", a.cloud.SubnetRoom) },
		func() { readBatch(r, f.targets, "elasticloadbalancing", "DescribeTargetGroups", a.cloud.TargetGroups) },
		func() { readBatch(r, f.placements, "ec2", "DescribePlacementGroups", a.cloud.PlacementGroups) },
		func() { readEach(r, f.keys, "kms", "DescribeKey", a.cloud.Key) },
		func() { readBatch(r, f.types, "ec2", "DescribeInstanceTypes", a.cloud.InstanceTypes) },
		func() { readBatch(r, f.offerings, "ec2", "DescribeInstanceTypeOfferings", a.cloud.Offerings) },
		func() { readBatch(r, f.images, "ec2", "DescribeImages", a.cloud.ImagesNamed) },
		func() { readBatch(r, f.snapshots, "ec2", "DescribeSnapshots", a.cloud.Snapshots) },
		func() { readEach(r, f.quotas, "servicequotas", "GetServiceQuota", a.cloud.Quota) },
		func() {
			readEach(r, f.running, "ec2", "DescribeInstances", func(ctx context.Context, _ string) ([]Instance, bool, error) {
				all, err := a.cloud.Running(ctx)
				return all, true, err
			})
		},
		func() {
			readEach(r, f.reserved, "ec2", "DescribeCapacityReservations", func(ctx context.Context, _ string) ([]Reservation, bool, error) {
				all, err := a.cloud.Reservations(ctx)
				return all, true, err
			})
		},
		func() { readEach(r, f.dryRuns, "ec2", "RunInstances", a.tryLaunch) },
	} {
		kinds.Go(kind)
	}
	kinds.Wait()
}

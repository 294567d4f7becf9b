package preflight

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/render/diag"
)

const (
	// maxRounds bounds how often facts may lead to further facts: the longest chain is a
	// quota's, whose machines and their types follow one another, and then a dry run.
	maxRounds = 5
	// patience is how long a plan waits for answers: what is not answered by then is
	// said, and asked again by the next plan.
	patience = 10 * time.Second
)

// Plan is a plan to ask about, with what it was made from.
type Plan struct {
	*plan.Plan
	Input basis.Input
	// Followed says that the commit is followed, and that whoever plans it may apply it.
	Followed bool
}

// Asker asks about plans of one account and region, and keeps the answers. It is safe for
// concurrent use; calls wait for each other.
type Asker struct {
	cloud    Cloud
	launcher Launcher
	now      func() time.Time
	turn     chan struct{} // holds one token: its holder may touch facts
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

// Findings says of each plan what AWS would refuse of it. It never fails: what AWS does
// not tell is among the findings. A plan that is nil has none.
func (a *Asker) Findings(ctx context.Context, plans []Plan) []diag.List {
	out := make([]diag.List, len(plans))
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
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-a.turn:
	case <-ctx.Done():
		return out
	}
	defer func() { a.turn <- struct{}{} }()
	a.facts.expire(a.now())
	for range maxRounds {
		lacks := false
		for i := range plans {
			if len(launches[i]) > 0 {
				var more bool
				out[i], more = judge(launches[i], a.facts, plans[i].Followed && a.launcher != nil)
				lacks = lacks || more
			}
		}
		if !lacks {
			break
		}
		a.read(ctx)
	}
	return out
}

// read reads all facts that are wanted, in as few calls as AWS allows.
func (a *Asker) read(ctx context.Context) {
	now, f := a.now(), a.facts
	readEach(ctx, f.profiles, now, "iam", "GetInstanceProfile", a.cloud.Profile)
	readBatch(ctx, f.keyPairs, now, a.cloud.KeyPairs)
	readBatch(ctx, f.groups, now, a.cloud.GroupsThatExist)
	readBatch(ctx, f.subnets, now, a.cloud.SubnetRoom)
	readBatch(ctx, f.targets, now, a.cloud.TargetGroups)
	readBatch(ctx, f.placements, now, a.cloud.PlacementGroups)
	readEach(ctx, f.keys, now, "kms", "DescribeKey", a.cloud.Key)
	readBatch(ctx, f.types, now, a.cloud.InstanceTypes)
	readBatch(ctx, f.offerings, now, a.cloud.Offerings)
	readEach(ctx, f.quotas, now, "servicequotas", "GetServiceQuota", a.cloud.Quota)
	readEach(ctx, f.running, now, "ec2", "DescribeInstances", func(ctx context.Context, _ string) ([]Instance, bool, error) {
		all, err := a.cloud.Running(ctx)
		return all, true, err
	})
	a.readDryRuns(ctx, now)
}

// readBatch reads keys with one call.
func readBatch[V any](ctx context.Context, s *shelf[V], now time.Time, call func(context.Context, []string) (map[string]V, error)) {
	keys := s.take()
	if len(keys) == 0 {
		return
	}
	found, err := call(ctx, keys)
	for _, k := range keys {
		v, ok := found[k]
		s.put(k, v, ok, asError(err), now)
	}
}

// mostEach is how many things of a kind are asked about one at a time for a plan.
const mostEach = 25

// readEach reads keys one at a time, with the operation of a service. Where AWS refuses
// more calls it makes no more.
func readEach[V any](ctx context.Context, s *shelf[V], now time.Time, service, operation string, call func(context.Context, string) (V, bool, error)) {
	var ends *observed.Error
	for i, k := range s.take() {
		if i == mostEach && ends == nil {
			ends = &observed.Error{Kind: observed.Cancelled, Service: service, Operation: operation, Code: "TooMany", Message: "the plan names very many"}
		}
		var v V
		var found bool
		err := ends
		if err == nil {
			var failed error
			v, found, failed = call(ctx, k)
			if err = asError(failed); err != nil && slices.Contains([]observed.ErrorKind{observed.Throttled, observed.Credentials, observed.Cancelled}, err.Kind) {
				ends = err
			}
		}
		s.put(k, v, found, err, now)
	}
}

func asError(err error) *observed.Error {
	if err == nil {
		return nil
	}
	var e *observed.Error
	if errors.As(err, &e) {
		return e
	}
	return &observed.Error{Kind: observed.Unknown, Code: "Unknown", Message: err.Error(), Err: err}
}

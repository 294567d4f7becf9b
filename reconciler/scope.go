package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/orphan"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Scope reconciles the targets of one account and region. It remembers between
// passes only what AWS cannot tell: which attempts were refused. NewScope makes one.
type Scope struct {
	Options

	// busy is full while a pass is under way. There is one at a time: the memory
	// between passes, here and in the resolver, is not made for two.
	busy chan struct{}

	// refusals holds what weir must not try again.
	refusals refusals.Record

	mu     sync.Mutex
	memory basis.Memory
	// clusters are the EKS clusters in which nodegroups are wanted, or were and may be
	// still, and when that was last said; queried is when the last pass said it.
	clusters map[string]time.Time
	queried  time.Time
	// sent counts how often a client token was answered.
	sent, sentBefore map[string]int
	// cancelled are the refreshes that weir cancelled.
	cancelled, cancelledBefore map[string]bool
	// keepers keep join tokens, by target.
	keepers map[string]tokenKeeper
	// drainers drain machines, by target; only passes use them.
	drainers map[string]*drain.Drainer
	// disruptions are the answers about disruption budgets, by cluster; only passes use them.
	disruptions map[Workload]*budgetAnswer
	// left are the turns that the last pass did not come to, by poolKey, and overtaken says
	// that something newer was why. Passes alone use them.
	left      map[string]bool
	overtaken bool
	// unsure are the refreshes that the plans of this pass know from an earlier one.
	unsure map[string]observed.Refresh
	// planned are the commits that targets were planned at in passes that apply.
	planned map[string]string
	// levels are the answers to the lookups of the last pass; only passes use them.
	levels map[intent.Lookup]basis.Level
	// looks holds the reads on which the steps of this pass rely.
	looks looks
	// sight is that of the batch; only passes use it.
	sight *Sight
	// near lists what a partial read fetches again, for the targets of the last pass. nearAt is the
	// start of that pass. Only passes use them.
	near   *near
	nearOf []wish
	nearAt time.Time
	// listed is the first observation of this pass.
	listed observed.Listed
	// waiting are the rollouts that waited for their turn in the last pass.
	waiting []plan.Waiting
}

// NewScope returns a Scope that remembers nothing yet.
func NewScope(o Options) *Scope {
	return &Scope{Options: o, busy: make(chan struct{}, 1)}
}

// Retry makes the next pass try again what failed of pools ("namespace/name").
func (s *Scope) Retry(pools []string) { s.refusals.Retry(pools) }

// Pass observes once, plans every target and, in mode Apply, does what the
// plans say. It returns a report for each target, in order, and fails as a
// whole only where AWS could not be read.
// Passes over one scope wait for each other.
func (s *Scope) Pass(ctx context.Context, targets []Desired, mode Mode) ([]*plan.Report, error) {
	return s.pass(ctx, Batch{Targets: targets}, mode)
}

func (s *Scope) pass(ctx context.Context, b Batch, mode Mode) ([]*plan.Report, error) {
	targets := b.Targets
	started := s.now()
	reports := make([]*plan.Report, len(targets))
	for i, t := range targets {
		reports[i] = newReport(t, started)
		reports[i].Fresh = b.Fresh
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return reports, fmt.Errorf("wait for the pass before: %w", ctx.Err())
	}
	began := s.now()
	near := s.takeNear(b, mode)
	s.nearAt = s.clock()
	s.sight = b.Sight
	s.recall(b)
	s.recallCancelled(b.Marks, targets)
	s.Resolver.Renew(b.Fresh)
	read := nodes(ctx, targets)
	inputs, err := s.prepare(ctx, targets)
	for i, n := range read() {
		inputs[i].Nodes = n
	}
	if err != nil {
		return reports, err
	}
	plans, state, err := s.plan(ctx, targets, inputs, near)
	if err == nil && near.beyond(plans) {
		near = nil
		plans, state, err = s.plan(ctx, targets, inputs, nil)
	}
	if err != nil {
		return reports, err
	}
	targets = near.leaveOut(targets, inputs)
	targets = judge(targets, inputs, plans, reports)
	if state, err = s.explainShortages(ctx, inputs, state); err != nil {
		return reports, err
	}
	s.nameImages(ctx, plans)
	budgets := s.budgets(ctx, targets, inputs, plans)
	refuse := s.preflight(ctx, targets, inputs, plans)
	budgets()
	refuse()
	s.limitRollouts(plans, b.Targets, &state) // a rollout that AWS would refuse takes no turn
	s.keepRefreshes(plans, targets, &state, began)
	if len(inputs) > 0 {
		s.refusals.Retried(inputs[0].Memory.Refusals, waiting(plans)) // which all inputs share
	}
	inService, settled := map[string]time.Time{}, s.settledElsewhere(targets)
	asking, asked := sparing(ctx, mode)
	defer asked()
	for i := range targets {
		if targets[i].Set == nil {
			if targets[i].shown() && !near.still(targets[i]) && state.Groups != nil {
				inputs[i].State, inputs[i].Index = &state, nil
				reports[i].Pools = plan.WithFaults(inputs[i], nil, nil, reports[i].Holds)
			}
			continue
		}
		inputs[i].State = &state
		p := plans[i]
		maps.Copy(inService, basis.InService(inputs[i]))
		own := plan.Apt(inputs[i], slices.Clone(targets[i].Diagnostics))
		attachOrigins(asking, p, own, targets[i])
		reports[i].Pools = plan.Statuses(inputs[i], p)
		plan.Settle(settled, inputs[i].Memory.Settled, inputs[i], p, reports[i].Pools)
		reports[i].Pools = plan.WithFaults(inputs[i], reports[i].Pools, reports[i].HeldPools, reports[i].Holds)
		reports[i].Governed = p.Governed()
		reports[i].Levels = plan.Levels(targets[i].Set, s.levels)
		reports[i].LaunchConfigs = plan.LaunchConfigStatuses(inputs[i], p)
		p.Diagnostics = append(own, p.Diagnostics...).Sorted()
		reports[i].Plan, reports[i].Diagnostics = p, p.Diagnostics
		inputs[i].NoteAlarms(reports[i].Governed)
		inputs[i].NoteActivities(reports[i].Governed)
	}
	if s.sight != nil {
		s.sight.State, s.sight.Nodes = state, map[string]*basis.Nodes{}
		for i, t := range targets {
			s.sight.Nodes[t.Policy.Target] = inputs[i].Nodes
		}
	}
	s.forget(targets, &state)
	s.keepInService(inService, &state)
	s.keepSettled(settled)
	if b.Strays {
		strays(targets, reports, near, &state)
	}
	if mode == Apply {
		if err := b.witness(&state); err != nil {
			return reports, err
		}
		for _, r := range reports {
			if r.Plan != nil {
				s.refusals.Taken(r.Target, r.Plan.Steps, plan.Unclear(r.Pools))
			}
		}
		s.keepPlanned(reports)
		s.joinTokens(ctx, targets, inputs, reports)
		begin(ctx, targets, reports)
		s.mu.Lock()
		s.looks.begin(&state, targets)
		s.mu.Unlock()
		s.drain(ctx, targets, inputs, reports, &state)
		s.begun(b.Marks, targets)
		s.cancelling(b.Marks, reports, &state)
		s.applyAll(ctx, reports, b.Overtaken)
		s.mu.Lock()
		s.looks = looks{} // it would keep all that was observed until the next pass
		s.mu.Unlock()
		for i, r := range reports {
			addUnknownNames(ctx, targets[i], r)
			s.noteParked(targets[i].Policy, r)
		}
		s.keepTried(b)
		s.keepNear(b.Targets, reports, near, &state)
		s.reached(b.Marks, targets, inputs, reports)
	}
	for _, r := range reports {
		r.Duration = s.now().Sub(started)
	}
	return near.reported(targets, reports), nil
}

// strays reports the resources of targets that are no longer configured, with the first target of
// the pass that has a plan. A partial read without news of the first target reports none.
func strays(targets []Desired, reports []*plan.Report, near *near, state *observed.State) {
	known := map[string]bool{}
	for _, t := range targets {
		known[t.Policy.Target] = true
	}
	for i, r := range reports {
		if near.still(targets[i]) {
			return
		}
		if r.Plan != nil {
			found := orphan.Strays(state, targets[i].Policy, known)
			r.Plan.Diagnostics = append(r.Plan.Diagnostics, found...)
			r.Diagnostics = r.Plan.Diagnostics
			return
		}
	}
}

// keepInService remembers since when instances are in service. The memory of a target
// that is not in the pass, or did not render, stays while the instance exists in AWS.
func (s *Scope) keepInService(seen map[string]time.Time, state *observed.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.memory.InService) > 0 {
		for _, g := range state.Groups {
			for _, i := range g.Instances {
				if since, known := s.memory.InService[i.ID]; known && seen[i.ID].IsZero() && i.LifecycleState == "InService" {
					seen[i.ID] = since
				}
			}
		}
	}
	s.memory.InService = seen
}

// waiting returns the pools ("namespace/name") with a step that waits for something else.
func waiting(plans []*plan.Plan) map[string]bool {
	out := map[string]bool{}
	for _, p := range plans {
		if p == nil {
			continue
		}
		for _, st := range p.Steps {
			if st.Held.Passes() || st.Held == step.HeldStopped {
				out[st.Pool] = true
			}
		}
	}
	return out
}

func newReport(t Desired, started time.Time) *plan.Report {
	var holds *plan.Holds
	switch h := t.Policy.Held; {
	case h != nil && t.Set == nil:
		holds = &plan.Holds{Why: h.Why, Verdict: lastgood.Verdict{Answer: lastgood.Differs, Why: h.None}}
		t.Diagnostics = append(slices.Clone(t.Diagnostics), holds.Diagnostic()).Sorted()
	case h != nil: // until AWS has said what it holds
		holds = &plan.Holds{Revision: h.Revision, Why: h.Why, Verdict: lastgood.Verdict{Answer: lastgood.Unclear, Why: "AWS has not answered"}}
	}
	subject := t.Commit.Subject
	if t.HideSubject {
		subject = ""
	}
	return &plan.Report{
		Holds:  holds,
		Target: t.Policy.Target, Source: t.Source, Account: t.Policy.Account, Region: t.Policy.Region,
		Revision: t.Commit.Revision, Subject: subject, Ref: t.Ref, Seq: t.Seq, Touched: t.Touched,
		Diagnostics: t.Diagnostics, Err: t.Err, StartedAt: started, Suspended: t.Policy.Suspended,
		ReportOnly: t.Policy.ReportOnly, Wanted: t.Wanted,
	}
}

// prepare makes the inputs of all targets but for the state: the fleet that
// they want together, and the answers to their lookups.
func (s *Scope) prepare(ctx context.Context, targets []Desired) ([]basis.Input, error) {
	claims, brought := map[string][]basis.Claim{}, map[string]bool{}
	whole := true
	var unplanned []intent.Unplanned
	for _, t := range targets {
		if t.Set == nil || !t.Whole || t.Err != nil {
			whole = false
		}
		if t.Set != nil {
			claims[t.Policy.Target] = basis.Claims(t.Set)
			basis.Brought(t.Set, brought)
		}
		unplanned = append(unplanned, t.Unplanned...)
	}
	fleet := basis.NewFleet(claims, whole)
	fleet.Unplanned = unplanned
	fleet.Brought = brought
	giveWay(targets, claims, &fleet)
	inputs := make([]basis.Input, len(targets))
	answers, checked, err := s.answers(ctx, targets)
	if err != nil {
		return inputs, err
	}
	s.levels = levels(s.levels, answers, s.now())
	s.mu.Lock()
	memory := s.memory.Clone()
	memory.Cancelled = make(map[string]bool, len(s.cancelled)+len(s.cancelledBefore))
	maps.Copy(memory.Cancelled, s.cancelledBefore)
	maps.Copy(memory.Cancelled, s.cancelled)
	planned := s.planned
	s.mu.Unlock()
	memory.Refusals = s.refusals.View(s.clock())
	for i, t := range targets {
		inputs[i] = basis.Input{
			Reviewed: t.Reviewed, Checked: checked[i], Base: t.Base,
			Own:    t.Proposed || t.Reviews && t.Touched && planned[t.Policy.Target] != t.Commit.Revision,
			Policy: t.Policy, Commit: t.Commit, Set: t.Set, Unplanned: t.Unplanned, Answers: answers[i], Levels: s.levels, Fleet: fleet, Memory: memory, Fenced: t.Ancestry != nil,
			Now: s.clock(), Began: s.now(), AskEvery: s.AskEvery,
		}
	}
	holdNothingContested(inputs)
	recallSettled(inputs, &memory)
	return inputs, nil
}

// giveWay takes back what pools that are held to an earlier revision want of AWS where
// another target wants it by a followed one.
func giveWay(targets []Desired, claims map[string][]basis.Claim, fleet *basis.Fleet) {
	again := false
	for _, t := range targets {
		for pool := range t.Policy.HeldPools {
			for _, c := range basis.Claims(&intent.Set{Pools: []intent.Pool{*t.Set.Pool(pool)}}) {
				if len(fleet.Contested[c]) > 0 {
					again = true
					claims[t.Policy.Target] = slices.DeleteFunc(slices.Clone(claims[t.Policy.Target]), func(o basis.Claim) bool { return o == c })
				}
			}
		}
	}
	if again {
		with := basis.NewFleet(claims, fleet.Whole)
		fleet.Wanted, fleet.Contested = with.Wanted, with.Contested
	}
}

// holdNothingContested has pools only observed that are held to an earlier revision and
// whose names another target wants.
func holdNothingContested(inputs []basis.Input) {
	for i := range inputs {
		in := &inputs[i]
		for pool, h := range in.Policy.HeldPools {
			for _, c := range basis.Claims(&intent.Set{Pools: []intent.Pool{*in.Set.Pool(pool)}}) {
				other := in.Fleet.Wanted[c]
				if other == "" || other == in.Policy.Target {
					continue
				}
				only := *h
				only.Unread = "the target " + other + " wants the " + string(c.Resource) + " " + c.Name
				in.Policy.HeldPools = maps.Clone(in.Policy.HeldPools)
				in.Policy.HeldPools[pool] = &only
			}
		}
	}
}

// clustersOf returns a function that finds a pool's cluster in the set, or makes
// one of the names that the pool knows where the cluster's manifest is elsewhere.
func clustersOf(set *intent.Set) func(*intent.Pool) intent.Cluster {
	byKey := make(map[intent.Key]intent.Cluster, len(set.Clusters))
	for _, c := range set.Clusters {
		byKey[c.Key] = c
	}
	return func(pool *intent.Pool) intent.Cluster {
		if c, ok := byKey[pool.ClusterKey]; ok {
			return c
		}
		c := intent.Cluster{Key: pool.ClusterKey, TagName: pool.ClusterKey.Name}
		if n := pool.Nodegroup; n != nil {
			c.EKSName, c.TagName = n.ClusterName, n.ClusterName
		}
		return c
	}
}

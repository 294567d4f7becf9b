package simulate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/gates/calendar"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// place is one account and region, with the loop of its passes.
type place struct {
	*replica
	stage   *Stage
	batch   reconciler.Batch
	cloud   *awscloud.Cloud
	cluster []*cluster
	inputs  reconciler.PassInputs
	rhythm  reconciler.Rhythm
	// next is the start of the next pass. It is zero while no change is expected.
	next time.Time
	// pages has the calls that each pass makes, by bucket.
	pages map[string]timeline.Call
	// still is the time since which passes that expect a change see none.
	still time.Time
}

// newPlace returns a simulated account and region with the observed state of a stage. It has no records and
// no connection to real systems.
func newPlace(ctx context.Context, st *Stage, now time.Time, a Assumptions) (*place, error) {
	r, err := newReplica(ctx, st.Inputs.State, st.Inputs.Answers, now, a)
	if err != nil {
		return nil, err
	}
	p := &place{replica: r, stage: st, batch: st.Batch, next: now}
	if p.cloud, err = r.open(ctx, a.Share); err != nil {
		return nil, err
	}
	p.srv.ResetCalls()
	// Pools run one after the other, so that the order of calls is always the same.
	p.batch.Scope = reconciler.NewScope(reconciler.Options{Cloud: p.cloud, Resolver: recorded(st.Inputs), Now: r.clock.Now, Concurrency: 1})
	p.batch.Inputs, p.batch.AllTargets, p.batch.BeforeWrite, p.batch.Attempts, p.batch.Marks, p.batch.Overtaken = &p.inputs, false, nil, nil, nil, nil
	p.batch.Targets = slices.Clone(st.Batch.Targets)
	for i := range p.batch.Targets {
		d := &p.batch.Targets[i]
		if d.Workload != nil {
			c := newCluster(p, st.Inputs.Nodes[d.Policy.Target])
			d.Workload, p.cluster = c, append(p.cluster, c)
		}
		d.Tokens, d.Drains, d.Origins, d.Begin, d.Proposed = nil, nil, nil, nil, false
		if a.Approved {
			d.Policy.Gates.AsReviewed = false
		}
		if d.Set != nil && len(r.leftPools) > 0 {
			set := *d.Set
			set.Pools = slices.DeleteFunc(slices.Clone(set.Pools), func(pool intent.Pool) bool { return r.leftPools[pool.Key.String()] })
			d.Set = &set
		}
	}
	return p, nil
}

// compare plans from the copy, and returns the differences between that plan and AWS's.
func (p *place) compare(ctx context.Context, w *staging) (doubts []string) {
	batch := p.batch
	batch.Targets = slices.Clone(batch.Targets)
	key := func(s step.Step) string { return s.Owner() + ": " + string(s.Verb) + " " + string(s.Resource) }
	steps := func(of *plan.Report) map[string]bool {
		out := map[string]bool{}
		if of.Plan != nil {
			for _, s := range of.Plan.Steps {
				if s.Verb != step.PruneVersion {
					out[key(s)] = true
				}
			}
		}
		return out
	}
	real := map[string]*plan.Report{}
	for _, r := range p.stage.Reports {
		real[r.Target] = r
	}
	for _, r := range reconciler.RunBatch(ctx, batch, reconciler.PlanOnly) {
		want, was := real[r.Target], []string{}
		if want == nil || want.Plan == nil || !w.shows(r.Target) {
			continue
		}
		if r.Err != nil {
			doubts = append(doubts, fmt.Sprintf("target %s cannot be planned in the copy: %v", r.Target, r.Err))
			continue
		}
		is, had := steps(r), steps(want)
		for k := range had {
			if !is[k] {
				was = append(was, "lacks "+k)
			}
		}
		for k := range is {
			if !had[k] {
				was = append(was, "adds "+k)
			}
		}
		if slices.Sort(was); len(was) > 0 {
			doubts = append(doubts, fmt.Sprintf("the copy of target %s differs from AWS: its plan %s", r.Target, strings.Join(was[:min(3, len(was))], ", ")))
		}
	}
	p.srv.ResetCalls()
	return doubts
}

// pass makes one pass over a place, and records the result.
func (w *staging) pass(ctx context.Context, p *place) error {
	if p.next.After(p.clock.Now()) {
		p.clock.Set(p.next)
	}
	p.waited = w.rec.Waited
	batch := w.gated(p)
	reports := reconciler.RunBatch(ctx, batch, reconciler.Apply)
	if err := ctx.Err(); err != nil {
		return err
	}
	now := p.clock.Now()
	w.rec.Passed()
	p.called(w.rec)
	for _, c := range p.cluster {
		c.joinNodes(now)
	}
	for _, r := range reports {
		old := w.known.Standings[r.Target]
		w.known.Note(r)
		w.record(now, r)
		if stands := w.known.Standings[r.Target]; stands.Lets() && (!old.Lets() || stands.Opens(old)) {
			w.wakeAfter(r.Target, now)
		}
	}
	w.schedule(p, reports, now)
	for _, s := range w.sources {
		w.conduct(s, now)
	}
	return nil
}

// gated returns a place's batch with its current holds.
func (w *staging) gated(p *place) reconciler.Batch {
	now := p.clock.Now()
	b := p.batch
	b.Targets = slices.Clone(b.Targets)
	records := w.scene.Records
	records.Suspensions = slices.DeleteFunc(slices.Clone(records.Suspensions), func(s gates.Suspension) bool { return !s.Until.IsZero() && !s.Until.After(now) })
	batches := []reconciler.Batch{b}
	if w.scene.Conditions != nil {
		gates.Gate(batches, w.scene.Conditions, records, w.known, gates.Pending{}, clock.At(p.clock.Now)())
	}
	w.permit(&batches[0])
	return batches[0]
}

// record records a report.
func (w *staging) record(now time.Time, r *plan.Report) {
	if !w.shows(r.Target) {
		return
	}
	for _, o := range r.Outcomes {
		if o.Status == step.Done && o.Step.Pool != "" {
			w.rec.Touched(now, r.Target, o.Step.Pool, string(o.Step.Verb)+" "+string(o.Step.Resource)+": "+o.Step.Reason)
		}
	}
	var seen []timeline.Seen
	for _, p := range r.Pools {
		s := timeline.Seen{Name: p.Namespace + "/" + p.Name, Desired: p.DesiredReplicas, Versions: map[string]int32{}, Moves: p.Rollout != nil, Converged: p.Converged, Failed: p.FailureReason, Machines: p.ProviderIDList}
		for _, i := range plan.CountInstances(p.Instances) {
			switch {
			case strings.HasPrefix(i.State, "Pending"):
				s.Starting += i.Count
			case strings.HasPrefix(i.State, "Terminat"):
				s.Ending += i.Count
			default:
				s.Versions[i.TemplateVersion] += i.Count
			}
		}
		seen = append(seen, s)
	}
	w.rec.Saw(now, r.Target, seen, r.Converged())
	w.rec.Holds(now, r.Target, heldSteps(r))
}

// heldSteps returns the holds of a report's steps.
func heldSteps(r *plan.Report) (out []timeline.Held) {
	if r.Err != nil {
		return []timeline.Held{{Hold: "error", Why: r.Err.Error(), Person: true}}
	}
	if r.Plan == nil {
		return nil
	}
	pools := map[step.Hold]map[string]bool{}
	for _, s := range r.Plan.Steps {
		if s.Held == "" {
			continue
		}
		if pools[s.Held] == nil {
			pools[s.Held] = map[string]bool{}
			out = append(out, timeline.Held{Hold: string(s.Held), Why: s.HeldReason, Person: !slices.Contains([]step.Hold{step.HeldWindow, step.HeldWave, step.HeldRolloutLimit, step.HeldWaiting, step.HeldControlPlane}, s.Held)})
		}
		pools[s.Held][s.Owner()] = true
	}
	for i := range out {
		out[i].Pools = len(pools[step.Hold(out[i].Hold)])
	}
	return out
}

// everyPass lists the reads that every pass makes.
var everyPass = []string{"DescribeAutoScalingGroups", "DescribeLaunchTemplates", "ListNodegroups"}

// called records the calls since the last pass.
func (p *place) called(rec *timeline.Recorder) {
	p.pages = map[string]timeline.Call{}
	for _, c := range p.srv.Calls() {
		if c.Service == "sts" {
			continue
		}
		name := cmp.Or(c.Bucket, c.Service+":all")
		call := timeline.Call{Account: p.account, Region: p.region, Bucket: name, Write: c.Write, Throttled: throttled(c.ErrorCode), Left: c.Left, Times: 1}
		rec.Called(call)
		if slices.Contains(everyPass, c.Operation) {
			call.Times += p.pages[name].Times
			p.pages[name] = call
		}
	}
	p.srv.ResetCalls()
}

func throttled(code string) bool {
	return code == "RequestLimitExceeded" || strings.HasPrefix(code, "Throttl") || code == "TooManyRequestsException"
}

const (
	// lookEvery is the maximum time between passes while something is changing. weir reads the progress of a
	// rollout from AWS at this interval.
	lookEvery = time.Minute
	// stillFor is the time without changes after which the simulation stops waiting.
	stillFor = 2 * time.Hour
)

// schedule sets the next pass of a place: the time at which a loop would start it, but it skips passes that
// would see the same as this one. It still counts their calls.
func (w *staging) schedule(p *place, reports []*plan.Report, now time.Time) {
	wait, rests := p.rhythm.Next(reports, 0, p.cloud.UntilSpare())
	acted := slices.ContainsFunc(reports, func(r *plan.Report) bool {
		return slices.ContainsFunc(r.Outcomes, func(o step.Outcome) bool { return o.Status == step.Done })
	})
	event := w.event(p, reports, now)
	grid := func(until time.Time) (at time.Time, passes int) {
		passes = max(1, int(math.Ceil(float64(until.Sub(now))/float64(wait))))
		return now.Add(time.Duration(passes) * wait), passes
	}
	if acted || !event.IsZero() {
		p.still = time.Time{}
	} else if p.still.IsZero() {
		p.still = now
	}
	switch {
	case rests && event.IsZero(), !p.still.IsZero() && now.Sub(p.still) > stillFor:
		p.next = time.Time{}
	case rests:
		p.next, _ = grid(event)
	case acted:
		p.next = now.Add(wait)
	default:
		until := now.Add(max(wait, lookEvery-lookEvery%wait))
		if !event.IsZero() && event.Before(until) {
			until = event
		}
		var passes int
		p.next, passes = grid(until)
		for _, call := range p.pages {
			call.Times *= passes - 1
			w.rec.Called(call)
		}
	}
}

// event returns the time of the next automatic change that a pass may see, or zero.
func (w *staging) event(p *place, reports []*plan.Report, now time.Time) (first time.Time) {
	at := func(t time.Time) {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if due, ok := p.srv.NextDue(); ok {
		at(due)
	}
	for _, s := range w.scene.Records.Suspensions {
		at(s.Until)
	}
	for _, r := range reports {
		if r.Plan == nil || !slices.ContainsFunc(r.Plan.Steps, func(s step.Step) bool { return s.Held == step.HeldWindow }) {
			continue
		}
		if open, ok := calendar.Next(w.scene.Conditions[r.Target].Windows, now); ok {
			at(open)
		}
	}
	return first
}

// wakeAfter starts passes over the places of targets that depend on a target.
func (w *staging) wakeAfter(target string, now time.Time) {
	for name, c := range w.scene.Conditions {
		if slices.Contains(c.DependsOn, target) {
			w.wake(name, now)
		}
	}
}

// wake starts a pass over the place of a target.
func (w *staging) wake(target string, now time.Time) {
	for _, p := range w.places {
		if slices.ContainsFunc(p.batch.Targets, func(d reconciler.Desired) bool { return d.Policy.Target == target }) && (p.next.IsZero() || p.next.After(now)) {
			p.next = now
		}
	}
}

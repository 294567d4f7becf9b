package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/reconciler/look"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/reconciler/step"
	"golang.org/x/sync/errgroup"
)

// An apply runs the steps of one pool in order, because each needs the result of the one before.
// Pools run concurrently, after the launch templates that several of them share. The first failed
// step ends the turn of its pool and of no other. Once ctx is cancelled, the call in flight is
// finished and no further step starts: a call that AWS may have accepted is never left without its
// answer being read. The next pass plans again what did not run, from what AWS then holds.

func poolKey(target, pool string) string { return target + "\x00" + pool }

func cutTarget(key string) (target, pool string, ok bool) { return strings.Cut(key, "\x00") }

// applyAll does what the plans of all reports say. Where they say nothing it takes
// no time, and none is measured.
func (s *Scope) applyAll(ctx context.Context, reports []*plan.Report, overtaken <-chan struct{}) {
	if !slices.ContainsFunc(reports, func(r *plan.Report) bool { return r.Plan != nil && r.Plan.Runnable() > 0 }) {
		s.apply(ctx, reports, overtaken)
		return
	}
	ctx, sp := span.Start(ctx, "apply")
	s.apply(ctx, reports, overtaken)
	sp.End()
}

// apply does what the plans of all reports say, and records it in them.
func (s *Scope) apply(ctx context.Context, reports []*plan.Report, overtaken <-chan struct{}) {
	limit := s.Concurrency
	if limit == 0 {
		limit = defaultConcurrency
	}
	made := make([]step.Made, len(reports)) // by those that pools share
	for i := range made {
		made[i] = step.Made{}
	}
	began := s.now()
	moves, left := inTurns(reports), map[string]bool{}
	// Pools whose calls hang in each pass must not keep those behind them waiting. But what
	// a newer commit wants does not wait for all that an earlier one has left.
	slices.SortStableFunc(moves, func(a, b move) int {
		switch first := s.left[a.key] != s.overtaken; {
		case s.left[a.key] == s.left[b.key]:
			return 0
		case first:
			return -1
		}
		return 1
	})
	begun, own := 0, make(chan struct{}, ownLanes)
	for _, shared := range []bool{true, false} {
		var g errgroup.Group
		g.SetLimit(limit)
		var mu sync.Mutex
		for _, m := range moves {
			r := reports[m.report]
			if r.Outcomes == nil {
				r.Outcomes = make([]step.Outcome, len(r.Plan.Steps))
			}
			if step.OfLaunchConfig(r.Plan.Steps[m.steps[0]].Owner()) != shared {
				continue
			}
			g.Go(func() error {
				defer s.Lanes.enter(own)()
				mu.Lock()
				// Those that are under way when a pass is overtaken are enough for it to have moved.
				over := begun >= limit && closed(overtaken)
				begun++
				mu.Unlock()
				if over || s.StepsFor > 0 && s.now().Sub(began) > s.StepsFor {
					leave(r, m.steps)
					mu.Lock()
					left[m.key] = true
					mu.Unlock()
					return nil
				}
				its := step.Made{}
				if !shared {
					maps.Copy(its, made[m.report])
				}
				s.turn(ctx, r, m.steps, its)
				if !shared { // no other pool needs what this one made
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(made[m.report], its)
				return nil
			})
		}
		// A turn returns no error: every outcome is in its report.
		_ = g.Wait()
	}
	s.left, s.overtaken = left, closed(overtaken)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// move is one pool's turn in a report; key is its poolKey.
type move struct {
	report int
	key    string
	steps  []int
}

// inTurns orders the turns of all reports, one of each at a time: where calls have
// to wait for their turn, a target with many does not hold up one with few.
func inTurns(reports []*plan.Report) (out []move) {
	all := make([][][]int, len(reports))
	for i, r := range reports {
		if r.Plan != nil {
			all[i] = turns(r.Plan.Steps)
		}
	}
	for n, more := 0, true; more; n++ {
		more = false
		for i, list := range all {
			if n < len(list) {
				key := poolKey(reports[i].Target, reports[i].Plan.Steps[list[n][0]].Owner())
				out, more = append(out, move{i, key, list[n]}), true
			}
		}
	}
	return out
}

// turns groups the positions of steps by what they belong to, in order.
func turns(steps []step.Step) [][]int {
	index := map[string]int{}
	var out [][]int
	for i, st := range steps {
		n, ok := index[st.Owner()]
		if !ok {
			n = len(out)
			index[st.Owner()] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], i)
	}
	return out
}

// leave leaves steps to a later pass.
func leave(r *plan.Report, positions []int) {
	for _, i := range positions {
		st := r.Plan.Steps[i]
		r.Outcomes[i] = step.Outcome{Step: st, Status: step.Skipped}
		if st.Held != "" {
			r.Outcomes[i].Status = step.Held
		}
	}
}

// turn runs the steps of one pool or AWSLaunchConfig, and adds to made the template
// versions that they make.
func (s *Scope) turn(ctx context.Context, r *plan.Report, positions []int, made step.Made) {
	steps := r.Plan.Steps
	var own []step.Step
	for _, i := range positions {
		own = append(own, steps[i])
	}
	key, digest := refusals.Key{Target: r.Target, Owner: own[0].Owner()}, requestOf(own)
	refused := s.refusals.Refused(key, digest, s.now())
	stopped, parked := false, false
	for _, i := range positions {
		st := steps[i]
		out := &r.Outcomes[i]
		out.Step = st
		switch {
		case st.Held != "":
			out.Status = step.Held
			continue
		case independent(st) && !stopped && refused == nil:
			s.one(ctx, r, i, key, made)
			continue
		case refused != nil && !stopped:
			out.Status, out.Err, out.Parked = refusedStatus(refused), refused, true
			stopped, parked = true, true
			continue
		case stopped || st.Later || ctx.Err() != nil || step.Unmade(step.WithTemplate(st.Do, made)):
			out.Status, out.Parked = step.Skipped, parked
			continue
		}
		*out = s.do(ctx, r, st, made)
		if out.Status != step.Done && !optional(st, out.Err) {
			stopped, parked = true, out.Err != nil && s.refusals.Refuse(key, digest, out.Err, s.now())
			out.Parked = parked
		}
	}
	if !stopped {
		s.refusals.Succeeded(key)
	}
}

// refusedStatus returns the status of a step that is parked for an error: a step that weir itself
// did not send has not failed.
func refusedStatus(err *observed.Error) step.OutcomeStatus {
	if err.Code == observed.CodeChanged {
		return step.Skipped
	}
	return step.Failed
}

// requestOf stands for what the steps of one turn ask of AWS. It distinguishes those
// that have one digest because people approve them as one: a refusal of the first, such
// as ending a refresh before the next, says nothing of the second.
func requestOf(steps []step.Step) string {
	out := ""
	for _, st := range steps {
		out += fmt.Sprintf("%T ", st.Do)
	}
	return out + (&plan.Plan{Steps: steps}).Digest()
}

// optional reports whether the steps after a failed one may run: versions that AWS
// does not let go of block no other step. Where trying again may help, the steps that
// follow wait, because the plan would not ask for the deletion again.
func optional(st step.Step, err *observed.Error) bool {
	return st.Verb == step.PruneVersion && err != nil && (err.Kind == observed.Denied || err.Kind == observed.Invalid)
}

// do runs one step to its end, though ctx may end before.
func (s *Scope) do(ctx context.Context, r *plan.Report, st step.Step, made step.Made) step.Outcome {
	began := s.now()
	ctx, cancel := forCall(ctx)
	defer cancel()
	ctx, sp := span.Start(ctx, "apply "+strings.TrimPrefix(fmt.Sprintf("%T", st.Do), "step."),
		"target", r.Target, "pool", st.Owner(), "verb", string(st.Verb), "resource", string(st.Resource), "name", st.Name, "revision", r.Revision)
	res, err := s.execute(ctx, st, made)
	if err == nil && res.Existed {
		err = existed(st)
	}
	span.End(sp, err)
	out := step.Outcome{Step: st, Status: step.Done, Result: res, Duration: s.now().Sub(began)}
	log := s.logger().With("target", r.Target, "pool", st.Owner(), "step", string(st.Verb)+" "+string(st.Resource), "name", st.Name, "duration", out.Duration)
	if errors.Is(err, step.ErrLater) {
		out.Status = step.Skipped
		return out
	}
	if err != nil {
		out.Err = asError(err)
		out.Status = step.Failed
		if out.Err.Kind == observed.Busy || out.Err.Kind == observed.Fenced || ctx.Err() != nil {
			// Another's change is under way, another weir may be the owner, or the
			// process ends before AWS has answered: the next pass looks again.
			out.Status = step.Skipped
		}
		log.Error("step failed", "error", out.Err, "kind", string(out.Err.Kind))
		return out
	}
	log.Info("step done", "reason", st.Reason)
	if res.Template.Name != "" {
		made.Add(st.Do, res.Template)
	}
	s.remember(r, st, res)
	return out
}

// existed returns the error of a step that should make what AWS holds already. The step made
// nothing, and the next pass continues from what it then observes.
func existed(st step.Step) error {
	return &observed.Error{
		Kind: observed.Busy, Service: "weir", Operation: "Observe", Code: observed.CodeChanged,
		Message: "the " + string(st.Resource) + " " + st.Name + " exists already, although AWS's list did not have it when the pass observed it; weir reads it again",
	}
}

// execute runs a step, after it reads again what the step ends and what it relies on.
func (s *Scope) execute(ctx context.Context, st step.Step, made step.Made) (step.Result, error) {
	if !s.Shared && st.Seen != nil && (!st.Seen.Moments || s.sinceLook() >= seenMoments) {
		if err := s.Cloud.Confirm(ctx, *st.Seen); err != nil {
			return step.Result{}, err
		}
	}
	do := s.freshToken(st.Request(made))
	if d, ok := do.(step.SetDefaultVersion); ok && s.StepsFor > 0 {
		d.Patient = true // no machine waits for it, and there are passes to come
		do = d
	}
	if err := s.confirmRefresh(ctx, do, s.knownLongSince(do)); err != nil {
		return step.Result{}, err
	}
	if s.Shared {
		ctx = look.With(ctx, s.lookAgain(st, do))
	}
	if err := s.claim(ctx, st.Claim); err != nil {
		return step.Result{}, err
	}
	res, err := s.Cloud.Execute(ctx, do)
	s.noteRefresh(do, st.Instances, res, err)
	return res, err
}

// claim makes the claim of a step, unless this pass has made it already.
func (s *Scope) claim(ctx context.Context, claim step.Action) error {
	if claim == nil {
		return nil
	}
	about := claim.About()
	key := about.Group + "\x00" + about.Nodegroup.String()
	s.mu.Lock()
	made := s.looks.claimed[key]
	s.mu.Unlock()
	if made {
		return nil
	}
	if _, err := s.Cloud.Execute(ctx, claim); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks.claimed == nil {
		s.looks.claimed = map[string]bool{}
	}
	s.looks.claimed[key] = true
	return nil
}

func asError(err error) *observed.Error {
	var e *observed.Error
	if errors.As(err, &e) {
		return e
	}
	return &observed.Error{Kind: observed.Unknown, Code: "Internal", Message: err.Error(), Err: err}
}

// tokenReplays is the number of requests for the same version with the same token. After a read
// that does not show the version yet, weir requests it again, and the token prevents a second one.
// After that many requests the version is gone for good.
// Assumed of AWS: version-tokens.
const tokenReplays = 3

// freshToken changes the client token of a version that AWS keeps answering with
// although no read shows it: it was deleted outside weir.
func (s *Scope) freshToken(a step.Action) step.Action {
	v, ok := a.(step.CreateLaunchTemplateVersion)
	if !ok {
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.answered(v.Token); n >= tokenReplays {
		v.Token = fmt.Sprintf("%s-%d", v.Token, n)
	}
	return v
}

// answered returns how often AWS answered a request with a client token.
func (s *Scope) answered(token string) int { return max(s.sent[token], s.sentBefore[token]) }

// remember keeps facts that AWS cannot give afterwards: which nodegroup update was
// started for which intent, which refresh weir cancelled, which token was answered,
// what was written.
func (s *Scope) remember(r *plan.Report, st step.Step, res step.Result) {
	s.refusals.Wrote(r.Target, r.Revision, st, s.clock())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks.wrote(st.About())
	if st.Rollout != "" {
		s.refusals.Started(refusals.RolloutKey(r.Target, st.Pool, r.Revision, st.Rollout), s.clock())
	}
	switch a := st.Do.(type) {
	case step.CreateLaunchTemplateVersion:
		s.sent, s.sentBefore = keep(s.sent, s.sentBefore, a.Token, s.answered(a.Token)+1, remembered)
	case step.CancelRefresh:
		s.cancelled, s.cancelledBefore = keep(s.cancelled, s.cancelledBefore, a.RefreshID, true, remembered)
	}
	if res.UpdateID == "" {
		return
	}
	if s.memory.Started == nil {
		s.memory.Started = map[observed.NodegroupName]basis.StartedUpdate{}
	}
	s.memory.Started[st.Do.About().Nodegroup] = basis.StartedUpdate{UpdateID: res.UpdateID, Fingerprint: st.Fingerprint}
}

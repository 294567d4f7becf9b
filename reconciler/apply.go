package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/precondition"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/reconciler/step"
)

// applier executes the steps of one pass. It is safe for concurrent use.
type applier struct {
	*Options
	memory *memory
	checks *preconditions
	// unread maps groups to refreshes that the plans use from an earlier pass.
	unread map[string]observed.Refresh
}

// slot runs the steps of one pool or AWSLaunchConfig. It adds the template versions that they make
// to made.
func (a *applier) slot(ctx context.Context, r *plan.Report, positions []int, made step.Made) {
	steps := r.Plan.Steps
	var own []step.Step
	for _, i := range positions {
		own = append(own, steps[i])
	}
	key, digest := refusals.Key{Target: r.Target, Owner: own[0].Owner()}, requestOf(own)
	refused := a.memory.refusals.Refused(key, digest, a.now())
	stopped, parked := false, false
	for _, i := range positions {
		st := steps[i]
		out := &r.Outcomes[i]
		out.Step = st
		switch {
		case st.Held != "":
			out.Status = step.Held
			continue
		case parksAlone(st) && !stopped && refused == nil:
			a.runAlone(ctx, r, i, key, made)
			continue
		case refused != nil && !stopped:
			out.Status, out.Err, out.Parked = refusedStatus(refused), refused, true
			stopped, parked = true, true
			continue
		case stopped || st.Later || ctx.Err() != nil || step.Unmade(step.WithTemplate(st.Do, made)):
			out.Status, out.Parked = step.Skipped, parked
			continue
		}
		*out = a.runStep(ctx, r, st, made)
		if out.Status != step.Done && !optional(st, out.Err) {
			stopped, parked = true, out.Err != nil && a.memory.refusals.Refuse(key, digest, out.Err, a.now())
			out.Parked = parked
		}
	}
	if !stopped {
		a.memory.refusals.Succeeded(key)
	}
}

// parksAlone reports whether the other steps of the slot continue even if this one fails: a version
// of a shared template does not matter to pools that want another version.
func parksAlone(st step.Step) bool {
	_, makes := st.Do.(step.CreateLaunchTemplateVersion)
	return makes && st.LaunchConfig != ""
}

// runAlone runs a step for which parksAlone is true.
func (a *applier) runAlone(ctx context.Context, r *plan.Report, i int, key refusals.Key, made step.Made) {
	st, out := r.Plan.Steps[i], &r.Outcomes[i]
	digest := requestOf([]step.Step{st})
	key.What = digest
	switch refused := a.memory.refusals.Refused(key, digest, a.now()); {
	case refused != nil:
		out.Status, out.Err, out.Parked = refusedStatus(refused), refused, true
	case st.Later || ctx.Err() != nil || step.Unmade(step.WithTemplate(st.Do, made)):
		out.Status = step.Skipped
	default:
		if *out = a.runStep(ctx, r, st, made); out.Status != step.Done {
			out.Parked = out.Err != nil && a.memory.refusals.Refuse(key, digest, out.Err, a.now())
		} else {
			a.memory.refusals.Succeeded(key)
		}
	}
}

// refusedStatus returns the status of a step that is parked for an error. If weir itself did not
// send the step, it has not failed.
func refusedStatus(err *observed.Error) step.OutcomeStatus {
	if err.Code == observed.CodeChanged {
		return step.Skipped
	}
	return step.Failed
}

// requestOf identifies the requests of one slot's steps. It differs between plans that have the
// same digest because people approve them together. A refusal of the first plan, such as ending a
// refresh, does not apply to the next.
func requestOf(steps []step.Step) string {
	out := ""
	for _, st := range steps {
		out += fmt.Sprintf("%T ", st.Do)
	}
	return out + (&plan.Plan{Steps: steps}).Digest()
}

// optional reports whether the steps after a failed one may run: versions that AWS refuses to
// delete block no other step. If a retry may help, the later steps wait, because a new plan would
// not contain the deletion.
func optional(st step.Step, err *observed.Error) bool {
	return st.Verb == step.PruneVersion && err != nil && (err.Kind == observed.Denied || err.Kind == observed.Invalid)
}

// The messages with which runStep logs the result of a step. A log handler can compare a record's message with
// them to show it in another form. The records have the attributes target, pool, step, name and duration; StepDone
// has reason, and the others have error and kind.
const (
	StepDone    = "step done"
	StepSkipped = "step not done, a later pass tries again"
	StepFailed  = "step failed"
)

// runStep executes a step and returns its outcome. It logs the outcome, unless the step was left to a later pass
// (step.ErrLater). If the pass is interrupted meanwhile, runStep still waits for AWS's answer; if the daemon ends,
// for at most LastCall. The outcome is Skipped if the next pass decides again about the step. If the step makes a
// template or version, made gets its reference.
func (a *applier) runStep(ctx context.Context, r *plan.Report, st step.Step, made step.Made) step.Outcome {
	began := a.now()
	ctx, cancel := forCall(ctx)
	defer cancel()
	ctx, sp := span.Start(ctx, "apply "+strings.TrimPrefix(fmt.Sprintf("%T", st.Do), "step."),
		"target", r.Target, "pool", st.Owner(), "verb", string(st.Verb), "resource", string(st.Resource), "name", st.Name, "revision", r.Revision)
	res, err := a.execute(ctx, st, made)
	if err == nil && res.Existed {
		err = existed(st)
	}
	span.End(sp, err)
	out := step.Outcome{Step: st, Status: step.Done, Result: res, Duration: a.now().Sub(began)}
	log := a.logger().With("target", r.Target, "pool", st.Owner(), "step", string(st.Verb)+" "+string(st.Resource), "name", st.Name, "duration", out.Duration)
	if errors.Is(err, step.ErrLater) {
		out.Status = step.Skipped
		return out
	}
	if err != nil {
		out.Err = asError(err)
		log = log.With("error", out.Err, "kind", string(out.Err.Kind))
		if out.Err.Kind == observed.Busy || out.Err.Kind == observed.Fenced || ctx.Err() != nil {
			// Somebody else's change is in progress, another weir may be the owner, or the process
			// ends before AWS has answered. The next pass reads again.
			out.Status = step.Skipped
			log.Warn(StepSkipped)
			return out
		}
		out.Status = step.Failed
		log.Error(StepFailed)
		return out
	}
	log.Info(StepDone, "reason", st.Reason)
	if res.Template.Name != "" {
		made.Add(st.Do, res.Template)
	}
	a.remember(r, st, res)
	return out
}

// existed returns the error for a step whose resource already exists. The step made nothing, and
// the next pass continues from what it then observes.
func existed(st step.Step) error {
	return &observed.Error{
		Kind: observed.Busy, Service: "weir", Operation: "Observe", Code: observed.CodeChanged,
		Message: "the " + string(st.Resource) + " " + st.Name + " already exists, although it was missing from AWS's list when the pass started; weir reads it again",
	}
}

// execute runs a step. Before that, it reads the resources again that the step ends or relies on.
func (a *applier) execute(ctx context.Context, st step.Step, made step.Made) (step.Result, error) {
	if !a.Shared && st.Seen != nil && (!st.Seen.Moments || a.now().Sub(a.checks.since) >= seenMoments) {
		if err := a.Cloud.Confirm(ctx, *st.Seen); err != nil {
			return step.Result{}, err
		}
	}
	do := a.memory.tokens.fresh(st.Request(made))
	if d, ok := do.(step.SetDefaultVersion); ok && a.StepsFor > 0 {
		d.Patient = true // no machine waits for it, and later passes follow
		do = d
	}
	if err := a.confirmRefresh(ctx, do, a.uncertain(do)); err != nil {
		return step.Result{}, err
	}
	if a.Shared {
		ctx = precondition.With(ctx, a.confirmBefore(st, do))
	}
	if err := a.claim(ctx, st.Claim); err != nil {
		return step.Result{}, err
	}
	res, err := a.Cloud.Execute(ctx, do)
	a.memory.refreshes.recordStep(do, st.Instances, res, err, a.now(), a.clock())
	return res, err
}

// claim makes the claim of a step, unless this pass has made it already.
func (a *applier) claim(ctx context.Context, claim step.Action) error {
	if claim == nil || a.checks.isClaimed(claim.About()) {
		return nil
	}
	if _, err := a.Cloud.Execute(ctx, claim); err != nil {
		return err
	}
	a.checks.claim(claim.About())
	return nil
}

func asError(err error) *observed.Error {
	var e *observed.Error
	if errors.As(err, &e) {
		return e
	}
	return &observed.Error{Kind: observed.Unknown, Code: "Internal", Message: err.Error(), Err: err}
}

// remember stores facts that AWS does not return later: the intent of a nodegroup update, refreshes
// that weir cancelled, answered tokens, and written values.
func (a *applier) remember(r *plan.Report, st step.Step, res step.Result) {
	m, clock := a.memory, a.clock()
	m.refusals.Wrote(r.Target, r.Revision, st, clock)
	a.checks.wrote(st.About())
	if st.Rollout != "" {
		m.refusals.Started(refusals.RolloutKey(r.Target, st.Pool, r.Revision, st.Rollout), clock)
	}
	switch do := st.Do.(type) {
	case step.CreateLaunchTemplateVersion:
		m.tokens.answer(do.Token)
	case step.CancelRefresh:
		m.refreshes.cancel(do.RefreshID)
	}
	if res.UpdateID != "" {
		m.updates.recordStarted(st.Do.About().Nodegroup, model.StartedUpdate{UpdateID: res.UpdateID, Fingerprint: st.Fingerprint})
	}
}

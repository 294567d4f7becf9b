package events

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// Event is a milestone: weir created, changed, started, completed, found or refused something. Kind is
// stable, in kebab case; kinds.All lists the kinds.
type Event struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	// Level is the attention that the event deserves; empty means the level of its kind.
	Level  kinds.Level `json:"level"`
	Source string      `json:"source,omitempty"`
	Target string      `json:"target,omitempty"`
	// Pool is the namespace/name of the pool or AWSLaunchConfig that the event is about.
	Pool string `json:"pool,omitempty"`
	// Resource is the kind of the AWS resource, as in a plan, and Name its name.
	Resource step.Resource `json:"resource,omitempty"`
	Name     string        `json:"name,omitempty"`
	// Revision is the full hash of the commit that weir was applying.
	Revision string `json:"revision,omitempty"`
	// Reason is brief: the reason of a step, or the code of a finding.
	Reason string `json:"reason,omitempty"`
	// Text describes the event in a sentence.
	Text string `json:"text"`
	// Changes are the fields that were changed, or that differ. Only the first ones are listed if there are
	// many.
	Changes []Change `json:"changes,omitempty"`
	// Facts contains further details, such as version, refresh or percentage.
	Facts map[string]string `json:"facts,omitempty"`
}

// Known contains the announced state of a target or a source. With it, weir announces each event once, even
// across restarts. It is stored as JSON.
type Known struct {
	// Revision and Phase belong to the last announced pass.
	Revision string       `json:"revision,omitempty"`
	Phase    report.Phase `json:"phase,omitempty"`
	// Fault is the last fault, or "".
	Fault     string `json:"fault,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	// Held describes the hold of a target whose commit cannot be rendered; nil if it is not held.
	Held *KnownHeld `json:"held,omitempty"`
	// Standing lists the keys of announced conditions that persist, sorted.
	Standing []string `json:"standing,omitempty"`
	// Pools maps namespace/name to pools.
	Pools map[string]KnownPool `json:"pools,omitempty"`
	// Drift lists the pools and AWSLaunchConfigs with announced drift, sorted. Mended lists the ones in
	// Drift for which weir has completed a step since.
	Drift  []string `json:"drift,omitempty"`
	Mended []string `json:"mended,omitempty"`
}

// KnownPool contains the announced state of a pool.
type KnownPool struct {
	Converged bool   `json:"converged,omitempty"`
	Failure   string `json:"failure,omitempty"`
	// FailedSince is the time at which the pool was first seen failing; zero if it does not fail.
	FailedSince time.Time `json:"failedSince,omitzero"`
	// Causes lists the announced reasons why AWS launched no machine or reports the nodegroup as degraded,
	// since the pool last converged.
	Causes  []string      `json:"causes,omitempty"`
	Rollout *KnownRollout `json:"rollout,omitempty"`
	// Seen is the last seen state of the pool.
	Seen *SeenPool `json:"seen,omitempty"`
}

// KnownRollout is a rollout with an announced start and no announced end.
type KnownRollout struct {
	ID         string        `json:"id"`
	Resource   step.Resource `json:"resource"`
	Name       string        `json:"name"`
	Notch      int32         `json:"notch,omitempty"`
	Back       bool          `json:"back,omitempty"`
	Superseded bool          `json:"superseded,omitempty"`
	// What describes the change in progress, such as "the change of maxSize"; empty for a rollout.
	What string `json:"what,omitempty"`
}

// finder finds the events of a report that were not announced before.
type finder struct {
	old, next Known
	r         *plan.Report
	at        time.Time
	first     bool
	events    []Event
	// failed describes the steps that failed, for the fault of the target.
	failed []string
}

// Between returns the events between old and r, and the updated Known. first says that r is from the
// process's first pass over the target: the planner then cannot recognize drift, but old can. If old is
// empty, healthy resources are not announced.
func Between(old Known, r *plan.Report, at time.Time, first bool) (Known, []Event) {
	t := &finder{old: old, r: r, at: at, first: first}
	t.next = Known{Revision: r.Revision, Phase: report.PhaseOf(r), Suspended: r.Suspended, Held: old.Held}
	t.targetHold()
	if r.Plan == nil {
		// Nothing was observed, so the earlier conditions are assumed to persist.
		t.next.Standing, t.next.Pools, t.next.Drift, t.next.Mended = old.Standing, old.Pools, old.Drift, old.Mended
		if len(r.Pools) > 0 { // pools in AWS of a commit that renders none
			t.next.Pools = map[string]KnownPool{}
			t.pools()
		}
		t.fault()
		return t.next, t.events
	}
	t.next.Pools = map[string]KnownPool{}
	t.suspension()
	t.drift()
	t.findings()
	t.stepHolds()
	t.pools()
	t.outcomes()
	for _, m := range t.r.Milestones {
		t.add(Event{Kind: m.Kind, Pool: m.Pool, Reason: m.Reason, Text: m.Text, Facts: m.Facts})
	}
	t.fault()
	slices.Sort(t.next.Standing)
	t.next.Standing = slices.Compact(t.next.Standing)
	return t.next, t.events
}

func (t *finder) add(e Event) {
	e.Time, e.Target, e.Revision = t.at, t.r.Target, t.r.Revision
	e.Level = cmp.Or(e.Level, kinds.LevelOf(e.Kind))
	t.events = append(t.events, e)
}

// once adds an event for a persistent condition, unless it was announced and has persisted since.
func (t *finder) once(key string, e Event) {
	if _, announced := slices.BinarySearch(t.old.Standing, key); !announced && !slices.Contains(t.next.Standing, key) {
		t.add(e)
	}
	t.next.Standing = append(t.next.Standing, key)
}

func (t *finder) suspension() {
	switch {
	case t.r.Suspended && !t.old.Suspended:
		t.add(Event{Kind: "target-suspended", Text: "weir plans it, and changes nothing until it is resumed"})
	case !t.r.Suspended && t.old.Suspended:
		t.add(Event{Kind: "target-resumed", Text: "weir applies its plans again"})
	}
}

// maxAnnounced is the maximum number of conditions of one table that a pass announces one by one.
// Otherwise, a thousand conflicts would push everything else out of the history.
const maxAnnounced = 50

// findings announces the diagnostics that have an event of their own.
func (t *finder) findings() {
	announced := 0
	for _, d := range t.r.Diagnostics {
		kind := kinds.Findings[d.Code]
		if kind == "" || announced == maxAnnounced || t.ofPool(d) {
			continue
		}
		announced++
		e := Event{Kind: kind, Reason: d.Code, Text: d.Summary, Pool: ObjectPool(t.r, d.Object)}
		if d.Known() {
			e.Facts = map[string]string{"at": d.Position.String()}
		}
		about := d.Object
		if about == "" {
			about = ShortHash(d.Summary) // the summary names the resource
		}
		t.once("finding "+d.Code+" "+about, e)
	}
}

// ofPool reports whether a diagnostic is announced as a failure of its pool, once for each cause.
func (t *finder) ofPool(d diag.Diagnostic) bool {
	key := ObjectPool(t.r, d.Object)
	return slices.ContainsFunc(t.r.Pools, func(p plan.PoolStatus) bool {
		return report.PoolKey(p) == key && p.FailureReason == d.Code && p.FailureCause != ""
	})
}

// stepHolds announces held steps, once for each pool and hold.
func (t *finder) stepHolds() {
	type holdKey struct {
		owner string
		hold  step.Hold
	}
	steps := map[holdKey][]step.Step{}
	for _, s := range t.r.Plan.Steps {
		if s.Held != "" {
			key := holdKey{s.Owner(), s.Held}
			steps[key] = append(steps[key], s)
		}
	}
	keys := slices.SortedFunc(maps.Keys(steps), func(x, y holdKey) int {
		return cmp.Or(cmp.Compare(x.owner, y.owner), cmp.Compare(x.hold, y.hold))
	})
	for i, k := range keys {
		kind, known := kinds.Holds[k.hold]
		if !known {
			kind = "step-held"
		}
		if kind == "" || i >= maxAnnounced {
			continue
		}
		wait := wording.WaitsOf(t.r.Target, steps[k])[0]
		e := Event{Kind: kind, Pool: OwnerPool(steps[k][0]), Reason: string(k.hold), Text: report.StepList(steps[k]) + " " + wait.Of(len(steps[k]))}
		t.once("held "+string(k.hold)+" "+k.owner, e)
	}
}

// outcomes announces completed and failed steps.
func (t *finder) outcomes() {
	for _, o := range t.r.Outcomes {
		switch o.Status {
		case step.Done:
			t.done(o)
		case step.Failed:
			words := report.FailureWords(o)
			t.failed = append(t.failed, failureKey(o))
			e := Event{
				Kind: "step-failed", Pool: OwnerPool(o.Step), Resource: o.Step.Resource, Name: o.Step.Name, Reason: o.Step.Reason,
				Text: words, Facts: map[string]string{"verb": string(o.Step.Verb)},
			}
			if o.Err != nil {
				e.Facts["error"], e.Facts["code"] = string(o.Err.Kind), o.Err.Code
			}
			t.once("failed "+failureKey(o), e)
		case step.Skipped, step.Held:
			// A held step is in every pass; stepHolds announces it once.
		}
	}
}

// done adds the event of a completed step, and remembers the rollout that the step started or cancelled, so
// that a later report does not announce it as new.
func (t *finder) done(o step.Outcome) {
	s := o.Step
	e := Event{
		Kind: kinds.OfStep(s), Pool: OwnerPool(s), Resource: s.Resource, Name: s.Name, Reason: s.Reason,
		Text: report.StepWords(s), Changes: changesOf([]step.Step{s}), Facts: map[string]string{},
	}
	if s.Reason != "" {
		e.Text += ": " + s.Reason
	}
	for key, value := range map[string]string{"version": o.Result.Template.Version, "refresh": o.Result.RefreshID, "update": o.Result.UpdateID} {
		if value != "" {
			e.Facts[key] = value
		}
	}
	if s.Disruptive {
		e.Facts["instances"] = fmt.Sprint(s.Instances)
	}
	t.add(e)
	p, known := t.next.Pools[s.Pool]
	if !known {
		return // the resource is an orphan, or several pools share it
	}
	if cancelled, ok := s.Do.(step.CancelRefresh); ok {
		if p.Rollout == nil || p.Rollout.ID != cancelled.RefreshID {
			p.Rollout = &KnownRollout{ID: cancelled.RefreshID, Resource: s.Resource, Name: s.Name}
		}
		p.Rollout.Superseded = true
	} else if id := cmp.Or(o.Result.RefreshID, o.Result.UpdateID); id != "" || s.Verb == step.Rollout {
		p.Rollout = &KnownRollout{ID: id, Resource: s.Resource, Name: s.Name, What: movingWords(s)}
	}
	t.next.Pools[s.Pool] = p
}

// SourceCause is the value of the fact "cause" in events of targets that only report a failed or recovered
// source.
const SourceCause = "source"

func causeOf(source bool) map[string]string {
	if !source {
		return nil
	}
	return map[string]string{"cause": SourceCause}
}

// fault announces the faults of the target that have no event of their own. It announces them again when
// they change.
func (t *finder) fault() {
	text, keys := targetFault(t.r)
	t.next.Fault = ""
	if len(keys)+len(t.failed) > 0 {
		t.next.Fault = ShortHash(strings.Join(append(slices.Clone(keys), t.failed...), "\n"))
	}
	const key = "fault"
	_, stood := slices.BinarySearch(t.old.Standing, key)
	t.next.Standing = slices.DeleteFunc(slices.Clone(t.next.Standing), func(s string) bool { return s == key })
	switch {
	case len(keys) > 0:
		if !stood || t.next.Fault != t.old.Fault {
			t.add(Event{Kind: "target-failed", Text: text, Facts: causeOf(slices.Equal(keys, []string{SourceCause}))})
		}
		t.next.Standing = append(t.next.Standing, key)
		slices.Sort(t.next.Standing)
	case stood:
		t.add(Event{Kind: "target-recovered", Text: "the error is resolved", Facts: causeOf(t.old.Fault == ShortHash(SourceCause))})
	}
}

// EventChanges is the maximum number of changes in an event.
const EventChanges = 20

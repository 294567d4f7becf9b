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

// Event is a milestone: something was made, changed, started, finished, found
// or refused. Kind is stable, in kebab case; EventKinds lists them.
type Event struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	// Level is the attention that the event deserves; empty means the level of its kind.
	Level  kinds.Level `json:"level"`
	Source string      `json:"source,omitempty"`
	Target string      `json:"target,omitempty"`
	// Pool is namespace/name of the pool, or of the AWSLaunchConfig, that it is about.
	Pool string `json:"pool,omitempty"`
	// Resource and Name are the AWS resource's kind, as in a plan, and name.
	Resource step.Resource `json:"resource,omitempty"`
	Name     string        `json:"name,omitempty"`
	// Revision is the full hash of the commit that weir was at.
	Revision string `json:"revision,omitempty"`
	// Reason says why, briefly: of a step its reason, of a finding its code.
	Reason string `json:"reason,omitempty"`
	// Text says in a sentence what happened.
	Text string `json:"text"`
	// Changes are the fields that were changed, or were found to differ: the
	// first of them, where there are many.
	Changes []Change `json:"changes,omitempty"`
	// Facts holds further details, such as version, refresh or percentage.
	Facts map[string]string `json:"facts,omitempty"`
}

// Known holds what was announced of a target or a source: as much as it takes to announce the next
// milestone once, however often weir restarts. It is kept as JSON.
type Known struct {
	// Revision and Phase belong to the last pass that was announced.
	Revision string       `json:"revision,omitempty"`
	Phase    report.Phase `json:"phase,omitempty"`
	// Fault is the last fault, or "".
	Fault     string `json:"fault,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	// Held describes how the target is held if its commit cannot be rendered; nil if it is not
	// held.
	Held *KnownHeld `json:"held,omitempty"`
	// Standing are facts that were announced and still hold, sorted.
	Standing []string `json:"standing,omitempty"`
	// Pools holds the pools by namespace/name.
	Pools map[string]KnownPool `json:"pools,omitempty"`
	// Drift lists the pools and AWSLaunchConfigs that were found to differ, sorted; Mended lists
	// those of them with a completed step since.
	Drift  []string `json:"drift,omitempty"`
	Mended []string `json:"mended,omitempty"`
}

// KnownPool holds what was announced of a pool.
type KnownPool struct {
	Converged bool   `json:"converged,omitempty"`
	Failure   string `json:"failure,omitempty"`
	// FailedSince is the time at which the pool was first seen failing; zero if it does not fail.
	FailedSince time.Time `json:"failedSince,omitzero"`
	// Causes lists the reasons for which AWS launched no machine or called the nodegroup degraded,
	// and that were announced since the pool had converged.
	Causes  []string      `json:"causes,omitempty"`
	Rollout *KnownRollout `json:"rollout,omitempty"`
	// Seen is the last seen state of the pool.
	Seen *SeenPool `json:"seen,omitempty"`
}

// KnownRollout is a rollout whose start was announced and whose end was not.
type KnownRollout struct {
	ID         string        `json:"id"`
	Resource   step.Resource `json:"resource"`
	Name       string        `json:"name"`
	Notch      int32         `json:"notch,omitempty"`
	Back       bool          `json:"back,omitempty"`
	Superseded bool          `json:"superseded,omitempty"`
	// What describes what is changing, such as "the change of maxSize"; empty for a rollout.
	What string `json:"what,omitempty"`
}

// finder works out which events of a report were not announced before.
type finder struct {
	old, next Known
	r         *plan.Report
	at        time.Time
	first     bool
	events    []Event
	// failed are the steps that failed, as text, for the fault of the target.
	failed []string
}

// Between returns the milestones between old and r, and the Known that includes them. First says
// that r is of the process's first pass over the target: the planner then cannot recognize drift,
// but old can. With an empty Known, healthy resources are not announced.
func Between(old Known, r *plan.Report, at time.Time, first bool) (Known, []Event) {
	t := &finder{old: old, r: r, at: at, first: first}
	t.next = Known{Revision: r.Revision, Phase: report.PhaseOf(r), Suspended: r.Suspended, Held: old.Held}
	t.targetHold()
	if r.Plan == nil {
		// Nothing was observed, so what stood before is taken to stand.
		t.next.Standing, t.next.Pools, t.next.Drift, t.next.Mended = old.Standing, old.Pools, old.Drift, old.Mended
		if len(r.Pools) > 0 { // pools of a commit that gives none, as AWS has them
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

// once adds an event for a fact that stands, unless it was announced and stood
// since.
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

// maxAnnounced bounds how many standing facts of one table are announced one by one
// in a pass, so that a thousand conflicts do not push everything else out of
// history.
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
			about = ShortHash(d.Summary) // it names the resource
		}
		t.once("finding "+d.Code+" "+about, e)
	}
}

// ofPool reports whether a diagnostic is announced as the failure of its pool, once
// for each cause.
func (t *finder) ofPool(d diag.Diagnostic) bool {
	key := ObjectPool(t.r, d.Object)
	return slices.ContainsFunc(t.r.Pools, func(p plan.PoolStatus) bool {
		return report.PoolKey(p) == key && p.FailureReason == d.Code && p.FailureCause != ""
	})
}

// stepHolds announces the steps that wait for something, once for each pool and hold.
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
			// A held step is in every pass; holds announces it once.
		}
	}
}

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
		return // it belongs to an orphan, or is shared by pools
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

// SourceCause is the fact "cause" of events of targets that only report that their source
// failed, or is back.
const SourceCause = "source"

func causeOf(source bool) map[string]string {
	if !source {
		return nil
	}
	return map[string]string{"cause": SourceCause}
}

// fault announces the fault of the target as a whole: everything that has no event
// of its own. It is announced again when it becomes something else.
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

// EventChanges bounds the changes in an event, shownValue each of their values.
const EventChanges = 20

package report

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// Redact replaces what must not be shown in a text, such as decrypted values.
// A nil Redact changes nothing.
type Redact func(string) string

func (f Redact) Text(s string) string {
	if f == nil || s == "" {
		return s
	}
	return f(s)
}

// Report returns r with every free text redacted that any sink reads. It leaves out the actions of the
// steps, because they contain user data, except for the fields that show how instances are replaced in
// batches. The result shares parts without secrets with r, so neither may be changed afterwards.
func (f Redact) Report(r *plan.Report) *plan.Report {
	out := *r
	out.Subject = f.Text(r.Subject)
	out.Milestones = nil // they become events
	out.Diagnostics = f.diagnostics(r.Diagnostics)
	if r.Plan != nil {
		p := *r.Plan
		if len(p.Steps) > 0 {
			p.Digested = r.Plan.Digest()
		}
		if p.Diagnostics = out.Diagnostics; !same(r.Plan.Diagnostics, r.Diagnostics) {
			p.Diagnostics = f.diagnostics(r.Plan.Diagnostics)
		}
		p.Steps = make([]step.Step, len(r.Plan.Steps))
		for i, s := range r.Plan.Steps {
			p.Steps[i] = f.step(s)
		}
		out.Plan = &p
	}
	out.Outcomes = make([]step.Outcome, len(r.Outcomes))
	for i, o := range r.Outcomes {
		o.Step = f.step(o.Step)
		o.Err = f.callError(o.Err)
		out.Outcomes[i] = o
	}
	if out.Pools, _ = each(r.Pools, f.pool); out.Pools == nil {
		out.Pools = []plan.PoolStatus{}
	}
	out.LaunchConfigs = make([]plan.LaunchConfigStatus, len(r.LaunchConfigs))
	for i, s := range r.LaunchConfigs {
		out.LaunchConfigs[i] = f.launchConfig(s)
	}
	out.Governed = f.governed(r.Governed)
	if r.Fallback != nil {
		h := *r.Fallback
		h.Why, h.Verdict.Why = f.Text(h.Why), f.Text(h.Verdict.Why)
		out.Fallback = &h
	}
	if len(r.FallbackPools) > 0 {
		out.FallbackPools = make(map[string]*plan.Fallback, len(r.FallbackPools))
		for pool, h := range r.FallbackPools {
			h := *h
			h.Why, h.Verdict.Why = f.Text(h.Why), f.Text(h.Verdict.Why)
			out.FallbackPools[pool] = &h
		}
	}
	if r.Err != nil {
		out.Err = f.err(r.Err)
	}
	return &out
}

// Pull returns a copy of p with every free text redacted that any sink reads. Its digests are those
// computed before redaction.
func (f Redact) Pull(p Pull) Pull {
	out := p
	out.Title, out.Author, out.Reason, out.Stale, out.Approved = f.Text(p.Title), f.Text(p.Author), f.Text(p.Reason), f.Text(p.Stale), f.Text(p.Approved)
	out.Gone, out.Differs, out.Uncompared = slices.Clone(p.Gone), slices.Clone(p.Differs), slices.Clone(p.Uncompared)
	for _, lines := range [][]string{out.Differs, out.Uncompared} {
		for i := range lines {
			lines[i] = f.Text(lines[i])
		}
	}
	out.Digests = maps.Clone(p.Digests)
	if out.Digests == nil {
		out.Digests = map[string]string{}
		for _, r := range p.Reports {
			if r.Plan != nil {
				out.Digests[r.Target] = r.Plan.Digest()
			}
		}
	}
	out.Reports = make([]*plan.Report, len(p.Reports))
	for i, r := range p.Reports {
		out.Reports[i] = f.Report(r)
	}
	out.Forecast = f.forecast(p.Forecast)
	return out
}

// forecast copies a forecast, and redacts the texts that come from AWS or from a plan.
func (f Redact) forecast(c *Forecast) *Forecast {
	if c == nil {
		return nil
	}
	if c.Timeline == nil {
		return &Forecast{Command: c.Command, Failed: f.Text(c.Failed)}
	}
	t := *c.Timeline
	t.Why = f.Text(t.Why)
	t.Milestones, t.Waves, t.Waiting, t.Doubts = slices.Clone(t.Milestones), slices.Clone(t.Waves), slices.Clone(t.Waiting), slices.Clone(t.Doubts)
	for i := range t.Milestones {
		t.Milestones[i].Text = f.Text(t.Milestones[i].Text)
	}
	for i := range t.Waves {
		t.Waves[i].Name = f.Text(t.Waves[i].Name)
	}
	for i := range t.Waiting {
		t.Waiting[i].Why = f.Text(t.Waiting[i].Why)
	}
	for i := range t.Doubts {
		t.Doubts[i] = f.Text(t.Doubts[i])
	}
	return &Forecast{Timeline: &t, Command: c.Command}
}

// governed redacts the texts of governed pools from outside: faults, holds, failures, and causes of
// activities. It does not change list.
func (f Redact) governed(list []rollout.Pool) []rollout.Pool {
	out := slices.Clone(list)
	for i := range out {
		p := &out[i]
		f.change(&p.Fault, &p.Held, &p.Failed, &p.Facts.NodesUnknown, &p.Facts.AlarmsUnknown)
		p.Facts.Waiting, p.Facts.Activities = slices.Clone(p.Facts.Waiting), slices.Clone(p.Facts.Activities)
		p.Change = slices.Clone(p.Change)
		for k := range p.Change {
			f.change(&p.Change[k].Key, &p.Change[k].Name) // marks replace the values
		}
		for k := range p.Facts.Waiting {
			p.Facts.Waiting[k].Why = f.Text(p.Facts.Waiting[k].Why)
		}
		for k := range p.Facts.Activities {
			p.Facts.Activities[k].Cause = f.Text(p.Facts.Activities[k].Cause)
		}
	}
	return out
}

// each applies redact to the elements of list, and reports whether that changed anything. If nothing
// changed, out is list itself, without a copy: in a large fleet this is almost always the case, and a copy
// would use memory as long as list does.
func each[L ~[]E, E any](list L, redact func(*E) bool) (out L, changed bool) {
	out = slices.Clip(list)
	var e E
	for i := range list {
		e = list[i]
		if !redact(&e) {
			continue
		}
		if !changed {
			out, changed = slices.Clone(list), true
		}
		out[i] = e
	}
	return out, changed
}

// same reports whether two lists share their memory.
func same(a, b diag.List) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// change redacts texts in place, and reports whether anything was redacted.
func (f Redact) change(texts ...*string) (changed bool) {
	for _, text := range texts {
		if clean := f.Text(*text); clean != *text {
			*text, changed = clean, true
		}
	}
	return changed
}

func (f Redact) diagnostics(l diag.List) diag.List {
	l, _ = each(l, func(d *diag.Diagnostic) bool {
		changed := f.change(&d.Summary, &d.Detail)
		related, more := each(d.Related, func(r *diag.Related) bool { return f.change(&r.Message) })
		d.Related = related
		return changed || more
	})
	return l
}

func (f Redact) step(s step.Step) step.Step {
	s.Do, s.Stamp, s.Claim = rollingOnly(s.Do), nil, nil
	s.Reason, s.HeldReason, s.HeldEnds = f.Text(s.Reason), f.Text(s.HeldReason), f.Text(s.HeldEnds)
	if s.Drift != nil {
		d := *s.Drift
		d.Cause = f.Text(d.Cause)
		s.Drift = &d
	}
	if s.Changes, _ = each(s.Changes, f.stepChange); s.Changes == nil { // readers expect a list
		s.Changes = []step.Change{}
	}
	return s
}

func (f Redact) stepChange(c *step.Change) bool {
	inFrom, inTo := f.value(&c.From), f.value(&c.To)
	// The field name of a part of user data is itself from the user data, such as the path of a file.
	return f.change(&c.Field, &c.Words) || inFrom || inTo
}

// value redacts the strings in a JSON value, and reports whether anything was redacted.
func (f Redact) value(v *any) bool {
	if text, is := (*v).(string); is {
		if clean := f.Text(text); clean != text {
			*v = clean
			return true
		}
		return false
	}
	clean := f.Value(*v)
	if reflect.DeepEqual(clean, *v) {
		return false
	}
	*v = clean
	return true
}

// Value redacts the strings in a JSON value.
func (f Redact) Value(v any) any {
	switch v := v.(type) {
	case string:
		return f.Text(v)
	case []string:
		out := slices.Clone(v)
		for i := range out {
			out[i] = f.Text(out[i])
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = f.Value(out[i])
		}
		return out
	case map[string]any:
		out := maps.Clone(v)
		for k := range out {
			out[k] = f.Value(out[k])
		}
		return out
	case map[string]string:
		out := maps.Clone(v)
		for k := range out {
			out[k] = f.Text(out[k])
		}
		return out
	default:
		return v
	}
}

// pool redacts the texts of a pool, and reports whether it changed the pool. It copies what it changes,
// because the caller shares the status.
func (f Redact) pool(p *plan.PoolStatus) bool {
	changed := f.change(&p.FailureMessage)
	if p.ProviderIDList == nil || p.Conditions == nil { // readers expect lists
		p.ProviderIDList, p.Conditions, changed = append([]string{}, p.ProviderIDList...), append([]plan.Condition{}, p.Conditions...), true
	}
	conditions, inConditions := each(p.Conditions, func(c *plan.Condition) bool { return f.change(&c.Message) })
	versions, inVersions := each(p.TemplateVersions, func(v *plan.VersionNote) bool { return f.change(&v.Subject) })
	instances, inInstances := each(p.Instances, func(i *plan.Instance) bool { return f.change(&i.Why) })
	draining, inDraining := each(p.Draining, func(d *plan.Draining) bool {
		pods, inPods := each(d.Pods, func(p *plan.DrainingPod) bool { return f.change(&p.Why) })
		d.Pods = pods
		return f.change(&d.Why) || inPods
	})
	p.Conditions, p.TemplateVersions, p.Instances, p.Draining = conditions, versions, instances, draining
	if p.Nodegroup != nil {
		of := *p.Nodegroup
		if health, inHealth := each(of.Health, func(n *plan.NodegroupIssueNote) bool { return f.change(&n.Message, &n.Hint) }); inHealth {
			of.Health, p.Nodegroup, changed = health, &of, true
		}
	}
	for _, r := range []**plan.RolloutStatus{&p.Rollout, &p.LastRollout} {
		if *r == nil {
			continue
		}
		if of := **r; f.change(&of.Message) {
			*r, changed = &of, true
		}
	}
	return changed || inConditions || inVersions || inInstances || inDraining
}

func (f Redact) callError(e *observed.Error) *observed.Error {
	if e == nil {
		return nil
	}
	out := *e
	out.Message = f.Text(e.Message)
	// Err repeats the message without redaction, and nothing shows it.
	out.Err = nil
	return &out
}

// err keeps the kind of a failed AWS call, because the wording of a status depends on it.
func (f Redact) err(err error) error {
	var call *observed.Error
	if errors.As(err, &call) {
		return &reportError{text: f.Text(err.Error()), cause: f.callError(call)}
	}
	for _, cause := range []error{plan.ErrSource, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return &reportError{text: f.Text(err.Error()), cause: cause}
		}
	}
	return &reportError{text: f.Text(err.Error())}
}

// reportError is a redacted error of a report, with the facts that its wording depends on.
type reportError struct {
	text  string
	cause error
}

func (e *reportError) Error() string { return e.text }

func (e *reportError) Unwrap() error { return e.cause }

// launchConfig copies a status with its free texts redacted.
func (f Redact) launchConfig(s plan.LaunchConfigStatus) plan.LaunchConfigStatus {
	s.Pools, s.Conditions, s.Versions = slices.Clone(s.Pools), slices.Clone(s.Conditions), slices.Clone(s.Versions)
	for i := range s.Conditions {
		s.Conditions[i].Message = f.Text(s.Conditions[i].Message)
	}
	return s
}

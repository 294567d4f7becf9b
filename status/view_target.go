package status

import (
	"encoding/json"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/plan"
)

type missingView struct {
	layout
	Name string
}

// targetPage is all that is known of one target.
type targetPage struct {
	layout
	targetView
	Path   string
	Plan   []stepView // of the last pass, where it has steps
	Digest string
	// Applied are the outcomes of the last pass that ran something.
	Applied        []stepView
	AppliedAt      moment
	AppliedShort   string
	AppliedSubject string
	Runs           []runView
	Events         []eventView
}

type stepView struct {
	plan.Step
	Status  plan.OutcomeStatus // empty for a planned step
	Mark    string
	Words   string
	Took    string
	Error   string
	Changes []changeView
}

type changeView struct {
	Field, From, To, At string
}

func (w *web) targetPage(t TargetState) targetPage {
	v := targetPage{layout: w.layout(t.Name), targetView: w.targetView(t), Path: t.Path}
	if r := t.Last; r != nil && r.Plan != nil {
		v.Digest = r.Plan.Digest()
		for _, s := range r.Plan.Steps {
			v.Plan = append(v.Plan, stepViewOf(s))
		}
	}
	if r := t.Applied; r != nil {
		v.AppliedAt, v.AppliedShort, v.AppliedSubject = w.moment(r.StartedAt), short(r.Revision), r.Subject
		for _, o := range r.Outcomes {
			s := stepViewOf(o.Step)
			s.Status, s.Mark = o.Status, outcomeMark(o.Status)
			if o.Duration > 0 {
				s.Took = span(o.Duration)
			}
			if o.Err != nil {
				s.Error = o.Err.Error()
			}
			v.Applied = append(v.Applied, s)
		}
		if t.Applied == t.Last {
			v.Plan = nil // the outcomes show the same steps
		}
	}
	v.Runs = w.runs(t.Name, shownRuns)
	v.Events = w.events(t.Name, shownEvents)
	return v
}

func stepViewOf(s plan.Step) stepView {
	v := stepView{Step: s, Mark: string(TargetWaiting), Words: string(s.Verb) + " " + string(s.Resource)}
	if s.Held != "" {
		v.Mark = string(TargetSuspended)
	}
	for _, c := range s.Changes {
		out := changeView{Field: c.Field, From: shown(c.From), To: shown(c.To)}
		if c.Origin != nil {
			out.At = c.Origin.String()
		}
		v.Changes = append(v.Changes, out)
	}
	return v
}

func outcomeMark(s plan.OutcomeStatus) string {
	switch s {
	case plan.Done:
		return string(TargetConverged)
	case plan.Failed:
		return string(TargetFailing)
	case plan.Held:
		return string(TargetSuspended)
	case plan.Skipped:
	}
	return string(TargetWaiting)
}

// shownValue bounds a value on the page, in characters.
const shownValue = 400

// shown prints a JSON value as a person reads it; empty stands for absent.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if v == "" {
			return `""`
		}
		return clip(v, shownValue)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return clip(fmt.Sprint(v), shownValue)
	}
	return clip(string(raw), shownValue)
}

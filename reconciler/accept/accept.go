// Package accept finds the differences between AWS and Git that can be written into the manifests, to keep a
// change that somebody made in AWS. It returns these fields, and compares the plan of the edited manifests
// with the plan before.
//
// It is a pure function of a plan and of the AWS state from which the plan was made. Package importer
// determines the fields, and package edit writes them.
package accept

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/importer"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
)

// Choice selects the changes to accept. The zero value selects all.
type Choice struct {
	// Pools lists names, with or without namespace. Fields lists fields in the form of plans, below spec.
	Pools, Fields []string
	// Drifted selects changes by the keys that the function Drifted returns. If it is nil, all changes
	// count.
	Drifted map[string]bool
}

func (c Choice) pool(k intent.Key) bool {
	return len(c.Pools) == 0 || slices.Contains(c.Pools, k.String()) || slices.Contains(c.Pools, k.Name)
}

// field reports whether a field is selected, or is below a selected field.
func (c Choice) field(name string) bool {
	return len(c.Fields) == 0 || slices.ContainsFunc(c.Fields, func(f string) bool {
		rest, is := strings.CutPrefix(name, strings.TrimPrefix(f, "spec."))
		return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Field is a field of a pool for which AWS and Git differ.
type Field struct {
	Target string `json:"target"`
	Pool   string `json:"pool"`
	Field  string `json:"field"`
	// Value is AWS's value, or nil.
	Value any `json:"value"`
	// At is the position in the manifests after the change.
	At string `json:"at,omitempty"`
	// Left explains why the field is not written, and what to do.
	Left string `json:"left,omitempty"`

	change edit.Change
}

// Find returns the differing fields of a target's pools, according to its plan.
func Find(target string, set *intent.Set, p *plan.Plan, s *observed.State, c Choice) (out []Field) {
	for i := range set.Pools {
		pool := &set.Pools[i]
		if !c.pool(pool.Key) {
			continue
		}
		key := pool.Key.String()
		image, _ := p.Image(key)
		for _, d := range importer.Differences(pool, changesOf(p, key, c.Drifted), s, image) {
			if f := (Field{Target: target, Pool: key, Field: d.Name(), Value: d.Value, Left: d.Why}); c.field(f.Field) {
				f.change = edit.Change{Place: target, Object: d.Object, Field: d.Path, Value: d.Value}
				out = append(out, f)
			}
		}
	}
	return out
}

// changesOf returns the changes of a pool for which AWS has another value. It leaves out creations,
// deletions and adoptions.
func changesOf(p *plan.Plan, pool string, only map[string]bool) (out []step.Change) {
	for i := range p.Steps {
		s := &p.Steps[i]
		made := s.Verb == step.Create && s.Resource != step.LaunchTemplate
		if s.Pool != pool && !slices.Contains(s.Pools, pool) || made || slices.Contains([]step.Verb{step.Delete, step.Adopt, step.PruneVersion}, s.Verb) {
			continue
		}
		for _, ch := range s.Changes {
			if only == nil || only[changeName(s, ch)] {
				out = append(out, ch)
			}
		}
	}
	return out
}

// Drifted returns the keys of a plan's changes that correct drift.
func Drifted(p *plan.Plan) map[string]bool {
	out := map[string]bool{}
	for i := range p.Steps {
		for _, ch := range p.Steps[i].Changes {
			if p.Steps[i].Drift != nil {
				out[changeName(&p.Steps[i], ch)] = true
			}
		}
	}
	return out
}

// changeName returns a key of a change that does not depend on the step's verb: a plan made with fewer facts
// may update what another plan rolls out.
func changeName(s *step.Step, ch step.Change) string {
	return string(s.Resource) + " " + s.Name + " " + ch.Field
}

// Changes returns the fields that can be written. If pools share an object, the first pool's value is used,
// and the other fields note that.
func Changes(fields []Field) (out []edit.Change) {
	for i := range fields {
		f := &fields[i]
		if f.Left != "" {
			continue
		}
		j := slices.IndexFunc(fields[:i], func(o Field) bool { return o.Left == "" && keyOf(o.change) == keyOf(f.change) })
		switch {
		case j < 0:
			out = append(out, f.change)
		case !reflect.DeepEqual(fields[j].Value, f.Value):
			f.Left = fmt.Sprintf("it shares %s with %s, which has a different value", f.change.Object, fields[j].Pool)
		}
	}
	return out
}

func keyOf(w edit.Change) string {
	return w.Place + " " + w.Object.APIVersion + " " + w.Object.String() + " " + w.Field.String()
}

// Take records the results of the changes in the fields.
func Take(fields []Field, changes []edit.Change, set *edit.Result) {
	at, why := map[string]string{}, map[string]string{}
	for _, p := range set.Placed {
		at[keyOf(changes[p.Of])] = p.At.String()
	}
	for _, r := range set.Refused {
		why[keyOf(changes[r.Of])] = r.Text
	}
	for i := range fields {
		if f := &fields[i]; f.Left == "" {
			f.At, f.Left = at[keyOf(f.change)], why[keyOf(f.change)]
		}
	}
}

// Prove compares the plan of the edited manifests with the earlier plan. It returns the effects that only
// the new plan has, such as giving machines a tag that only the group has. It notes the fields that still
// differ from AWS.
func Prove(fields []Field, before, after *plan.Plan) (more []string) {
	had := map[string]bool{}
	for i := range before.Steps {
		s := &before.Steps[i]
		had[stepName(s)] = true
		for _, ch := range s.Changes {
			had[stepName(s)+" "+ch.Field] = true
		}
	}
	var stays []step.Change
	for i := range after.Steps {
		s := &after.Steps[i]
		var changes []string
		for _, ch := range s.Changes {
			if had[stepName(s)+" "+ch.Field] {
				stays = append(stays, ch)
			} else if !importer.OwnMark(ch) {
				changes = append(changes, fmt.Sprintf("%s: %s → %s", ch.Field, shown(ch.From), shown(ch.To)))
			}
		}
		switch {
		case len(changes) > 0:
			more = append(more, stepName(s)+": "+strings.Join(changes, "; "))
		case !had[stepName(s)] && len(s.Changes) == 0:
			more = append(more, stepName(s)+": "+s.Reason)
		}
	}
	for i := range fields {
		f := &fields[i]
		if f.Left != "" || f.Target != after.Target {
			continue
		}
		for _, ch := range stays {
			if importer.About(ch, f.change.Object, f.change.Field) {
				f.Left = fmt.Sprintf("after this edit, weir would still change %s: %s → %s", ch.Field, shown(ch.From), shown(ch.To))
			}
		}
	}
	return more
}

func stepName(s *step.Step) string { return string(s.Verb) + " " + string(s.Resource) + " " + s.Name }

// shown returns a value on one line.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "(none)"
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

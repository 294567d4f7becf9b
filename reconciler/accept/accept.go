// Package accept finds what of AWS's differences from Git can be written into the
// manifests, for who wants to keep what somebody changed beside Git: which fields those
// are, and what the plan of the edited manifests has left.
//
// It is a pure function of a plan and of the state of AWS that the plan was made from.
// Package importer says what the fields are, and package edit writes them.
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

// Choice says what is accepted; the zero value says everything.
type Choice struct {
	// Pools are names, or namespaces and names; Fields are as plans name them, below spec.
	Pools, Fields []string
	// Drifted are the changes that count, as Drifted names them; nil for all.
	Drifted map[string]bool
}

func (c Choice) pool(k intent.Key) bool {
	return len(c.Pools) == 0 || slices.Contains(c.Pools, k.String()) || slices.Contains(c.Pools, k.Name)
}

// field reports whether a field is, or is below, a named field.
func (c Choice) field(name string) bool {
	return len(c.Fields) == 0 || slices.ContainsFunc(c.Fields, func(f string) bool {
		rest, is := strings.CutPrefix(name, strings.TrimPrefix(f, "spec."))
		return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Field is a field of a pool that AWS has otherwise.
type Field struct {
	Target string `json:"target"`
	Pool   string `json:"pool"`
	Field  string `json:"field"`
	// Value is the value in AWS, nil for none.
	Value any `json:"value"`
	// At is the place in the manifests after the change.
	At string `json:"at,omitempty"`
	// Left says why it is not written, and what to do.
	Left string `json:"left,omitempty"`

	change edit.Change
}

// Find finds what AWS has otherwise of a target's pools, by its plan.
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

// changesOf returns the changes of a pool where AWS has another value. It leaves out creations,
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

// Drifted are the changes of a plan that put right what was changed beside Git.
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

// changeName does not depend on the step's verb: a plan from scratch may update what a plan with
// more facts rolls out.
func changeName(s *step.Step, ch step.Change) string {
	return string(s.Resource) + " " + s.Name + " " + ch.Field
}

// Changes are the fields that can be written. Of pools that share an object the first one
// decides, and the fields of others say so.
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

// Take notes what became of the changes.
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

// Prove compares the plan of the edited manifests with the one before. It says what weir
// would do then that it would not do now, such as give machines a tag that only the group
// has, and notes the fields that are not as AWS has them after all.
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

// shown is a value on one line.
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

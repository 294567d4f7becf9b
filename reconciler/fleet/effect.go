package fleet

import (
	"errors"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// effect classifies the consequence of a proposal for a target of its source. Package fleet finds it in two
// steps: the standing of the target's build shows whether the proposal changes the build, and the effect
// shows what the review does with the target.
type effect string

const (
	changes   effect = "the proposal changes it: it is planned"
	requested effect = "its plan is requested, whether the proposal changes it or not"
	removes   effect = "the proposal removes it"
	none      effect = "it is not planned: the proposal does not change it, or only the plans of other targets are requested"
	unclear   effect = "weir cannot read the source, so the effect of the proposal is unknown: the review fails"
)

// part is a target of the proposal's source, as far as the effect of the proposal is concerned.
type part struct {
	// removed is true if only the followed commit has the target, and touched if the proposal changes its build.
	removed, touched bool
	// unread is true if the target's source cannot be read.
	unread bool
	// named is true if the proposal requests the target's plan by name.
	named bool
}

// selection names the plans that a proposal requests.
type selection string

const (
	plansOfTouched selection = "the plans of all targets that it changes"
	plansOfNamed   selection = "the plans of some targets, by name"
	plansOfAll     selection = "the plans of all targets"
)

// selectionOf returns which plans a proposal asks for.
func selectionOf(p Proposal) selection {
	switch {
	case len(p.Only) > 0:
		return plansOfNamed
	case p.All:
		return plansOfAll
	}
	return plansOfTouched
}

// effectOf returns the effect of a proposal on a target of its source.
func effectOf(t part, s selection) effect {
	switch {
	case t.removed:
		return removes
	case s == plansOfAll, s == plansOfNamed && t.named:
		return requested
	case s == plansOfTouched && t.touched:
		return changes
	case t.unread:
		return unclear
	}
	return none
}

// effectsOf returns the effects of a proposal on the targets of its source, by name. removed names the
// targets that only the followed commit has.
func effectsOf(items []*item, removed []string, p Proposal) map[string]effect {
	out := map[string]effect{}
	s := selectionOf(p)
	for _, name := range removed {
		out[name] = effectOf(part{removed: true}, s)
	}
	for _, it := range items {
		if it.target.Source == p.Source {
			out[it.name] = effectOf(part{
				touched: it.desired.Touched, unread: errors.Is(it.desired.Err, plan.ErrSource), named: slices.Contains(p.Only, it.name),
			}, s)
		}
	}
	return out
}

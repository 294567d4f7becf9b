package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/wording"
)

// gravity lists the verbs, the most serious first.
var gravity = []step.Verb{step.Delete, step.Replace, step.Rollout, step.Create, step.Adopt, step.Update, step.PruneVersion}

// headlinePools is the maximum number of pools that a headline names.
const headlinePools = 3

// Headline describes the effect of merging a pull request as plain text: lead is a short phrase, and more
// its consequences, which follow a colon. more is "" for none.
func (p Pull) Headline() (lead, more string) {
	reason := visible.Line(p.Reason)
	switch p.State {
	case PullConflict:
		if rest, ok := strings.CutPrefix(reason, "update the branch"); ok {
			return "Update the branch", strings.TrimPrefix(strings.TrimSpace(rest), ": ")
		}
		return "Update the branch", reason
	case PullWaiting:
		return "Not planned yet", reason
	case PullFailing:
		return "This cannot be planned", reason
	case PullMerged:
		lead = "Merged"
		if p.MergeSHA != "" {
			lead += " as " + wording.Clean(wording.Short(p.MergeSHA))
		}
		switch {
		case len(p.Differs) > 0:
			return lead, "not everything is applied as reviewed"
		case len(p.Uncompared) > 0:
			return lead, "weir could not compare everything with the review"
		}
		return lead, ""
	case PullClosed:
		if reason == "" {
			reason = "none of its changes are applied"
		}
		return "Closed", reason
	}
	changed, all := p.Changed()
	if changed == 0 {
		switch affected, _ := p.Targets(); affected {
		case 0:
			return "Nothing to do", "no target is affected"
		case 1:
			return "Nothing to do", fmt.Sprintf("1 of %s was planned and stays as it is", wording.Count(all, "target"))
		default:
			return "Nothing to do", fmt.Sprintf("%d of %s were planned and stay as they are", affected, wording.Count(all, "target"))
		}
	}
	return fmt.Sprintf("Merging this changes %d of %s", changed, wording.Count(all, "target")), p.phrases()
}

// Changed returns the number of targets that the merge changes, and the number of all targets.
func (p Pull) Changed() (n, all int) {
	for _, r := range p.Reports {
		if r.Plan != nil && !r.Plan.Empty() {
			n++
		}
	}
	_, all = p.Targets()
	return n + len(p.Gone), all
}

// phrases describes the changes of all plans of a pull request to pools, the most serious first, and names
// removed targets. It names at most headlinePools of them.
func (p Pull) phrases() string {
	byVerb := map[step.Verb][]string{}
	for _, r := range p.Reports {
		if r.Plan == nil {
			continue
		}
		for _, c := range poolChanges(r) {
			byVerb[c.verb] = append(byVerb[c.verb], c.words(r))
		}
	}
	var all []string
	for _, v := range gravity {
		all = append(all, byVerb[v]...)
	}
	for _, name := range p.Gone {
		all = append(all, name+" is removed as a target, and its resources in AWS stay")
	}
	if n := len(all) - headlinePools; n > 0 {
		all = append(all[:headlinePools], fmt.Sprintf("and %d more", n))
	}
	return visible.Line(strings.Join(all, "; "))
}

// poolChange is the most serious change that a plan makes to a pool.
type poolChange struct {
	pool string
	verb step.Verb
	step step.Step
}

// poolChanges returns the pools that a plan changes, in the order of its steps.
func poolChanges(r *plan.Report) []poolChange {
	var out []poolChange
	for _, s := range r.Plan.Steps {
		pools := s.Pools
		if s.Pool != "" {
			pools = []string{s.Pool}
		}
		if len(pools) == 0 {
			pools = []string{s.Name}
		}
		for _, name := range pools {
			i := slices.IndexFunc(out, func(c poolChange) bool { return c.pool == name })
			if i < 0 {
				out = append(out, poolChange{name, s.Verb, s})
			} else if slices.Index(gravity, s.Verb) < slices.Index(gravity, out[i].verb) ||
				s.Verb == out[i].verb && s.Instances > out[i].step.Instances {
				out[i].verb, out[i].step = s.Verb, s
			}
		}
	}
	return out
}

// words describes the change in a phrase for a headline.
func (c poolChange) words(r *plan.Report) string {
	_, name, ok := strings.Cut(c.pool, "/")
	if !ok {
		name = c.pool
	}
	text := name + " in " + r.Target
	switch c.verb {
	case step.Rollout:
		switch {
		case wording.ReplacesNone(c.step):
			text += " gets another configuration, without replacing instances"
		case c.step.Instances == 0:
			text += " rolls out"
		default:
			text += " rolls " + RollOf(r, c.step).Words(false)
		}
	case step.Delete, step.Replace:
		text += map[step.Verb]string{step.Delete: " is deleted", step.Replace: " is replaced"}[c.verb]
		if c.step.Instances > 0 {
			text += " with " + wording.Count(c.step.Instances, "instance")
		}
	case step.Create:
		text += " is created"
	case step.Adopt:
		text += " is adopted"
	case step.PruneVersion:
		text += " loses old template versions"
	default:
		text += " is updated"
	}
	if c.step.Held != "" {
		text += " (held: " + wording.Held(c.step) + ")"
	}
	return text
}

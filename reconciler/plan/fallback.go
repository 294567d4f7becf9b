package plan

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/orphan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// A target that uses an earlier revision is planned as if it followed that revision. The plan first
// shows whether AWS matches the revision, by hashes of the launch configurations. Then the planner
// removes all steps except corrections of drift.

// Verdict returns the decision whether the target is held to the revision of Policy.Fallback.
func (p *Plan) Verdict() lastgood.Verdict { return p.verdict }

// Verdicts returns the same decision for the pools of Policy.FallbackPools.
func (p *Plan) Verdicts() map[string]lastgood.Verdict {
	out := map[string]lastgood.Verdict{}
	for i := range p.pools {
		if v := p.pools[i].Verdict; v != nil {
			out[p.pools[i].Key.String()] = *v
		}
	}
	return out
}

// noteHeld notes the result of planning a pool that uses an earlier revision.
func (c *computation) noteHeld(p *model.PoolPlan, r *model.Result) {
	if c.in.Earlier(p.Key.String()) == nil {
		return
	}
	p.Foreign = len(r.Conflicts) > 0
	if i := slices.IndexFunc(r.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 && p.Blocked {
		p.Unclear = r.Diags[i].Located()
	} else if p.Waits || p.Blocked {
		p.Unclear = "it cannot be planned now"
	}
	p.Differs = slices.ContainsFunc(r.Diags, func(d diag.Diagnostic) bool { return slices.Contains(unlike, d.Code) })
}

// unlike lists the diagnostic codes that show that AWS differs from a revision. If EKS cannot
// change a field in place, the nodegroup's name contains a hash of it. And nothing was launched
// from an image or template that AWS does not have.
var unlike = []string{model.CodeImmutable, model.CodeRenamed, "image-not-found", "parameter-not-found", "parameter-no-image", "launch-template-not-found", "launch-template-version-not-found"}

// keepEarlier removes all steps except corrections from the plan of a target that uses an earlier
// revision. It returns whether the target is held to the revision; the verdict is empty if the
// target uses the followed one.
func (c *computation) keepEarlier() lastgood.Verdict {
	h := c.in.Policy.Fallback
	if h == nil {
		return lastgood.Verdict{}
	}
	c.noteDiffering()
	out := lastgood.Candidate{Recorded: h.Recorded, Unwanted: orphan.Unwanted(c.in)}
	for i := range c.in.Set.Pools {
		out.Pools = append(out.Pools, c.candidate(&c.in.Set.Pools[i], h))
	}
	c.keep(corrects)
	return lastgood.Judge(out)
}

// noteDiffering notes the pools for which AWS differs from the plan's desired state.
func (c *computation) noteDiffering() {
	for _, s := range c.Steps {
		a := s.About()
		if a.Makes == "" && (!a.Starts || a.Group != "") { // makes neither a version nor a group or nodegroup
			continue
		}
		for _, pool := range poolsOf(s) {
			if p := c.pools.Named(pool); p != nil {
				p.Differs = true
			}
		}
	}
}

// candidate compares a pool of an earlier revision with AWS.
func (c *computation) candidate(pool *intent.Pool, h *model.Fallback) lastgood.Pool {
	p, key := c.pools.Of(pool.Key), pool.Key.String()
	out := lastgood.Pool{Key: key, Exists: c.in.Exists(pool) && !p.Foreign, Recorded: !p.Differs, Bad: h.Bad[key]}
	if p.Governed != nil {
		out.Hash = p.Governed.Hash
	}
	if out.Recorded {
		out.Unclear = cmp.Or(h.Unread, p.Unclear)
	}
	return out
}

// keepEarlierPools removes all steps except corrections for pools that use an earlier revision while
// their target does not. It stores the verdict about each such pool.
func (c *computation) keepEarlierPools() {
	held := c.in.Policy.FallbackPools
	if c.in.Policy.Fallback != nil || len(held) == 0 {
		return
	}
	c.noteDiffering()
	for i := range c.in.Set.Pools {
		pool := &c.in.Set.Pools[i]
		if h := held[pool.Key.String()]; h != nil {
			verdict := lastgood.Judge(lastgood.Candidate{Recorded: true, Pools: []lastgood.Pool{c.candidate(pool, h)}})
			c.pools.Of(pool.Key).Verdict = &verdict
		}
	}
	fits := func(pool string) bool {
		p := c.pools.Named(pool)
		return p != nil && p.Verdict != nil && p.Verdict.Answer == lastgood.Fits
	}
	c.keep(func(s step.Step) bool {
		pools := poolsOf(s)
		if slices.ContainsFunc(pools, func(pool string) bool { return held[pool] == nil }) || len(pools) == 0 {
			return true // other pools may need it
		}
		return corrects(s) && !slices.ContainsFunc(pools, func(pool string) bool { return !fits(pool) })
	})
}

// dropNeverApplied removes steps for differences that are no drift, because weir never applied the
// wanted value, or cannot know that it did.
func (c *computation) dropNeverApplied() {
	if c.in.Policy.Fallback == nil && len(c.in.Policy.FallbackPools) == 0 {
		return
	}
	c.keep(func(s step.Step) bool {
		followed := func(pool string) bool { return c.in.Earlier(pool) == nil }
		return s.Drift != nil || ends(s) || c.in.Policy.Fallback == nil && (s.Pool == "" && len(s.Pools) == 0 || slices.ContainsFunc(poolsOf(s), followed))
	})
}

// keep keeps only the steps that may accepts. The pools of removed steps have not converged.
func (c *computation) keep(may func(step.Step) bool) {
	c.Steps = slices.DeleteFunc(c.Steps, func(s step.Step) bool {
		if may(s) {
			return false
		}
		for _, pool := range poolsOf(s) {
			h, p := c.in.Earlier(pool), c.pools.Named(pool)
			if h == nil || p == nil {
				continue
			}
			p.Undone = true
			if p.Outstanding == nil {
				p.Outstands("Warning", ReasonHeld, "the pool is held to "+rollout.ShortRevision(h.Revision)+", and steps other than drift corrections wait for a commit that can be rendered: "+string(s.Verb)+" the "+string(s.Resource)+" "+s.Name+": "+s.Reason)
			} else if s.Stops {
				p.Outstanding.Message += "; going back waits for a commit that can be rendered, because the target is held to " + rollout.ShortRevision(h.Revision)
			}
		}
		return true
	})
}

// ReasonHeld is the reason of the condition Ready for a pool with work that waits while the pool is
// held to an earlier revision.
const ReasonHeld = "HeldToEarlierRevision"

// corrects reports whether the step may correct drift while an earlier revision is used. Such a
// step creates, ends and launches nothing, and replaces no machine.
func corrects(s step.Step) bool {
	if ends(s) {
		return true
	}
	a := s.About()
	tags := len(a.Put)+len(a.Remove) > 0
	return s.Do != nil && s.Verb == step.Update && !s.Disrupts() && !model.TakesAdopted(s) && a.Makes == "" && a.Launches == nil && a.Refresh == "" &&
		!a.Starts && !a.Configures && !a.Ends && (s.Resource != step.LaunchTemplate || tags)
}

// ends reports whether the step stops a rollout that was found bad. Such a step never waits.
func ends(s step.Step) bool { return s.Stops && s.About().EndsRefresh() }

func poolsOf(s step.Step) []string {
	if s.Pool == "" {
		return s.Pools
	}
	return []string{s.Pool}
}

// Fallback describes the treatment of a target whose followed commit cannot be rendered.
type Fallback struct {
	// Revision is the earlier revision that the pass compared with AWS, empty if none is left.
	Revision string `json:"revision"`
	// Why describes the fault of the followed commit.
	Why     string           `json:"why"`
	Verdict lastgood.Verdict `json:"verdict"`
}

// To returns the revision that weir applies instead, empty if it only observes the target.
func (h *Fallback) To() string {
	if h == nil || h.Verdict.Answer != lastgood.Fits {
		return ""
	}
	return h.Revision
}

// Passing reports whether this is temporary: the next pass tries an older revision, or AWS has not
// answered yet.
func (h *Fallback) Passing() bool {
	return h != nil && h.Revision != "" && (h.Verdict.Answer == lastgood.Differs || h.Verdict.Answer == lastgood.Unclear)
}

// Text describes the revision that the target is held to and why, or why it is only observed.
func (h *Fallback) Text() string {
	if h.To() != "" {
		return "held to " + rollout.ShortRevision(h.Revision) + ": " + h.Because()
	}
	return "only observed: " + h.Because()
}

// Because returns the reason of Text.
func (h *Fallback) Because() string {
	why := "the followed commit cannot be rendered: " + h.Why
	switch {
	case h.To() != "":
		return why
	case h.Revision == "":
		return why + "; " + h.Verdict.Why
	case h.Verdict.Answer == lastgood.Unclear:
		return why + "; weir cannot tell yet whether " + rollout.ShortRevision(h.Revision) + " matches AWS: " + h.Verdict.Why
	}
	return why + "; " + rollout.ShortRevision(h.Revision) + " does not match AWS: " + h.Verdict.Why
}

// Diagnostic returns Text as a warning with a hint.
func (h *Fallback) Diagnostic() diag.Diagnostic {
	code := "held-to-earlier"
	if h.To() == "" {
		code = "observed-only"
	}
	return diag.Diagnostic{Severity: diag.Warning, Code: code, Summary: h.Text(), Detail: diag.Hint(code)}
}

// PlannedAt returns the revision for which the report's plan was made. While the target is held,
// that is an earlier revision than the followed one.
func (r *Report) PlannedAt() string { return cmp.Or(r.Fallback.To(), r.Revision) }

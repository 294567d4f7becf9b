package plan

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/orphan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// A target that is held to an earlier revision is planned as if that were followed. The
// plan says first whether AWS holds what the revision says, by the hashes of what machines
// are launched of. Then all steps go but those that put back what somebody changed.

// Verdict says whether the target is held to the revision of Policy.Held.
func (p *Plan) Verdict() lastgood.Verdict { return p.verdict }

// Verdicts says the same of the pools of Policy.HeldPools.
func (p *Plan) Verdicts() map[string]lastgood.Verdict { return p.verdicts }

// noteHolds notes what the plan of a pool says of a candidate.
func (c *computation) noteHolds(pool string, r *basis.Result) {
	if c.in.Earlier(pool) == nil {
		return
	}
	c.foreign[pool] = len(r.Conflicts) > 0
	if i := slices.IndexFunc(r.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); i >= 0 && r.Blocked {
		c.unclear[pool] = r.Diags[i].Located()
	} else if r.Waits || r.Blocked {
		c.unclear[pool] = "it cannot be planned now"
	}
	c.differing[pool] = slices.ContainsFunc(r.Diags, func(d diag.Diagnostic) bool { return slices.Contains(unlike, d.Code) })
}

// unlike are the codes of diagnostics by which AWS holds something else than a revision
// says: what EKS cannot change in place stands in the nodegroup's name as a hash, and from
// what AWS does not have nothing was launched.
var unlike = []string{basis.CodeImmutable, basis.CodeRenamed, "image-not-found", "parameter-not-found", "parameter-no-image", "launch-template-not-found", "launch-template-version-not-found"}

// hold takes out of the plan of a target that is held what does not put something back,
// and returns how its revision stands to AWS; nil where nothing is held.
func (c *computation) hold() *lastgood.Candidate {
	h := c.in.Policy.Held
	if h == nil {
		return nil
	}
	c.noteDiffering()
	out := &lastgood.Candidate{Recorded: h.Recorded, Unwanted: orphan.Unwanted(c.in)}
	for i := range c.in.Set.Pools {
		out.Pools = append(out.Pools, c.candidate(&c.in.Set.Pools[i], h))
	}
	c.keep(corrects)
	return out
}

// noteDiffering notes of which pools AWS holds something else than the plan wants.
func (c *computation) noteDiffering() {
	for _, s := range c.Steps {
		a := s.About()
		for _, pool := range poolsOf(s) {
			if a.Makes != "" || a.Starts && a.Group == "" { // a version, a group or a nodegroup
				c.differing[pool] = true
			}
		}
	}
}

// candidate compares a pool of an earlier revision with AWS.
func (c *computation) candidate(pool *intent.Pool, h *basis.Held) lastgood.Pool {
	key := pool.Key.String()
	p := lastgood.Pool{Key: key, Exists: c.in.Exists(pool) && !c.foreign[key], Recorded: !c.differing[key], Unclear: c.unclear[key], Bad: h.Bad[key]}
	if p.Recorded && h.Unread != "" {
		p.Unclear = h.Unread
	} else if !p.Recorded {
		p.Unclear = ""
	}
	return p
}

// holdPools takes out of the plan what does not put something back of the pools that are
// held while the target is not, and returns how each stands to its revision.
func (c *computation) holdPools() map[string]lastgood.Verdict {
	held := c.in.Policy.HeldPools
	if c.in.Policy.Held != nil || len(held) == 0 {
		return nil
	}
	c.noteDiffering()
	governed, out := c.governed(), map[string]lastgood.Verdict{}
	for i := range c.in.Set.Pools {
		pool := &c.in.Set.Pools[i]
		key := pool.Key.String()
		if h := held[key]; h != nil {
			out[key] = judge(&lastgood.Candidate{Recorded: true, Pools: []lastgood.Pool{c.candidate(pool, h)}}, governed)
		}
	}
	c.keep(func(s step.Step) bool {
		pools := poolsOf(s)
		if slices.ContainsFunc(pools, func(pool string) bool { return held[pool] == nil }) || len(pools) == 0 {
			return true // the others may need it
		}
		return corrects(s) && !slices.ContainsFunc(pools, func(pool string) bool { return out[pool].Answer != lastgood.Fits })
	})
	return out
}

// leaveUndone takes out what was never applied, or cannot be known to have been: it is no
// drift.
func (c *computation) leaveUndone() {
	if c.in.Policy.Held == nil && len(c.in.Policy.HeldPools) == 0 {
		return
	}
	c.keep(func(s step.Step) bool {
		followed := func(pool string) bool { return c.in.Earlier(pool) == nil }
		return s.Drift != nil || ends(s) || c.in.Policy.Held == nil && (s.Pool == "" && len(s.Pools) == 0 || slices.ContainsFunc(poolsOf(s), followed))
	})
}

// keep takes out the steps that a plan of a held target does not have. Their pools have not
// converged.
func (c *computation) keep(may func(step.Step) bool) {
	c.Steps = slices.DeleteFunc(c.Steps, func(s step.Step) bool {
		if may(s) {
			return false
		}
		for _, pool := range poolsOf(s) {
			h := c.in.Earlier(pool)
			if h == nil {
				continue
			}
			c.undone[pool] = true
			if o, open := c.outstanding[pool]; open && s.Stops {
				o.Message += "; that they go back waits for a commit that can be rendered, as the target is held to " + short(h.Revision)
				c.outstanding[pool] = o
			} else if !open {
				c.outstanding[pool] = basis.Outstanding{Severity: "Warning", Reason: ReasonHeld,
					Message: "the pool is held to " + short(h.Revision) + ", and what it lacks of that beside drift waits for a commit that can be rendered: " + string(s.Verb) + " the " + string(s.Resource) + " " + s.Name + ": " + s.Reason}
			}
		}
		return true
	})
}

// ReasonHeld is the reason of the condition Ready of a pool with work that its target does
// not do while it is held to an earlier revision.
const ReasonHeld = "HeldToEarlierRevision"

// corrects reports whether the step may put something back in a target that is held. It
// makes, ends and launches nothing, and no machine goes for it.
func corrects(s step.Step) bool {
	if ends(s) {
		return true
	}
	a := s.About()
	tags := len(a.Put)+len(a.Remove) > 0
	return s.Do != nil && s.Verb == step.Update && !s.Disrupts() && !basis.TakesAdopted(s) && a.Makes == "" && a.Launches == nil && a.Refresh == "" &&
		!a.Starts && !a.Configures && !a.Ends && (s.Resource != step.LaunchTemplate || tags)
}

// ends reports whether the step stops a rollout that was found bad: that waits for nothing.
func ends(s step.Step) bool { return s.Stops && s.About().EndsRefresh() }

func poolsOf(s step.Step) []string {
	if s.Pool == "" {
		return s.Pools
	}
	return []string{s.Pool}
}

// judge decides on a candidate by the hashes that its pools roll to.
func judge(c *lastgood.Candidate, governed []rollout.Pool) lastgood.Verdict {
	hashes := make(map[string]string, len(governed))
	for i := range governed {
		hashes[governed[i].Pool] = governed[i].Hash
	}
	for i := range c.Pools {
		if hash, is := hashes[c.Pools[i].Key]; is {
			c.Pools[i].Hash = hash
		}
	}
	return lastgood.Judge(*c)
}

// Holds says what becomes of a target whose followed commit cannot be rendered.
type Holds struct {
	// Revision is the earlier one that the pass was about, empty where there is none to try.
	Revision string `json:"revision"`
	// Why says what is wrong with the followed commit.
	Why     string           `json:"why"`
	Verdict lastgood.Verdict `json:"verdict"`
}

// To is the revision that the target is held to, empty where it is only observed.
func (h *Holds) To() string {
	if h == nil || h.Verdict.Answer != lastgood.Fits {
		return ""
	}
	return h.Revision
}

// Passing reports whether what is said will soon be something else: the next revision is
// about to be tried, or AWS has yet to answer.
func (h *Holds) Passing() bool {
	return h != nil && h.Revision != "" && (h.Verdict.Answer == lastgood.Differs || h.Verdict.Answer == lastgood.Unclear)
}

// Text says to which revision the target is held and why, or why it is only observed.
func (h *Holds) Text() string {
	since := "since the followed commit cannot be rendered: " + h.Why
	switch {
	case h.To() != "":
		return "held to " + short(h.Revision) + " " + since
	case h.Revision == "":
		return "only observed " + since + "; " + h.Verdict.Why
	case h.Verdict.Answer == lastgood.Unclear:
		return "only observed " + since + "; whether " + short(h.Revision) + " can take its place is not known: " + h.Verdict.Why
	}
	return "only observed " + since + "; " + short(h.Revision) + " is not held to: " + h.Verdict.Why
}

// Diagnostic says the same beside what is wrong with the followed commit.
func (h *Holds) Diagnostic() diag.Diagnostic {
	code := "held-to-earlier"
	if h.To() == "" {
		code = "observed-only"
	}
	return diag.Diagnostic{Severity: diag.Warning, Code: code, Summary: h.Text(), Detail: diag.Hint(code)}
}

// PlannedAt is the revision of which the plan of the report was made: an earlier one than
// the followed one while the target is held.
func (r *Report) PlannedAt() string { return cmp.Or(r.Holds.To(), r.Revision) }

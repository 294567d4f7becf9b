package plan

import (
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Gates say what keeps a target's steps from running though AWS and Git differ:
// what people asked for and what the configuration demands. Whoever calls the
// planner has decided them from its records, its clock and the other targets;
// planning takes them as values, so that the same plan comes out wherever it is
// made. Each text says why, for people; an empty one holds nothing.
type Gates struct {
	// Suspended is why Policy.Suspended is set, where a person did it.
	Suspended string
	// Pools are the suspended pools ("namespace/name"), each with why.
	Pools map[string]string
	// AsReviewed holds every step that no Grant lets run.
	AsReviewed bool
	// Grant is what somebody's approval still lets run; nil for none.
	Grant *Grant
	// Wave says which target this one waits for: no step runs but those that put drift
	// back and replace nothing. Earlier are the targets that it comes after where it
	// waits for none: what has moved without a commit goes through them first.
	Wave    string
	Earlier []Earlier
	// Window says when the next window opens: no step runs that replaces or
	// ends something.
	Window string
	// Agreed is nil where nobody was asked.
	Agreed *Agreement
	// Decided lets the first rollout of what was taken over run: whoever is there was
	// shown it, or wants no question.
	Decided bool
	// Deletions says how deletions are agreed to, where nobody can be asked: none
	// runs.
	Deletions string
	// Waits says what of weir's own must end before anything of the target is written,
	// such as the render of a newer commit: no step runs.
	Waits string
}

// Grant is an approval at work. It covers the plan with its digest and, once that
// has begun, what must follow for the same pools: a default version that moves
// after its rollout, a template that goes after its group.
type Grant struct {
	Digest string
	// Exact asks that the plan still has the digest: the approval is not used yet.
	Exact bool
	// Owners are those of the approved plan's steps; Deletes are the pools of
	// which it deletes something.
	Owners  map[string]bool
	Deletes map[string]bool
}

// Agreement is what somebody was shown at a terminal and said yes to.
type Agreement struct {
	// Digest is that of the plan that was shown. It counts in the first pass; what
	// follows comes of the same commit and is not asked about again.
	Digest string
	First  bool
	// Deletes are the pools of which something goes.
	Deletes map[string]bool
}

// AgreementOf is that of somebody who says yes to a plan. What is held stays held.
func AgreementOf(p *Plan) Agreement {
	a := Agreement{Digest: p.Digest(), First: true, Deletes: map[string]bool{}}
	for _, s := range p.Steps {
		if s.Verb == step.Delete {
			a.Deletes[s.Pool] = true
		}
	}
	return a
}

// lets reports whether a step of the plan may run; without an agreement each may.
func (a *Agreement) lets(p *Plan, s step.Step) bool {
	if a == nil {
		return true
	}
	return (!a.First || p.Digest() == a.Digest) && (s.Verb != step.Delete || a.Deletes[s.Pool])
}

// GrantOf is the grant of somebody who approves a plan.
func GrantOf(p *Plan) Grant {
	g := Grant{Digest: p.Digest(), Exact: true, Owners: map[string]bool{}, Deletes: map[string]bool{}}
	for _, s := range p.Steps {
		g.Owners[s.Owner()] = true
		if s.Verb == step.Delete && s.Pool != "" {
			g.Deletes[s.Pool] = true
		}
	}
	return g
}

// covers reports whether the grant lets the plan run.
func (g *Grant) covers(p *Plan) bool {
	return g != nil && g.Digest != "" && !p.Secretless && (!g.Exact || p.Digest() == g.Digest)
}

// allows reports whether the grant lets a step of a covered plan run.
func (g *Grant) allows(s step.Step) bool {
	return g.Owners[s.Owner()] && (s.Verb != step.Delete || s.Pool == "" || g.Deletes[s.Pool])
}

// gated plans and holds what the gates hold. A grant that lets something be
// deleted beyond the limit changes what must be read before, so that the plan is
// then made a second time.
func gated(in Input, compute func(Input) (*Plan, observed.Needs)) (*Plan, observed.Needs) {
	p, needs := compute(in)
	gates := in.Policy.Gates
	grant := gates.Grant
	if len(p.Steps) == 0 || in.Policy.Adoption.Asked {
		return p, needs
	}
	granted := grant.covers(p)
	if granted && len(grant.Deletes) > 0 {
		in.Policy.Prune.Granted = grant.Deletes
		p, needs = compute(in)
	}
	p.Granted = granted
	approve := "it was planned without the target's secrets and cannot be approved"
	if limited := slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Held == step.HeldPruneLimit || s.Held == step.HeldWaiting }); limited || gates.AsReviewed {
		if digest := p.Digest(); digest != "" {
			approve = "weir approve " + digest
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		switch {
		case s.HeldReason != "": // said where it was planned
		case s.Held == step.HeldSuspended:
			s.HeldReason = gates.suspended(in.Policy, s.Pool)
			if s.Verb == step.Adopt {
				s.HeldReason += "; " + in.Policy.adoptCommand("") + " adopts it all the same, which changes tags only"
			}
		case s.Held == step.HeldPruneLimit:
			s.HeldReason = approve
		case s.Held == step.HeldWaiting && s.HeldReason == "":
			s.HeldReason = in.Policy.Prune.Waits + "; " + approve
		case s.Held != "":
		case !gates.Agreed.lets(p, *s):
			s.Held, s.HeldReason = step.HeldApproval, "it is not what was shown and agreed to: apply again"
		case gates.Deletions != "" && s.Verb == step.Delete && (!granted || !grant.allows(*s)):
			s.Held, s.HeldReason = step.HeldApproval, gates.Deletions
		case s.First && !gates.Decided && (!granted || !grant.allows(*s)):
			s.Held, s.HeldReason = step.HeldApproval, in.Policy.undecided(p.Digest())
		case gates.AsReviewed && (!granted || !grant.allows(*s)):
			s.Held, s.HeldReason = step.HeldApproval, approve
		case gates.Wave != "" && !s.Mends():
			s.Held, s.HeldReason = step.HeldWave, gates.Wave
		case gates.Window != "" && s.Disrupts():
			s.Held, s.HeldReason = step.HeldWindow, gates.Window
		case gates.Waits != "":
			s.Held, s.HeldReason = step.HeldWaiting, gates.Waits
		default:
			if why := in.awaits(*s); why != "" {
				s.Held, s.HeldReason = step.HeldWave, why
			}
		}
	}
	p.holdMarks()
	return p, needs
}

// holdOf is what holds a pool as a whole.
func (in Input) holdOf(pool *intent.Pool) step.Hold {
	// Adopting changes tags alone, and somebody asks for it: only Git's word holds it.
	asked := in.Policy.Adoption.Asked
	switch {
	case !asked && (in.Policy.Suspended || in.Policy.ReportOnly):
		return step.HeldSuspended
	case pool.Paused:
		return step.HeldPaused
	case !asked && in.Policy.Gates.Pools[pool.Key.String()] != "":
		return step.HeldSuspended
	}
	return ""
}

// mayRun reports whether a step of the pool is held neither by what holds the
// pool nor by a gate.
func (c *work) mayRun(pool *intent.Pool, s step.Step) bool {
	g := c.in.Policy.Gates
	return s.Held == "" && c.hold == "" && (g.Wave == "" || c.in.settled(pool) && !s.Disrupts()) && (g.Window == "" || !s.Disrupts()) && (!g.AsReviewed || g.Grant != nil)
}

func (g Gates) suspended(p Policy, pool string) string {
	switch {
	case p.ReportOnly:
		return "the target is in report mode"
	case p.Suspended:
		return g.Suspended
	}
	return g.Pools[pool]
}

// Waiting names a rollout that waits for its turn.
type Waiting struct{ Target, Owner string }

// LimitRollouts holds the rollouts of the plans of one account and region that
// would exceed the limit, counted with those that are moving already; a limit of
// 0 is none. Those that waited before go first, in the order in which they came,
// then the others in the order of the plans: so none waits for ever. Refused are
// those that AWS refused a short while ago; they start nothing and take no turn.
// It returns who waits now, for the next call.
func LimitRollouts(plans []*Plan, limit, moving int, queue []Waiting, refused map[Waiting]bool) []Waiting {
	if limit <= 0 {
		return nil
	}
	type candidate struct {
		Waiting
		step *step.Step
	}
	var all []candidate
	for _, p := range plans {
		if p == nil {
			continue
		}
		for i := range p.Steps {
			w := Waiting{p.Target, p.Steps[i].Owner()}
			if p.Steps[i].StartsRollout() && !refused[w] {
				all = append(all, candidate{w, &p.Steps[i]})
			}
		}
	}
	place := func(c candidate) int {
		if n := slices.Index(queue, c.Waiting); n >= 0 {
			return n
		}
		return len(queue)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return place(a) - place(b) })
	free := max(0, limit-moving)
	if free >= len(all) {
		return nil
	}
	var waiting []Waiting
	for n, c := range all[free:] {
		c.step.Held = step.HeldRolloutLimit
		c.step.HeldReason = strconv.Itoa(moving+free) + " of at most " + strconv.Itoa(limit) + " rollouts are under way in the account and region; " + strconv.Itoa(n) + " wait before this one"
		waiting = append(waiting, c.Waiting)
	}
	for _, p := range plans {
		if p != nil {
			p.holdMarks()
		}
	}
	return waiting
}

// RolloutsMoving counts the instance refreshes, nodegroup updates and nodegroup
// replacements of an instance that are under way in an account and region. A
// replacement is until the nodes of the one before are drained.
func RolloutsMoving(s *observed.State, instance string) int {
	type pool struct{ cluster, key string }
	stays := map[pool]bool{}
	for name, g := range s.Nodegroups {
		if nodegroupRank(g) == 0 {
			stays[pool{name.Cluster, g.Tags[observed.TagPool]}] = true
		}
	}
	n := 0
	for name, r := range s.Refreshes {
		if r.Active() && s.Groups[name].Tags[observed.TagOwner].Value == instance {
			n++
		}
	}
	for name, g := range s.Nodegroups {
		_, _, replaces := cutSuffix(name.Name)
		replaced := g.Status == "DELETING" && stays[pool{name.Cluster, g.Tags[observed.TagPool]}]
		if (g.Status == "UPDATING" || g.Status == "CREATING" && replaces || replaced) && g.Tags[observed.TagOwner] == instance {
			n++
		}
	}
	return n
}

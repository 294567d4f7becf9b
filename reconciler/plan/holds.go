package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
)

// holdMarks holds the steps that take TagAdopted away where the step is held that they
// make way for: what decided about that one may be gone by the time it runs.
func (p *Plan) holdMarks() {
	for i := range p.Steps {
		mark := &p.Steps[i]
		if mark.Held != "" || !basis.TakesAdopted(*mark) {
			continue
		}
		after := p.Steps[i+1:]
		if n := slices.IndexFunc(after, func(s step.Step) bool { return s.Pool == mark.Pool && s.Disrupts() }); n >= 0 {
			mark.Held, mark.HeldReason, mark.HeldEnds = after[n].Held, after[n].HeldReason, after[n].HeldEnds
		}
	}
}

// withSecrets ends that a plan cannot be approved.
const withSecrets = "a plan that is made with the target's secrets"

// undecidedWhy says why a step waits that would be the first to replace machines of a pool
// since it was taken over; undecided says who ends that.
const undecidedWhy = "it would be the first to replace machines since the pool was adopted: "

func undecided(p basis.Policy, digest string) string {
	switch {
	case p.OwnTargetOnly:
		return "apply it on a terminal, or with --yes"
	case digest == "":
		return "it was planned without the target's secrets and cannot be approved, so " + withSecrets
	}
	return "weir approve " + digest + ", or a commit that changes what its machines are"
}

// AgreementOf is the agreement of a person who says yes to a plan. Held steps stay held.
func AgreementOf(p *Plan) basis.Agreement {
	a := basis.Agreement{Digest: p.Digest(), First: true, Deletes: map[string]bool{}}
	for _, s := range p.Steps {
		if s.Verb == step.Delete {
			a.Deletes[s.Pool] = true
		}
	}
	return a
}

// lets reports whether a step of the plan may run; without an agreement each may.
func lets(a *basis.Agreement, p *Plan, s step.Step) bool {
	if a == nil {
		return true
	}
	return (!a.First || p.Digest() == a.Digest) && (s.Verb != step.Delete || a.Deletes[s.Pool])
}

// gated plans and holds what the gates hold. A grant of deletions beyond the limit
// changes what weir must read before, so that it then makes the plan a second time.
func gated(in basis.Input, compute func(basis.Input) (*Plan, observed.Needs)) (*Plan, observed.Needs) {
	p, needs := compute(in)
	gates := in.Policy.Gates
	grant := gates.Grant
	if len(p.Steps) == 0 || in.Policy.Adoption.Asked {
		return p, needs
	}
	granted := grants(grant, p)
	if granted && len(grant.Deletes) > 0 {
		in.Policy.Prune.Granted = grant.Deletes
		p, needs = compute(in)
	}
	p.Granted = granted
	approve, approves := "it was planned without the target's secrets and cannot be approved", withSecrets
	if limited := slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Held == step.HeldPruneLimit || s.Held == step.HeldWaiting }); limited || gates.AsReviewed {
		if digest := p.Digest(); digest != "" {
			approve = "weir approve " + digest
			approves = approve
			if gates.Overtaken != "" && !granted {
				approve += "; the plan has changed since the last approval, " + gates.Overtaken
			}
		}
	}
	approveMore := approve
	if granted && !grant.Exact {
		approveMore += fmt.Sprintf("; it is more than was approved with %.12s", grant.Digest)
	}
	unmade := map[step.MadeKey]bool{} // versions that are not made, as they are not approved
	for i := range p.Steps {
		s := &p.Steps[i]
		switch {
		case (s.Held == "" || s.Held == step.HeldWave || s.Held == step.HeldGate) && s.Rolls() && in.Policy.Unmet[s.Pool] != "":
			s.Held, s.HeldReason = step.HeldPolicy, in.Policy.Unmet[s.Pool]
		case s.HeldReason != "": // said where it was planned
		case s.Held == step.HeldSuspended:
			s.HeldReason = gates.WhySuspended(in.Policy, s.Pool)
			if s.Verb == step.Adopt {
				s.HeldReason += "; " + in.Policy.AdoptCommand("") + " adopts it all the same, which changes tags only"
			}
		case s.Held == step.HeldPruneLimit:
			s.HeldReason, s.HeldEnds = approve, approves+", or a commit that takes it back"
		case s.Held == step.HeldWaiting && s.HeldReason == "":
			s.HeldReason = in.Policy.Prune.Waits + "; " + approve
		case s.Held != "", s.Stops:
		case !lets(gates.Agreed, p, *s):
			s.Held, s.HeldReason = step.HeldApproval, "it is not what was shown and agreed to: apply again"
			s.HeldEnds = "apply again"
		case gates.Deletions != "" && s.Verb == step.Delete && (!granted || !allows(grant, *s)):
			s.Held, s.HeldReason, s.HeldEnds = step.HeldApproval, gates.Deletions, gates.Deletions
		case s.First && !gates.Decided && (!granted || !allows(grant, *s)):
			s.Held, s.HeldReason, s.HeldEnds = step.HeldApproval, undecidedWhy+undecided(in.Policy, p.Digest()), undecided(in.Policy, p.Digest())
		case gates.AsReviewed && (!granted || !allows(grant, *s) || unmade[s.About().Unmade()]):
			s.Held, s.HeldReason, s.HeldEnds = step.HeldApproval, approveMore, approves
			if a := s.About(); a.Makes != "" {
				unmade[step.MadeKey{Name: s.Name, Content: a.Makes}] = true
				unmade[step.MadeKey{Name: s.Name}] = a.Template == (observed.TemplateRef{})
			}
		case gates.Wave != "" && !s.Mends():
			s.Held, s.HeldReason, s.HeldEnds = step.HeldWave, gates.Wave, basis.EarlierEnds
		case gates.Window != "" && s.Disrupts():
			s.Held, s.HeldReason = step.HeldWindow, gates.Window
		case gates.Waits != "":
			s.Held, s.HeldReason = step.HeldWaiting, gates.Waits
		default:
			if why := p.awaits(in, *s); why != "" {
				s.Held, s.HeldReason, s.HeldEnds = step.HeldWave, why, basis.EarlierEnds
			}
		}
		if s.Held == step.HeldSuspended && s.HeldEnds == "" {
			s.HeldEnds = gates.EndsSuspended(in.Policy, s.Pool)
		}
	}
	p.holdMarks()
	return p, needs
}

// Waiting names a rollout that waits for its turn.
type Waiting struct{ Target, Owner string }

// LimitRollouts holds the rollouts of the plans of one account and region that
// would exceed the limit, counted with those that are moving already; 0 means no limit.
// Those that waited before go first, in the order in which they came, then the others
// in the order of the plans: so none waits for ever. Refused are those that AWS refused
// a short while ago; they start nothing and take no turn. It returns who waits now, for
// the next call.
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
	position := func(c candidate) int {
		if n := slices.Index(queue, c.Waiting); n >= 0 {
			return n
		}
		return len(queue)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return position(a) - position(b) })
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
		if basis.NodegroupRank(g) == 0 {
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
		_, _, replaces := basis.CutSuffix(name.Name)
		replaced := g.Status == "DELETING" && stays[pool{name.Cluster, g.Tags[observed.TagPool]}]
		if (g.Status == "UPDATING" || g.Status == "CREATING" && replaces || replaced) && g.Tags[observed.TagOwner] == instance {
			n++
		}
	}
	return n
}

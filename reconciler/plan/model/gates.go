package model

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// A process that fell behind must not undo what another weir of the same instance made from a newer
// commit. Each resource records the commit from which weir made it: a template version in its
// description, a resource in a tag that goes along with other writes. Before weir writes a pool, it
// compares those commits with the followed one. The caller asks Git which commit is newer.

// Relation is the relation of a commit that AWS names to the followed commit.
type Relation string

// Relations.
const (
	// RelationOlder: the followed commit is it or descends from it, or weir followed it
	// itself before.
	RelationOlder Relation = "older"
	// RelationNewer: it descends from the followed one.
	RelationNewer Relation = "newer"
	// RelationUnknown: the repository, as it was just read, does not have it.
	RelationUnknown Relation = "unknown"
	// RelationAsked: the commit is missing here, and Git is asked for it.
	RelationAsked Relation = "asked"
)

// Gates say what keeps a target's steps from running though AWS and Git differ:
// what people asked for and the waves that the configuration requires. The planner's caller
// decides them from its records, its clock and the other targets; planning takes them
// as values, so that the same plan comes out wherever it is made. Each text says why,
// for people; an empty one holds nothing.
type Gates struct {
	// Suspended is why Policy.Suspended is set, where a person did it, and Resume what ends
	// that.
	Suspended, Resume string
	// Pools are the suspended pools ("namespace/name"), each with why.
	Pools map[string]string
	// AsReviewed holds every step that no Grant allows.
	AsReviewed bool
	// Grant holds what an approval still allows; nil for none.
	Grant *Grant
	// Overtaken names an approval of an earlier plan, which waits for that to come back.
	Overtaken string
	// Wave says which target this one waits for: no step runs but those that put drift
	// back and replace nothing. Earlier are the targets that it comes after where it
	// waits for none: what has moved without a commit goes through them first.
	Wave    string
	Earlier []Earlier
	// Window says when the next window opens: no step runs that replaces or
	// ends something.
	Window string
	// Agreed is nil if the user was asked nothing.
	Agreed *Agreement
	// Decided allows the first rollout of an adopted pool: the user was shown it, or wants no
	// question.
	Decided bool
	// Insists lets steps run that preflight would hold, if a person requests that separately from
	// the plan: an approval insists by its Grant.
	Insists bool
	// Deletions says how deletions are agreed to, where weir can ask nobody: none runs.
	Deletions string
	// Waits says what of weir's own must end before anything of the target is written,
	// such as the render of a newer commit: no step runs.
	Waits string
	// Rollouts are the permits of the pools ("namespace/name") that FleetRollouts govern:
	// such a pool rolls to no hash but its permit's, and no further than its share.
	Rollouts map[string]rollout.Permit
	// Activities says that gates of those FleetRollouts ask which launches of their watched
	// pools failed.
	Activities bool
	// Alarms are the alarms of CloudWatch that gates of those FleetRollouts ask about now.
	Alarms []string
}

// Grant is an approval at work. It allows the plan with its digest and, once that has
// begun, what is left of it and what follows from it, such as a default version that moves
// after its rollout, or a template that goes after its group.
type Grant struct {
	Digest string
	// Exact asks that the plan still matches the digest: the approval is not used yet.
	Exact bool
	// Works holds the approved works of each pool, as planning names them. Deletes holds the pools
	// for which the approved plan deletes something.
	Works   map[string]bool
	Deletes map[string]bool
	// Insists are the preflight holds that the approved plan showed: the approval lets their
	// steps run, and none that is held for another reason.
	Insists map[string]bool
}

// Agreement is the plan that a person saw at a terminal and said yes to.
type Agreement struct {
	// Digest is that of the plan that was shown. It is valid in the first pass; what
	// follows comes of the same commit and is not asked about again.
	Digest string
	First  bool
	// Deletes holds the pools for which something is deleted.
	Deletes map[string]bool
}

// HoldOf is the hold on a pool as a whole.
func (in Input) HoldOf(pool *intent.Pool) step.Hold {
	// Adopting changes only tags, and a person asks for it: only Git's word holds it.
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

// MayRun reports whether a step of the pool is held neither by what holds the
// pool nor by a gate.
func (c *Work) MayRun(pool *intent.Pool, s step.Step) bool {
	g := c.In.Policy.Gates
	return s.Held == "" && c.Hold == "" && (g.Wave == "" || c.In.unchanged(pool) && !s.Disrupts()) && (g.Window == "" || !s.Disrupts()) && (!g.AsReviewed || g.Grant != nil) && (c.In.Policy.Unmet[s.Pool] == "" || !s.Rolls())
}

func (g Gates) WhySuspended(p Policy, pool string) string {
	switch {
	case p.ReportOnly:
		return "the target is in report mode"
	case p.Suspended:
		return g.Suspended
	}
	return g.Pools[pool]
}

// EndsSuspended names who ends the suspension of WhySuspended.
func (g Gates) EndsSuspended(p Policy, pool string) string {
	switch {
	case p.ReportOnly:
		return "mode: correct in weir's configuration"
	case p.Suspended && g.Suspended == "":
		return "weir's configuration, without its suspend"
	case p.Suspended:
		return g.Resume
	}
	return "weir resume " + p.Target + " " + cmp.Or(pool, "POOL") + ", or its time"
}

// EarlierEnds returns when a target stops waiting for a target that it depends on.
const EarlierEnds = "the earlier target, once it has converged with the same"

// HoldOfAll is the hold of what pools share: it moves while any of them does.
func (in Input) HoldOfAll(pools []*intent.Pool) step.Hold {
	for _, p := range pools {
		if in.HoldOf(p) == "" {
			return ""
		}
	}
	return in.HoldOf(pools[0])
}

// Level is AWS's answer to a lookup that decides what machines run, and whose answer
// may be another tomorrow without a commit: the image that is newest, the newest
// version of a launch template, the Kubernetes version of a control plane.
type Level struct {
	// ID says what it is in its account and region; Name says it elsewhere too, and is
	// empty where nothing does.
	ID, Name string
	// Since is the time when this process first got this answer.
	Since time.Time
}

// Earlier is a target on which this one depends. It has converged, with the answers that it had.
type Earlier struct {
	Target, Account, Region string
	// Levels holds the answers with which it has converged, each requested at Fresh or later.
	Levels []Level
	Fresh  time.Time
}

// Unaware reports whether the target was last asked about what it follows before a
// level of another target was known, so that it may be about to move there itself. A
// target that follows nothing moves nowhere.
func (e Earlier) Unaware(account, region string, l Level) bool {
	return len(e.Levels) > 0 && e.Fresh.Before(l.Since) && !e.has(account, region, l)
}

func (e Earlier) has(account, region string, l Level) bool {
	elsewhere := e.Account != account || e.Region != region
	return slices.ContainsFunc(e.Levels, func(own Level) bool {
		return own.ID == l.ID || elsewhere && l.Name != "" && own.Name == l.Name
	})
}

// datedImage is the name of an image that EKS publishes, under the same name in every
// region and not everywhere at the same time.
var datedImage = regexp.MustCompile(`^(amazon-eks-(?:[a-z]+-)*node-.*-v)(\d{8})$`)

// Lags names the image of the same kind that the target has where a newer one is
// published elsewhere already; empty where it does not lag.
func (e Earlier) Lags(account, region string, l Level) string {
	want := datedImage.FindStringSubmatch(l.Name)
	if want == nil || e.has(account, region, l) {
		return ""
	}
	older := ""
	for _, own := range e.Levels {
		have := datedImage.FindStringSubmatch(own.Name)
		switch {
		case have == nil || have[1] != want[1]:
		case have[2] > want[2]:
			return "" // it has gone beyond
		default:
			older = own.Name
		}
	}
	return older
}

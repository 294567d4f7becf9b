package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// A process that fell behind must not undo the work of another weir of the same instance at a newer
// commit. Each resource records the commit from which weir made it: a template version in its
// description, other resources in a tag that weir adds to other writes. Before weir writes a pool,
// it compares these commits with the followed one. The caller asks Git which commit is newer.

// Relation is the relation of a commit that a resource in AWS names to the followed commit.
type Relation string

// Relations.
const (
	// RelationOlder: the followed commit is the same or descends from it, or weir followed it
	// earlier.
	RelationOlder Relation = "older"
	// RelationNewer: it descends from the followed commit.
	RelationNewer Relation = "newer"
	// RelationUnknown: the repository does not contain it, according to a read just now.
	RelationUnknown Relation = "unknown"
	// RelationAsked: the commit is missing locally, and weir is fetching it from Git.
	RelationAsked Relation = "asked"
)

// Gates contains the reasons why a target's steps do not run although AWS and Git differ: requests
// of people, and the waves that the configuration requires. The planner's caller determines them
// from its records, its clock and the other targets. They are values, so the same input gives the
// same plan everywhere. Each text explains a hold to people. An empty text holds nothing.
type Gates struct {
	// Suspended is the reason for Policy.Suspended if a person set it. Resume describes how to end
	// that.
	Suspended, Resume string
	// Pools maps the suspended pools ("namespace/name") to the reason.
	Pools map[string]string
	// AsReviewed holds every step that no Grant allows.
	AsReviewed bool
	// Grant is the part of an approval that is still in effect, nil for none.
	Grant *Grant
	// Overtaken names an approval of an earlier plan. It takes effect again if that plan comes
	// back.
	Overtaken string
	// Wave names the target that this one waits for. Until then only steps run that correct drift
	// and replace nothing. Earlier lists the targets that come before this one if Wave is empty. A
	// change without a commit, such as a new image, goes through them first.
	Wave    string
	Earlier []Earlier
	// Window gives the time when the next window opens. Until then no step runs that replaces or
	// ends something.
	Window string
	// Agreed is the plan that the user confirmed, nil if weir did not ask the user.
	Agreed *Agreement
	// Decided allows the first rollout of an adopted pool: the user saw it, or wants no question.
	Decided bool
	// Insists lets steps run that preflight would hold. A person requests it separately from the
	// plan. An approval insists by its Grant instead.
	Insists bool
	// Deletions is the reason why no deletion runs: nobody agreed to one, and weir can ask nobody.
	Deletions string
	// Waits names work of weir itself that must finish before weir writes anything of the target,
	// such as the render of a newer commit. No step runs until then.
	Waits string
	// Rollouts maps the pools ("namespace/name") that FleetRollouts govern to their permits. Such a
	// pool rolls only to the hash of its permit, and only to the permitted share.
	Rollouts map[string]rollout.Permit
	// Activities reports whether gates of these FleetRollouts need the failed launches of their
	// watched pools.
	Activities bool
	// Alarms lists the CloudWatch alarms that gates of these FleetRollouts need now.
	Alarms []string
}

// Grant is an approval in effect. It allows the plan with its digest. Once that has started, it
// allows all steps that are left or follow from them, such as moving the default version after a
// rollout, or deleting a template after its group.
type Grant struct {
	Digest string
	// Exact requires that the plan still matches the digest, because the approval is not used yet.
	Exact bool
	// Works is the set of the approved works of each pool, by the planner's keys. Deletes is the
	// set of pools for which the approved plan deletes something.
	Works   map[string]bool
	Deletes map[string]bool
	// Insists is the set of preflight holds that the approved plan showed. The approval lets their
	// steps run, but no step that is held for another reason.
	Insists map[string]bool
}

// Agreement is the plan that a person saw at a terminal and confirmed.
type Agreement struct {
	// Digest is the digest of the plan that was shown. First limits it to the first pass. Later
	// steps result from the same commit, and weir does not ask about them again.
	Digest string
	First  bool
	// Deletes is the set of pools for which the plan deletes something.
	Deletes map[string]bool
}

// HoldOf returns the hold on a whole pool.
func (in Input) HoldOf(pool *intent.Pool) step.Hold {
	// A person requested the adoption, and it changes only tags. So only a pause in Git holds it.
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

// MayRun reports whether neither a hold on the pool nor a gate holds a step of the pool.
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

// EndsSuspended describes how the suspension that WhySuspended explains ends.
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

// EarlierEnds describes when a target stops waiting for a target that it depends on.
const EarlierEnds = "the earlier target, once it has converged with the same"

// HoldOfAll returns the hold on a resource that pools share. It is held only if all of the pools
// are.
func (in Input) HoldOfAll(pools []*intent.Pool) step.Hold {
	for _, p := range pools {
		if in.HoldOf(p) == "" {
			return ""
		}
	}
	return in.HoldOf(pools[0])
}

// Level is AWS's answer to a lookup that decides what machines run and that can change without a
// commit: the newest image, the newest version of a launch template, the Kubernetes version of a
// control plane.
type Level struct {
	// ID identifies the answer within its account and region. Name identifies it everywhere. It is
	// empty if there is no such name.
	ID, Name string
	// Since is the time when this process first got this answer.
	Since time.Time
}

// Earlier is a target on which this one depends. It has converged with the answers in Levels.
type Earlier struct {
	Target, Account, Region string
	// Levels contains the answers with which the target has converged, each requested at Fresh or
	// later.
	Levels []Level
	Fresh  time.Time
}

// Unaware reports whether the target last requested its answers before a level of this target was
// known. It may then be about to move to that level itself. A target without levels moves nowhere.
func (e Earlier) Unaware(account, region string, l Level) bool {
	return len(e.Levels) > 0 && e.Fresh.Before(l.Since) && !e.has(account, region, l)
}

func (e Earlier) has(account, region string, l Level) bool {
	elsewhere := e.Account != account || e.Region != region
	return slices.ContainsFunc(e.Levels, func(own Level) bool {
		return own.ID == l.ID || elsewhere && l.Name != "" && own.Name == l.Name
	})
}

// datedImage matches the name of an image that EKS publishes. The name is the same in every region,
// but the regions do not get the image at the same time.
var datedImage = lazyregexp.New(`^(amazon-eks-(?:[a-z]+-)*node-.*-v)(\d{8})$`)

// Lags returns the older image of the same kind that the target has, if a newer one is already
// published elsewhere. It is empty if the target is up to date.
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
			return "" // it has a newer one
		default:
			older = own.Name
		}
	}
	return older
}

package report

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/render/diag"
)

// PullState is the state of a pull request, on GitLab a merge request.
type PullState string

// States of a pull request. The last two are ends.
const (
	// PullPlanned was planned: merging it changes something.
	PullPlanned PullState = "planned"
	// PullUnaffected changes nothing that a target renders.
	PullUnaffected PullState = "unaffected"
	// PullConflict cannot be merged cleanly.
	PullConflict PullState = "conflict"
	// PullWaiting is a fork's or a draft that still needs permission to be planned.
	PullWaiting PullState = "waiting"
	// PullFailing cannot be rendered or planned.
	PullFailing PullState = "failing"
	PullMerged  PullState = "merged"
	PullClosed  PullState = "closed"
)

// Pull is the report of a pull request: on its commit, in its comment and on the
// page. It is immutable once handed on.
type Pull struct {
	// Source is the source's name.
	Source string
	Number int64
	// Title, Author and WebURL are the forge's.
	Title, Author, WebURL string
	// HeadSHA is the commit that is proposed. BaseSHA is the commit of BaseRef that
	// the plan was made upon, "" without one.
	HeadSHA, BaseRef, BaseSHA string
	// Fork says that the head comes from another repository.
	Fork  bool
	State PullState
	// Reason says why it waits, conflicts, fails or was closed, and what to do.
	Reason string
	// Reports are the affected targets' alone, with origins.
	Reports []*plan.Report
	// Before are the findings of each target that the followed commit has too, by their
	// FindingKey.
	Before map[string][]string `json:"-"`
	// Gone are the targets that the pull request takes away.
	Gone []string
	// Unaffected counts the targets that stay as they are.
	Unaffected int
	// Digest covers all plans together, "" without one. Digests holds the targets' digests; if
	// empty, they come from the reports.
	Digest  string
	Digests map[string]string
	// Approved names the user who approved the plan, or "". AsReviewed says that some target holds
	// its steps until then.
	Approved   string
	AsReviewed bool
	// Stale says why weir may no longer apply exactly this plan, "" if it does.
	Stale string
	// PlannedAt is the time of the plan. It is shown on the page only: equal plans have equal
	// comments.
	PlannedAt time.Time
	// MergeSHA is the commit that merging made, "" until then.
	MergeSHA string
	// Compared says, once merged, that the plan of the merge was compared with the
	// reviewed one, Differs how they differ, Untold what of that weir cannot know.
	Compared            bool
	Differs, Uncompared []string
	// PageURL is its address on weir's page, or "".
	PageURL string
	// Unkept says that the reports are no longer in memory here.
	Unkept bool
	// Forecast is the simulation of its change over time; nil if it is unknown.
	Forecast *Forecast
}

// Forecast is the simulation of a pull request's change over time.
type Forecast struct {
	// Timeline is nil if the simulation failed, for the reason in Failed, or would take
	// longer than a plan may wait. Command then runs it by hand.
	Timeline *timeline.Timeline `json:"timeline,omitempty"`
	Command  string             `json:"command,omitempty"`
	Failed   string             `json:"failed,omitempty"`
}

// Lean is the part of a pull request that is shown: its reports also hold what their
// plans were made of, such as renders and machines.
func (p Pull) Lean() Pull {
	reports, digests := make([]*plan.Report, len(p.Reports)), maps.Clone(p.Digests)
	if digests == nil {
		digests = map[string]string{}
	}
	for i, r := range p.Reports {
		lean := *r
		lean.Outcomes, lean.Milestones, lean.LaunchConfigs, lean.Pools = nil, nil, nil, nil
		reports[i] = &lean
		if r.Plan == nil {
			continue
		}
		if p.Digests == nil {
			digests[r.Target] = r.Plan.Digest()
		}
		of := *r.Plan
		of.Steps = slices.Clone(of.Steps)
		rolling := map[string]bool{}
		for j := range of.Steps {
			s := &of.Steps[j]
			s.Do, s.Seen = rollingOnly(s.Do), nil
			rolling[s.Pool] = rolling[s.Pool] || s.Do != nil
		}
		lean.Plan = &of
		for _, pool := range r.Pools {
			if rolling[pool.Namespace+"/"+pool.Name] {
				lean.Pools = append(lean.Pools, plan.PoolStatus{Namespace: pool.Namespace, Name: pool.Name, DesiredReplicas: pool.DesiredReplicas})
			}
		}
	}
	p.Reports, p.Digests = reports, digests
	return p
}

// mostLast bounds each list of the last word on a pull request.
const mostLast = 20

// Last is the last word on a pull request that has ended, short enough to be kept until everybody has it.
func (p Pull) Last() Pull {
	p.Unkept = p.Unkept || len(p.Reports) > 0
	p.Reports, p.Digests, p.Forecast, p.Before = nil, nil, nil, nil
	p.Differs, p.Uncompared = firstOf(p.Differs), firstOf(p.Uncompared)
	return p
}

func firstOf(list []string) []string {
	if len(list) <= mostLast {
		return list
	}
	return append(slices.Clone(list[:mostLast-1]), fmt.Sprintf("and %d more", len(list)-mostLast+1))
}

// Bytes returns the approximate size of the reports of a pull request.
func (p Pull) Bytes() (n int) {
	found := func(l diag.List) {
		for _, d := range l {
			n += 300 + len(d.Summary) + len(d.Detail)
		}
	}
	if p.Forecast != nil {
		n += 500
		if t := p.Forecast.Timeline; t != nil {
			n += 64*len(t.Points) + 200*(len(t.Pools)+len(t.Milestones)+len(t.Calls)+len(t.Waiting)+len(t.Assumptions))
		}
	}
	for _, r := range p.Reports {
		n += 500 + 64*len(r.Pools)
		if found(r.Diagnostics); r.Plan == nil {
			continue
		}
		found(r.Plan.Diagnostics)
		for _, s := range r.Plan.Steps {
			n += 500 + len(s.Reason)
			for _, c := range s.Changes {
				from, _ := c.From.(string)
				to, _ := c.To.(string)
				n += 300 + len(from) + len(to)
			}
		}
	}
	return n
}

// KeptPlans bounds what the plans of all pull requests may hold that are shown, in
// bytes.
const KeptPlans = 24 << 20

// Targets returns the number of targets that the pull request affects, and the number of all
// targets.
func (p Pull) Targets() (affected, all int) {
	affected = len(p.Reports) + len(p.Gone)
	return affected, affected + p.Unaffected
}

func (p Pull) Ended() bool { return p.State == PullMerged || p.State == PullClosed }

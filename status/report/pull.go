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

// PullState is the state of a pull request (on GitLab, a merge request).
type PullState string

// The states of a pull request. The last two are final.
const (
	// PullPlanned has a plan: merging it changes something.
	PullPlanned PullState = "planned"
	// PullUnaffected changes nothing that any target renders.
	PullUnaffected PullState = "unaffected"
	// PullConflict cannot be merged cleanly.
	PullConflict PullState = "conflict"
	// PullWaiting comes from a fork or is a draft, and needs permission before weir plans it.
	PullWaiting PullState = "waiting"
	// PullFailing cannot be rendered or planned.
	PullFailing PullState = "failing"
	PullMerged  PullState = "merged"
	PullClosed  PullState = "closed"
)

// Pull is the report of a pull request, for the status of its commit, its comment and the page. It does not
// change after it has been published.
type Pull struct {
	// Source is the source's name.
	Source string
	Number int64
	// Title, Author and WebURL come from the forge.
	Title, Author, WebURL string
	// HeadSHA is the proposed commit. BaseSHA is the commit of BaseRef on which the plan is based, or "".
	HeadSHA, BaseRef, BaseSHA string
	// Fork says that the head commit is in another repository.
	Fork  bool
	State PullState
	// Reason is the reason why the pull request waits, conflicts, fails or was closed, with the remedy.
	Reason string
	// Reports are the reports of the affected targets, with origins.
	Reports []*plan.Report
	// Before lists, for each target, the FindingKeys of the findings that the followed commit has too.
	Before map[string][]string `json:"-"`
	// Gone lists the targets that the pull request removes.
	Gone []string
	// Unaffected is the number of targets that the pull request does not change.
	Unaffected int
	// Digest covers all plans together, "" without a plan. Digests maps targets to the digests of their
	// plans; if it is empty, the digests come from the reports.
	Digest  string
	Digests map[string]string
	// Approved names the user who approved the plan, or "". AsReviewed says that at least one target holds
	// its steps until the approval.
	Approved   string
	AsReviewed bool
	// Stale is the reason why weir can no longer apply exactly this plan, "" if it can.
	Stale string
	// PlannedAt is the time of the plan. Only the page shows it, so that equal plans have equal comments.
	PlannedAt time.Time
	// MergeSHA is the commit that the merge created, "" before the merge.
	MergeSHA string
	// After the merge, Compared says that weir compared the plan of the merge with the reviewed plan.
	// Differs lists the differences, and Uncompared the parts that weir cannot compare.
	Compared            bool
	Differs, Uncompared []string
	// PageURL is the address of the pull request on weir's page, or "".
	PageURL string
	// Unkept says that this process no longer has the reports in memory.
	Unkept bool
	// Forecast is the simulation of the change over time; nil if it is unknown.
	Forecast *Forecast
}

// Forecast is the simulation of a pull request's change over time.
type Forecast struct {
	// Timeline is nil if the simulation failed for the reason in Failed, or if it would take longer than a
	// plan may wait. A user can then run Command.
	Timeline *timeline.Timeline `json:"timeline,omitempty"`
	Command  string             `json:"command,omitempty"`
	Failed   string             `json:"failed,omitempty"`
}

// Lean returns a pull request with only the parts of its reports that are shown, without the inputs of
// their plans, such as renders and machines.
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

// mostLast bounds each list in the result of Pull.Last.
const mostLast = 20

// Last returns the final report of an ended pull request. It is short enough to be kept until it was
// delivered everywhere.
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

// KeptPlans is the maximum total size in bytes of the plans of all shown pull requests.
const KeptPlans = 24 << 20

// Targets returns the number of targets that the pull request affects, and the number of all
// targets.
func (p Pull) Targets() (affected, all int) {
	affected = len(p.Reports) + len(p.Gone)
	return affected, affected + p.Unaffected
}

func (p Pull) Ended() bool { return p.State == PullMerged || p.State == PullClosed }

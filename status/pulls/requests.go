package pulls

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// pullRequests contains the relevant pull requests of a source, and shows their states. Only Run uses it.
type pullRequests struct {
	records
	log    *slog.Logger
	images *images
	// open contains the pull requests into the followed branch.
	open openPulls
	// left contains pull requests that are no longer open, but still have stored data. They are not shown
	// as open.
	left map[int64]left
	// kept is the maximum total size in bytes of all shown plans.
	kept int
}

// openPulls are the pull requests into the followed branch, by number.
type openPulls map[int64]*openPull

// numbers returns the pull requests in ascending order.
func (o openPulls) numbers() []int64 { return slices.Sorted(maps.Keys(o)) }

// oldestFirst returns the pull requests in the order of their last plans.
func (o openPulls) oldestFirst() []int64 {
	return slices.SortedFunc(maps.Keys(o), func(a, b int64) int {
		return cmp.Or(o[a].planned.Compare(o[b].planned), cmp.Compare(a, b))
	})
}

// read reads the records of an earlier process.
func (ps *pullRequests) read() error {
	known, err := ps.all()
	if err != nil {
		return err
	}
	for _, r := range known {
		if r.Left {
			ps.left[r.Number] = left{record: r}
			continue
		}
		ps.open[r.Number] = &openPull{pr: forge.PullRequest{Number: r.Number, HeadSHA: r.Seen}, record: r}
	}
	return nil
}

// update adds an open pull request, or updates it from the forge.
func (ps *pullRequests) update(pr forge.PullRequest) {
	k := ps.open[pr.Number]
	if k == nil {
		k = &openPull{record: record{Number: pr.Number, Comment: ps.left[pr.Number].Comment}}
		delete(ps.left, pr.Number)
		ps.open[pr.Number] = k
	}
	k.pr, k.MergeSHA, k.MergedAt = pr, "", time.Time{}
	if k.Seen == pr.HeadSHA {
		k.label(ps.Policy, false)
		return
	}
	k.drop()
	k.Seen, k.SeenAt, k.tries, k.due, k.slow, k.heavy = pr.HeadSHA, pr.UpdatedAt, 0, time.Time{}, false, false
	k.label(ps.Policy, true)
	ps.save(k)
}

// show shows a new state of a pull request, and records it: first the images of its plan, so that a merge
// always finds them. An approval of another digest ends.
func (ps *pullRequests) show(k *openPull, p report.Pull) {
	p.Source, p.Number = ps.Source, k.Number
	p.Title, p.Author, p.WebURL = k.pr.Title, k.pr.Author, k.pr.WebURL
	p.Fork = k.pr.Fork
	p.HeadSHA, p.BaseRef, p.MergeSHA = k.pr.HeadSHA, k.pr.BaseRef, k.MergeSHA
	p.PlannedAt = k.planned
	if ps.PageURL != "" {
		p.PageURL = fmt.Sprintf("%s/pulls/%s/%d", strings.TrimSuffix(ps.PageURL, "/"), url.PathEscape(ps.Source), k.Number)
	}
	if p.Digest != k.Digest || p.Digest == "" {
		k.Approved = ""
	}
	p.Approved, p.Unkept = k.Approved, false
	again := len(p.Reports) > 0 && slices.Equal(p.Reports, k.shown.Reports) // with a different title only
	p = p.Lean()
	k.shown, k.bytes = p, p.Bytes()
	if !again {
		ps.images.storeShown(k, p)
	}
	ps.Display.Show(p)
	k.recordPlan(p)
	ps.save(k)
	ps.boundPlans()
}

// boundPlans drops the oldest plans if all plans together are too large.
func (ps *pullRequests) boundPlans() {
	held := 0
	for _, number := range slices.Backward(ps.open.oldestFirst()) {
		k := ps.open[number]
		if held += k.bytes; held > ps.kept && k.bytes > 0 {
			held -= k.bytes
			k.shown.Reports, k.shown.Forecast, k.shown.Unkept, k.bytes = nil, nil, true, 0
		}
	}
}

// explains returns a function that reports whether another pull request showed the plan of a target. The
// other pull request must be open, or be merged by the same commit.
func (ps *pullRequests) explains(k *openPull, at commit) func(target, digest string) bool {
	return func(target, digest string) bool {
		if slices.Contains(at.Reviewed[target], digest) {
			return true
		}
		for _, other := range ps.open {
			for _, r := range append(slices.Clone(other.Earlier), other.reviewed) {
				if other != k && r.Digests[target] == digest {
					return true
				}
			}
		}
		return false
	}
}

// readAll records that all comments on the current heads were read.
func (ps *pullRequests) readAll() {
	for _, k := range ps.open {
		if k.ReadAt != k.Seen {
			k.ReadAt = k.Seen
			ps.save(k)
		}
	}
}

// planAgain requests a new plan for every pull request that has a plan or is being planned.
func (ps *pullRequests) planAgain() {
	for _, k := range ps.open {
		k.asked = k.asked || k.shown.State != "" || k.planning != nil
	}
}

// states counts the open pull requests by state.
func (ps *pullRequests) states() map[report.PullState]int {
	open := map[report.PullState]int{}
	for _, k := range ps.open {
		open[k.shown.State]++
	}
	return open
}

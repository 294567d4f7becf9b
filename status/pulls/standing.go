package pulls

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
)

// standings contains the last reported state of targets, and the time at which it changed.
type standings struct {
	mu    sync.Mutex // guards the fields below
	live  map[string]string
	moved map[string]time.Time
	// found contains the findings of targets at the followed commit.
	found map[string][]string
}

func newStandings() *standings {
	return &standings{live: map[string]string{}, moved: map[string]time.Time{}, found: map[string][]string{}}
}

// record processes the report of a pass.
func (s *standings) record(r *plan.Report, now time.Time) {
	seen := standing(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.live[r.Target]; known && last != seen {
		s.moved[r.Target] = now
	}
	s.live[r.Target], s.found[r.Target] = seen, report.FindingKeys(r)
}

// before returns the findings of a pull request's plans that the followed commit also has.
func (s *standings) before(reports []*plan.Report) map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]string{}
	for _, r := range reports {
		had := s.found[r.Target]
		both := slices.DeleteFunc(report.FindingKeys(r), func(key string) bool { return !slices.Contains(had, key) })
		if len(both) > 0 {
			out[r.Target] = both
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// forget forgets a removed target.
func (s *standings) forget(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, target)
	delete(s.moved, target)
	delete(s.found, target)
}

// dirty returns the number of targets that have changed since a pull request was planned.
func (s *standings) dirty(k *openPull) (n int) {
	if k.review == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, target := range k.review.Touched {
		if at, ok := s.moved[target]; ok && !at.Before(k.planned) {
			n++
		}
	}
	return n
}

// standing returns all data outside of Git that a plan of the target depends on.
func standing(r *plan.Report) string {
	var b strings.Builder
	if r.Err != nil {
		b.WriteString("unread")
	}
	if r.Plan != nil {
		b.WriteString(r.Plan.Digest())
	}
	for _, o := range r.Outcomes {
		if o.Status == step.Done {
			fmt.Fprintf(&b, " %s %s %s", o.Step.Verb, o.Step.Resource, o.Step.Name)
		}
	}
	return b.String()
}

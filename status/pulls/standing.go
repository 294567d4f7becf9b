package pulls

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// standings are how targets stood when they were seen last, and when that changed.
type standings struct {
	mu    sync.Mutex // guards what follows
	live  map[string]string
	moved map[string]time.Time
}

// take takes in what a pass found.
func (s *standings) take(r *plan.Report, now time.Time) {
	seen := standing(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.live[r.Target]; known && last != seen {
		s.moved[r.Target] = now
	}
	s.live[r.Target] = seen
}

// forget lets go of a target that has gone.
func (s *standings) forget(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, target)
	delete(s.moved, target)
}

// dirty counts the targets that moved since a pull request was planned.
func (s *standings) dirty(k *work) (n int) {
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

// standing is what a plan of the target depends on beside Git.
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

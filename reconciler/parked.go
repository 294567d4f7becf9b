package reconciler

import (
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
)

// parking is a pool whose steps AWS refused.
type parking struct {
	digest string
	until  time.Time
	err    *observed.Error
}

// How long refused steps stay parked while the plan asks the same.
const (
	parkInvalid = time.Hour
	parkDenied  = 10 * time.Minute
	parkUnknown = 10 * time.Minute
)

// parkedFor is how long steps stay parked that AWS refused so, 0 where asking again may
// help.
func parkedFor(err *observed.Error) time.Duration {
	switch err.Kind {
	case observed.Invalid:
		if err.Unknown != (observed.UnknownName{}) {
			return parkUnknown // which may be made outside Git
		}
		return parkInvalid
	case observed.Denied, observed.Quota, observed.AlreadyThere:
		return parkDenied
	}
	return 0
}

// refusal returns the error with which AWS refused these very steps a short
// while ago: asking again would get the same answer and spend the rate limit.
func (s *Scope) refusal(key, digest string) *observed.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.parked[key]
	if !ok || p.digest != digest || s.now().After(p.until) {
		return nil
	}
	return p.err
}

// park parks steps that AWS will refuse however often weir asks, and reports whether
// err is of that kind.
func (s *Scope) park(key, digest string, err *observed.Error) bool {
	wait := parkedFor(err)
	if wait == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parked == nil {
		s.parked = map[string]parking{}
	}
	s.parked[key] = parking{digest: digest, until: s.now().Add(wait), err: err}
	return true
}

func (s *Scope) unpark(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parked, key)
}

// noteParked says, with the parked steps and for their pools, what makes weir try them
// again. A command that works on a PATH tries each time that it is called.
func noteParked(policy basis.Policy, r *plan.Report) {
	if policy.OwnTargetOnly {
		return
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if !o.Parked || o.Err == nil {
			continue
		}
		o.Lift = "weir leaves it alone for " + in(parkedFor(o.Err)) + "; a commit that changes it, or weir reconcile " + r.Target + " --retry, makes weir try at once"
		for j := range r.Pools {
			plan.NoteRefused(&r.Pools[j], o)
		}
		for j := range r.Governed {
			if p := &r.Governed[j]; p.Pool == o.Step.Pool && p.Failed == "" && !o.Step.Stops {
				p.Failed = "AWS refused to " + string(o.Step.Verb) + " the " + string(o.Step.Resource) + " " + o.Step.Name + ": " + o.Err.Error()
			}
		}
	}
}

func in(wait time.Duration) string {
	if wait == time.Hour {
		return "an hour"
	}
	return strconv.Itoa(int(wait.Minutes())) + " minutes"
}

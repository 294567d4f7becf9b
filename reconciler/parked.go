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
	// changed counts how often in a row weir did not send the steps, because the resource
	// was not as observed.
	changed int
}

// How long refused steps stay parked while the plan asks the same.
const (
	parkInvalid = time.Hour
	parkDenied  = 10 * time.Minute
	parkUnknown = 10 * time.Minute
)

// A write that weir did not send, because another read right before it showed another
// resource, is planned again from what the next pass observes. If that asks for the same,
// one of AWS's answers is stale: each further attempt waits twice as long.
const (
	changedFirst = 5 * time.Second
	changedMost  = 5 * time.Minute
)

func changedFor(times int) time.Duration {
	return min(changedFirst<<min(times-1, 10), changedMost)
}

// parkedFor returns the time for which steps stay parked that AWS refused so, 0 if another attempt
// may help.
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

// park parks steps that AWS will refuse however often weir asks, and those that weir did not
// send because the resource had changed. It reports whether err is of that kind.
func (s *Scope) park(key, digest string, err *observed.Error) bool {
	wait, changed := parkedFor(err), 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if err.Code == observed.CodeChanged {
		if before := s.parked[key]; before.digest == digest {
			changed = before.changed
		}
		changed++
		wait = changedFor(changed)
	}
	if wait == 0 {
		return false
	}
	if s.parked == nil {
		s.parked = map[string]parking{}
	}
	s.parked[key] = parking{digest: digest, until: s.now().Add(wait), err: err, changed: changed}
	return true
}

func (s *Scope) unpark(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parked, key)
}

// noteParked says, with the parked steps and for their pools, what makes weir try them
// again. A command that works on a PATH tries each time that it is called.
func (s *Scope) noteParked(policy basis.Policy, r *plan.Report) {
	if policy.OwnTargetOnly {
		return
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if !o.Parked || o.Err == nil {
			continue
		}
		wait := in(parkedFor(o.Err))
		if o.Err.Code == observed.CodeChanged {
			wait = "a while, each time twice as long, up to " + in(changedMost)
		}
		o.Lift = "weir leaves it alone for " + wait + "; a commit that changes it, or weir reconcile " + r.Target + " --retry, makes weir try at once"
		if o.Err.Code == observed.CodeChanged && s.changedTimes(poolKey(r.Target, o.Step.Owner())) < 2 {
			continue // once is no fault: somebody changed it meanwhile
		}
		for j := range r.Pools {
			plan.NoteRefused(&r.Pools[j], o)
		}
		for j := range r.Governed {
			if p := &r.Governed[j]; p.Pool == o.Step.Pool && p.Failed == "" && !o.Step.Stops && o.Err.Code != observed.CodeChanged {
				p.Failed = "AWS refused to " + string(o.Step.Verb) + " the " + string(o.Step.Resource) + " " + o.Step.Name + ": " + o.Err.Error()
			}
		}
	}
}

// changedTimes returns how often in a row a pool's steps were held back.
func (s *Scope) changedTimes(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked[key].changed
}

func in(wait time.Duration) string {
	if wait == time.Hour {
		return "an hour"
	}
	return strconv.Itoa(int(wait.Minutes())) + " minutes"
}

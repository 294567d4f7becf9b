package refusals

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// refused are steps that AWS refused or that weir did not send.
type refused struct {
	digest string
	until  time.Time
	err    *observed.Error
	// unsent counts how often in a row weir did not send the steps because the resource had changed.
	unsent int
}

// The times for which refused steps wait while the plan asks for the same.
const (
	waitInvalid = time.Hour
	waitDenied  = 10 * time.Minute
	waitUnknown = 10 * time.Minute
)

// If another read right before a write shows a different resource, weir does not send the write, and
// plans again from what the next pass observes. If that plan asks for the same, one of AWS's answers
// is stale: each further attempt waits twice as long, up to UnsentMost.
const (
	unsentFirst = 5 * time.Second
	UnsentMost  = 5 * time.Minute
)

func unsentFor(times int) time.Duration {
	return min(unsentFirst<<min(times-1, 10), UnsentMost)
}

// over reports whether an entry can be forgotten. The number of unsent attempts outlives the wait, so
// that the next wait is longer.
func (e refused) over(now time.Time) bool {
	return now.After(e.until) && (e.unsent == 0 || now.After(e.until.Add(UnsentMost)))
}

// WaitFor returns the time for which steps wait that AWS refused with an error. It is zero if another
// attempt may help.
func WaitFor(err *observed.Error) time.Duration {
	switch err.Kind {
	case observed.Invalid:
		if err.Unknown != (observed.UnknownName{}) {
			return waitUnknown // the name may be created outside Git
		}
		return waitInvalid
	case observed.Denied, observed.Quota, observed.AlreadyThere:
		return waitDenied
	}
	return 0
}

// Refused returns the error of steps that must not be tried again yet: another attempt would get the
// same answer and use up the rate limit. digest identifies what the steps ask for.
func (r *Record) Refused(key Key, digest string, now time.Time) *observed.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.refused[key]
	if !ok || e.digest != digest || now.After(e.until) {
		return nil
	}
	return e.err
}

// Refuse adds steps that failed with an error, and reports whether they must wait: AWS would refuse
// them as often as weir asks, or weir did not send them because the resource had changed.
func (r *Record) Refuse(key Key, digest string, err *observed.Error, now time.Time) bool {
	wait, unsent := WaitFor(err), 0
	r.mu.Lock()
	defer r.mu.Unlock()
	if err.Code == observed.CodeChanged {
		if before := r.refused[key]; before.digest == digest {
			unsent = before.unsent
		}
		unsent++
		wait = unsentFor(unsent)
	}
	if wait == 0 {
		return false
	}
	r.refuse(key, refused{digest, now.Add(wait), err, unsent})
	return true
}

func (r *Record) refuse(key Key, e refused) {
	if r.refused == nil {
		r.refused = map[Key]refused{}
	}
	r.refused[key] = e
}

// Succeeded forgets the refused steps of a key, because its steps ran.
func (r *Record) Succeeded(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refused, key)
}

// Unsent returns how often in a row weir did not send the steps of a key.
func (r *Record) Unsent(key Key) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[key].unsent
}

package commits

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// lateWrites holds writes that got no answer and were not seen on the forge. A slow forge may
// execute such a write long after, and then shows it: the newest status of a context is the last
// executed write. So the next status of the context counts as delivered only once it was read after
// lateAfter.
type lateWrites map[contextID]lateWrite

type contextID struct{ sha, context string }

type lateWrite struct {
	status forge.CommitStatus
	until  time.Time
}

// lateAfter bounds the time that a forge may take for a write that no caller waits for any more.
const lateAfter = 2 * time.Minute

func (j job) id() contextID { return contextID{j.sha, j.want.Context} }

// mayBeLate reports whether a write that failed may still be under way: the connection
// was there, and no answer of the forge's own came.
func mayBeLate(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var refusal *forgehttp.Error
	if !errors.As(err, &refusal) {
		return true
	}
	return refusal.Status == 0 && refusal.After == 0 || refusal.Status == http.StatusBadGateway || refusal.Status == http.StatusGatewayTimeout
}

// add notes a write. Times are the same for all of a minute, so that one reading settles
// them.
func (l lateWrites) add(j job, now time.Time) {
	l[j.id()] = lateWrite{j.want, lateUntil(now)}
}

func lateUntil(now time.Time) time.Time {
	return now.Add(lateAfter).Truncate(time.Minute).Add(time.Minute)
}

// read forgets the writes of a commit that were taken.
func (l lateWrites) read(sha string, known map[string]forge.CommitStatus) {
	for id, w := range l {
		if id.sha == sha && known[id.context] == w.status {
			delete(l, id)
		}
	}
}

// over reports whether a context must be read now, because no write of it is late any more.
func (l lateWrites) over(j job, now time.Time) bool {
	w, doubt := l[j.id()]
	if !doubt || now.Before(w.until) {
		return false
	}
	for id, other := range l { // of the same reading
		if id.sha == j.sha && !now.Before(other.until) {
			delete(l, id)
		}
	}
	return true
}

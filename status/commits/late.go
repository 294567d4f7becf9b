package commits

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// lateWrites contains writes without a response that were not found on the forge. A slow forge may execute
// such a write much later. The forge then shows that write, because the newest status of a context is the
// last executed one. So the next status of the context counts as delivered only after weir has read it on
// the forge, later than lateAfter.
type lateWrites map[contextID]lateWrite

type contextID struct{ sha, context string }

type lateWrite struct {
	status forge.CommitStatus
	until  time.Time
}

// lateAfter is the time within which a forge is expected to execute a write whose caller no longer waits.
const lateAfter = 2 * time.Minute

func (j job) id() contextID { return contextID{j.sha, j.want.Context} }

// mayBeLate reports whether a failed write may still be executed: there was a connection, but no response
// from the forge itself.
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

// add records a write. All writes of one minute get the same time, so that one read covers them.
func (l lateWrites) add(j job, now time.Time) {
	l[j.id()] = lateWrite{j.want, lateUntil(now)}
}

func lateUntil(now time.Time) time.Time {
	return now.Add(lateAfter).Truncate(time.Minute).Add(time.Minute)
}

// read forgets the writes of a commit that the forge has executed.
func (l lateWrites) read(sha string, known map[string]forge.CommitStatus) {
	for id, w := range l {
		if id.sha == sha && known[id.context] == w.status {
			delete(l, id)
		}
	}
}

// expired reports whether a context must be read now, because its late writes can no longer be executed.
func (l lateWrites) expired(j job, now time.Time) bool {
	w, doubt := l[j.id()]
	if !doubt || now.Before(w.until) {
		return false
	}
	for id, other := range l { // the same read covers them
		if id.sha == j.sha && !now.Before(other.until) {
			delete(l, id)
		}
	}
	return true
}

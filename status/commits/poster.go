package commits

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/outbox"
	"github.com/weir-gitops/weir/status/wording"
)

// poster writes the wanted statuses of one source to its forge.
type poster struct {
	source   string
	o        *Options
	forge    Forge
	box      *outbox.Outbox
	statuses *statuses
	journal  *journal
	// doubted says that another weir may have written since known was read.
	doubted atomic.Bool

	// Only the worker uses known and late. known contains the statuses of commits, as last read or
	// written. weir reads a commit before its first write to it.
	known map[string]map[string]forge.CommitStatus
	late  lateWrites
}

// forget removes the data about a commit.
func (p *poster) forget(sha string) {
	delete(p.known, sha)
	maps.DeleteFunc(p.late, func(id contextID, _ lateWrite) bool { return id.sha == sha })
}

// ours reports whether this weir writes the statuses of the source.
func (p *poster) ours() bool { return p.journal.storeOf(p.source) != nil }

// forgeDelays are the times between attempts of a write to a forge: they grow for about half an hour, and
// then stay at 15 minutes.
var forgeDelays = outbox.Delays{First: 500 * time.Millisecond, Longest: 5 * time.Minute, Many: 15, Slow: 15 * time.Minute}

const (
	// RequestTimeout bounds one request to a forge.
	RequestTimeout = 20 * time.Second
	// MissingTries bounds the attempts of less important writes to a commit or pull request that the forge
	// reports as missing. Gitea does so for about a second after a push, GitHub sometimes for longer.
	MissingTries = 7
	// LastingTries bounds the attempts for verdicts and for statuses that must not stay pending. It allows
	// a day of attempts at the slow rate of forgeDelays.
	LastingTries = 15 + 96
)

// work posts until ctx ends; when draining, until nothing is left.
func (p *poster) work(ctx context.Context, drain bool) {
	outbox.Work(ctx, p.box, drain, p.next, func(ctx context.Context, j job) {
		// The journal must be written before the status. Otherwise, a crash could leave a pending status
		// behind. So nothing is posted until the journal can be written.
		if err := p.journal.save(false); err != nil {
			p.o.Logger.Error("write of the status journal failed", "error", err)
			p.box.Failed(nil, outbox.Failure{After: 10 * time.Second})
			return
		}
		if p.box.Wait(ctx) == nil && p.ours() {
			if p.late.expired(j, p.o.Now()) {
				delete(p.known, j.sha) // the forge must be read again
			}
			if p.doubted.Swap(false) {
				clear(p.known)
			}
			if !drain {
				var end context.CancelFunc
				ctx, end = lasting(ctx)
				defer end()
			}
			if err := p.post(ctx, j); !errors.Is(err, errNotOurs) {
				p.done(j, err)
			}
		}
	})
}

// lastMoments is the time that a write in progress may continue during shutdown. A write that is cut off
// may still take effect, and later writes are then in doubt for minutes.
const lastMoments = 2 * time.Second

// lasting returns a context that ends lastMoments after ctx.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(lastMoments, cancel)
		context.AfterFunc(own, func() { timer.Stop() })
	})
	return own, func() { stop(); cancel() }
}

// next returns the status to post now. If nothing is due, wait is the time until there may be one, 0 if no
// status is wanted. Verdicts come before pending statuses, and the aggregate before targets. A pending
// status that was not posted before its verdict is never posted.
func (p *poster) next() (found job, wait time.Duration, ok bool) {
	if !p.ours() {
		return job{}, 0, false
	}
	aggregate := p.statuses.contexts.aggregate()
	score := func(j job) (n int) {
		if j.want.State.Final() {
			n = 2
		}
		if j.want.Context == aggregate {
			n++
		}
		return n
	}
	found, wait, ok, forgotten := p.statuses.next(p.box, func(a, b job) bool {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.want.Context, b.want.Context)) < 0
	})
	for _, sha := range forgotten {
		p.forget(sha)
	}
	return found, wait, ok
}

// errUnchanged means that the commit already has the status.
var errUnchanged = errors.New("status is unchanged")

// errKept means that the verdict on the commit stays until the next one.
var errKept = errors.New("status is kept")

// errNotOurs means that another weir now writes the statuses of the source.
var errNotOurs = errors.New("another weir writes the statuses of the source")

// post reads the commit's statuses once, and writes the ones that differ. If it is unclear whether a write
// took effect, the next post reads again.
func (p *poster) post(ctx context.Context, j job) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	known, read := p.known[j.sha]
	if !read {
		var err error
		known, err = p.forge.Statuses(ctx, j.sha)
		var refusal *forgehttp.Error
		switch {
		case err == nil:
			p.known[j.sha] = known
			p.late.read(j.sha, known)
		case errors.As(err, &refusal) && (refusal.Fault == forgehttp.FaultDenied || refusal.Fault == forgehttp.FaultRefused):
			// A token may have permission to write only.
			known = map[string]forge.CommitStatus{}
		default:
			return err
		}
	}
	has := known[j.want.Context]
	if has == j.want {
		return errUnchanged
	}
	if j.keep && (has.State == forge.Success || has.State == forge.Failure) {
		return errKept
	}
	if !p.ours() { // the read may have taken long
		return errNotOurs
	}
	if err := p.forge.SetStatus(ctx, j.sha, j.want); err != nil {
		if Unclear(err) {
			delete(p.known, j.sha)
		}
		if mayBeLate(err) {
			p.late.add(j, p.o.Now())
		}
		return err
	}
	known[j.want.Context] = j.want
	p.known[j.sha] = known
	return nil
}

// Unclear reports whether a failed write may have taken effect: there was no response, or the forge itself
// did not refuse it.
func Unclear(err error) bool {
	var refusal *forgehttp.Error
	return !errors.As(err, &refusal) || refusal.Status/100 != 4
}

// ending is the result of a write of a status.
type ending string

const (
	taken    ending = "the commit has the status"
	kept     ending = "the commit keeps its verdict"
	doubtful ending = "the commit may have the status"
	refused  ending = "the commit does not have the status"
)

func endingOf(err error) ending {
	switch {
	case err == nil, errors.Is(err, errUnchanged):
		return taken
	case errors.Is(err, errKept):
		return kept
	case Unclear(err):
		return doubtful
	}
	return refused
}

// shows reports whether the commit may show a status after its write. A pending status must not stay, so it
// counts in case of doubt.
func (e ending) shows(state forge.CommitState) bool {
	return e == taken || e == doubtful && state == forge.Pending
}

// refusalOf returns the forge's refusal. Any other failure counts as temporary.
func (p *poster) refusalOf(err error) *forgehttp.Error {
	var refusal *forgehttp.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return &forgehttp.Error{Forge: p.forge.Profile().Label, Fault: forgehttp.FaultBusy, Message: err.Error(), Err: err}
}

// done records the result of posting a job: in the metrics, in the track of its context, and in the outbox,
// which decides about another try.
func (p *poster) done(j job, err error) {
	is := endingOf(err)
	failed := is == doubtful || is == refused
	result := "written"
	if failed {
		result = string(p.refusalOf(err).Fault)
	} else if err != nil {
		result = "unchanged"
	}
	if p.o.Wrote != nil {
		p.o.Wrote(p.forge.Profile().Label, j.want.State, result)
	}
	p.statuses.posted(j, is.shows(j.want.State), func(ct *contextTrack) (stale bool) {
		if failed {
			p.failed(j, ct, p.refusalOf(err))
			return false
		}
		if p.box.Succeeded() {
			p.o.Logger.Info("commit statuses are accepted again", "source", p.source, "forge", p.forge.Profile().Label)
		}
		if ct != nil {
			p.delivered(j, ct)
		}
		return true
	})
}

// delivered records that a commit has the status that is wanted. It is written again later if an
// earlier write may still take effect.
func (p *poster) delivered(j job, ct *contextTrack) {
	if p.o.Now().Before(ct.late) {
		p.late[j.id()] = lateWrite{forge.CommitStatus{Context: j.want.Context}, ct.late}
		ct.late = time.Time{}
	}
	late, doubt := p.late[j.id()]
	if !doubt {
		ct.Delivered = true
		return
	}
	ct.written = true
	ct.entry.Delay(late.until)
}

// failed records that a write failed. ct is nil if another status is now wanted.
func (p *poster) failed(j job, ct *contextTrack, refusal *forgehttp.Error) {
	failure, entry := FailureOf(refusal), (*outbox.Entry)(nil)
	if ct != nil {
		entry = &ct.entry
		if refusal.Fault == forgehttp.FaultMissing {
			failure.Most = ct.mostTries()
		}
	}
	outcome := p.box.Failed(entry, failure)
	log := p.o.Logger.With("source", p.source, "forge", p.forge.Profile().Label, "revision", wording.Short(j.sha),
		"context", j.want.Context, "state", string(j.want.State), "error", p.o.Redact.Text(refusal.Error()))
	switch outcome {
	case outbox.FirstDenied:
		// One refusal applies to all contexts, because the forge refuses the token.
		log.Error("commit statuses are refused; they are tried again until the token is accepted")
	case outbox.Denied:
		log.Debug("commit statuses are still refused")
	case outbox.GivenUp:
		log.Error("commit status is given up", "tries", entry.Tries())
	case outbox.FirstAgain:
		log.Warn("commit status is tried again", "tries", entry.Tries())
	case outbox.Again:
		log.Debug("commit status is tried again", "tries", entry.Tries())
	case outbox.Superseded: // another status is now wanted
	}
}

// FailureOf translates a forge's refusal for an outbox.
func FailureOf(refusal *forgehttp.Error) outbox.Failure {
	return outbox.Failure{After: refusal.After, Denied: refusal.Fault == forgehttp.FaultDenied, Final: refusal.Fault == forgehttp.FaultRefused}
}

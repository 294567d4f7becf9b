package forge

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Prefix is the path prefix of deliveries. The source's name follows it.
const Prefix = "/hooks/"

// Source is the part of a source that deliveries use. Its methods must not block.
type Source interface {
	// Follows reports whether the source follows a ref, given by its full name.
	Follows(ref string) bool
	// At returns the current commit of the source, empty if none exists.
	At() string
	// Nudge makes the source fetch its repository.
	Nudge()
}

// Pulls is the part of a source's pull requests that deliveries use. Its methods must not block. Changed is
// called at once for the first delivery about a pull request, and then at most once a second.
type Pulls interface {
	Changed(number int64)
	// Heard receives the text of a comment, at once for each delivery that contains one.
	Heard(number int64, comment Heard)
}

// Hook configures the deliveries for one source.
type Hook struct {
	Kind Kind
	// SecretFile contains the secrets of the signatures, one per line.
	SecretFile string
	// Address is the address of the repository, empty if any repository is accepted.
	Address string
	Source  Source
	// Pulls receives changes of pull requests; it may be nil.
	Pulls Pulls
	// Self is the login with which weir writes comments. Its own comments are ignored.
	Self string
}

// Result is the result of a delivery.
type Result string

// The results of deliveries.
const (
	Accepted      Result = "accepted"
	Repeated      Result = "repeated" // reports nothing new
	Ignored       Result = "ignored"  // not relevant for the source
	Unsigned      Result = "unsigned"
	Invalid       Result = "invalid"
	TooLarge      Result = "too-large"
	Limited       Result = "limited" // too many from one address
	Busy          Result = "busy"
	Misconfigured Result = "misconfigured" // no secret is configured
)

// codes maps results to HTTP statuses. An authenticated and valid delivery gets 2xx, because forges disable
// a webhook after repeated errors.
var codes = map[Result]int{
	Accepted: http.StatusAccepted, Repeated: http.StatusOK, Ignored: http.StatusOK, Unsigned: http.StatusUnauthorized, Invalid: http.StatusBadRequest,
	TooLarge: http.StatusRequestEntityTooLarge, Limited: http.StatusTooManyRequests, Busy: http.StatusServiceUnavailable, Misconfigured: http.StatusServiceUnavailable,
}

// Options configures a Receiver.
type Options struct {
	Logger *slog.Logger
	// Received is called with the result of each delivery, for metrics; it may be nil. label is the label
	// of the forge's profile, "" if the path names no source that accepts deliveries.
	Received func(label string, result Result)
	// Origin returns the address for the rate limit of a delivery. If it is nil, that is the address of the
	// connection.
	Origin func(*http.Request) netip.Addr
}

const (
	// maxBody is the maximum size of a delivery. A larger one, such as a push of very many commits, is
	// refused, and polling finds its changes.
	maxBody = 1 << 20
	// reading is the maximum number of bodies in memory, and readWait the maximum wait for a slot.
	reading  = 32
	readWait = 5 * time.Second
	// readWithin is the timeout for receiving a body.
	readWithin = 10 * time.Second
	// waiting is the maximum number of accepted deliveries in the queue.
	waiting = 256
	// remembered is the maximum number of delivery IDs in memory.
	remembered = 4096
)

// Receiver receives deliveries for all sources. Run acts on them.
type Receiver struct {
	log         *slog.Logger
	countResult func(string, Result)
	origin      func(*http.Request) netip.Addr
	visitors    *visitors
	turns       chan struct{}
	queue       chan accepted
	warn        map[Result]*rate.Sometimes

	mu         sync.Mutex
	hooks      map[string]Hook
	deliveries *seen
	refs       map[string]map[string]namedCommit // by source and ref
}

// namedCommit is the last commit of a ref that a delivery named.
type namedCommit struct {
	commit string
	at     time.Time
}

// accepted is a hint to act on: the source fetches, the watcher of pull requests is notified, or both.
type accepted struct {
	source       string
	hint         Hint
	fetch, heard bool
}

// NewReceiver returns a Receiver without hooks.
func NewReceiver(o Options) *Receiver {
	r := &Receiver{
		log: o.Logger, countResult: o.Received, origin: o.Origin, visitors: newVisitors(), turns: make(chan struct{}, reading), queue: make(chan accepted, waiting),
		warn: map[Result]*rate.Sometimes{}, hooks: map[string]Hook{}, deliveries: newSeen(remembered), refs: map[string]map[string]namedCommit{},
	}
	if r.countResult == nil {
		r.countResult = func(string, Result) {}
	}
	if r.origin == nil {
		r.origin = peer
	}
	for result := range codes {
		r.warn[result] = &rate.Sometimes{First: 3, Interval: time.Minute}
	}
	return r
}

// Set replaces the hooks. They are keyed by the name of their source.
func (r *Receiver) Set(hooks map[string]Hook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks = hooks
	for name := range r.refs {
		if _, ok := hooks[name]; !ok {
			delete(r.refs, name)
		}
	}
}

// hook returns the current Hook of a source. Call it again after any wait, because the hooks may have been
// replaced, and sources of replaced hooks must not act any more.
func (r *Receiver) hook(source string) Hook {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hooks[source]
}

// ServeHTTP handles one delivery. Only the log contains the reason of a refusal, not the response.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "webhooks are sent with POST", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(req.URL.Path, Prefix)
	hook := r.hook(name)
	result, hint, err := r.receive(w, req, name, hook)
	r.countResult(ProfileOf(hook.Kind).Label, result)
	r.logResult(req, name, hook, result, hint, err)
	if result == Busy || result == Limited {
		w.Header().Set("Retry-After", "10")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(codes[result])
	text := http.StatusText(codes[result])
	if codes[result]/100 == 2 {
		text = string(result)
	}
	_, _ = w.Write([]byte(text + "\n")) // ignore a disconnected forge
}

// receive reads, verifies and queues a delivery. The error is only for the log.
func (r *Receiver) receive(w http.ResponseWriter, req *http.Request, name string, hook Hook) (Result, Hint, error) {
	from := r.origin(req)
	if !r.visitors.admit(from, time.Now()) {
		return Limited, Hint{}, nil
	}
	if hook.Source == nil {
		// Respond as to an unsigned delivery, so that outsiders cannot find out which sources exist.
		r.visitors.failed(from, time.Now())
		return Unsigned, Hint{}, errors.New("no source of this name takes webhooks")
	}
	body, result, err := r.read(w, req)
	if result != "" {
		return result, Hint{}, err
	}
	secrets, err := readSecrets(hook.SecretFile)
	if err != nil {
		return Misconfigured, Hint{}, err
	}
	if err := secrets.Verify(hook.Kind, req.Header, body); err != nil {
		r.visitors.failed(from, time.Now())
		return Unsigned, Hint{}, err
	}
	hint, err := decode(hook.Kind, req.Header, body)
	if err != nil {
		return Invalid, hint, err
	}
	if hook = r.hook(name); hook.Source == nil { // it was removed during the delivery
		return Ignored, hint, nil
	}
	result, err = r.judge(name, hook, hint)
	return result, hint, err
}

// read reads a body, bounded in size and time. The result is empty if the body is complete.
func (r *Receiver) read(w http.ResponseWriter, req *http.Request) ([]byte, Result, error) {
	if req.ContentLength > maxBody {
		return nil, TooLarge, nil
	}
	turn := time.NewTimer(readWait)
	defer turn.Stop()
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-turn.C:
		return nil, Busy, errors.New("too many deliveries at a time")
	case <-req.Context().Done():
		return nil, Busy, req.Context().Err()
	}
	// A server in tests may not support deadlines; the real one does.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin))
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, TooLarge, nil
	case err != nil:
		return nil, Invalid, errors.New("the body did not arrive")
	default:
		return body, "", nil
	}
}

// concerns reports whether a hint makes the source fetch, and whether the watcher is notified.
func (h Hook) concerns(hint Hint) (fetch, heard bool, err error) {
	if hint.What == "" {
		return false, false, nil
	}
	if h.Address != "" && !names(hint.Repository, h.Address) {
		return false, false, errors.New("the delivery is about another repository than the source's")
	}
	fetch = hint.What == Pushed && hint.Ref == "" || hint.Ref != "" && h.Source.Follows(hint.Ref)
	return fetch, hint.Number > 0 && h.Pulls != nil && !own(h, hint), nil
}

// judge queues a hint that may report something new. The result is Ignored, Repeated, Busy or Accepted;
// only an accepted hint is queued. A forge may repeat a delivery after Busy.
func (r *Receiver) judge(name string, hook Hook, hint Hint) (Result, error) {
	a := accepted{source: name, hint: hint}
	var err error
	if a.fetch, a.heard, err = hook.concerns(hint); !a.fetch && !a.heard {
		return Ignored, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if hint.Delivery != "" && r.deliveries.add(name+" "+hint.Delivery) {
		return Repeated, nil
	}
	if a.fetch = a.fetch && !r.known(name, hook, hint); !a.fetch && !a.heard {
		return Repeated, nil
	}
	select {
	case r.queue <- a:
	default:
		// A delivery that was not accepted may be sent again.
		r.deliveries.drop(name + " " + hint.Delivery)
		return Busy, errors.New("too many deliveries wait")
	}
	if a.fetch && hint.Commit != "" {
		if r.refs[name] == nil || len(r.refs[name]) >= waiting {
			r.refs[name] = map[string]namedCommit{}
		}
		r.refs[name][hint.Ref] = namedCommit{hint.Commit, time.Now()}
	}
	return Accepted, nil
}

// own reports whether a delivery reports one of weir's own comments. All other deliveries are accepted,
// because a person may share weir's login. Edits on GitLab are also accepted, because GitLab does not name
// their author.
func own(hook Hook, hint Hint) bool {
	return hint.What == Commented && hook.Self != "" && strings.EqualFold(hint.Sender, hook.Self) && (!ProfileOf(hook.Kind).webhook.senderIsAuthor || !hint.Comment.Edited)
}

// sameWithin is the time within which a repeated delivery with the same ref and commit is ignored, even if
// the source has not reached the commit.
const sameWithin = 30 * time.Second

// known reports whether a hint repeats the previous hint of the same ref. Deliveries have no signed ID, so
// replays are recognized by their content.
func (r *Receiver) known(name string, hook Hook, hint Hint) bool {
	last, ok := r.refs[name][hint.Ref]
	return ok && hint.Commit != "" && last.commit == hint.Commit && (time.Since(last.at) < sameWithin || hook.Source.At() == hint.Commit)
}

// logResult logs the result of a delivery. It limits the number of log lines that outsiders can cause.
func (r *Receiver) logResult(req *http.Request, name string, hook Hook, result Result, hint Hint, err error) {
	args := []any{"source", clip(name), "forge", ProfileOf(hook.Kind).Label, "result", string(result), "from", r.origin(req).String()}
	for _, a := range []struct{ key, value string }{
		{"event", hint.Event}, {"delivery", hint.Delivery}, {"repository", hint.Repository}, {"ref", hint.Ref}, {"commit", hint.Commit},
	} {
		if a.value != "" {
			args = append(args, a.key, strings.ToValidUTF8(a.value, ""))
		}
	}
	if err != nil {
		args = append(args, "error", err)
	}
	if result == Accepted || result == Repeated || result == Ignored && err == nil {
		r.log.Debug("webhook", args...)
		return
	}
	r.warn[result].Do(func() { r.log.Warn("webhook is not acted on", args...) })
}

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

// Prefix is the path below which deliveries are taken: Prefix + the source's name.
const Prefix = "/hooks/"

// Source is a source, as far as deliveries concern it. Its methods must not block.
type Source interface {
	// Follows reports whether the source follows a ref, given by its full name.
	Follows(ref string) bool
	// At is the commit that the source is at, empty without one.
	At() string
	// Nudge makes the source fetch its repository.
	Nudge()
}

// Pulls are a source's pull requests, as far as deliveries concern them. Heard must
// not block. It is called at once for the first delivery about a pull request, and
// then at most once a second.
type Pulls interface {
	Changed(number int64)
	// Heard takes the text of a comment, at once and for each delivery that has one.
	Heard(number int64, comment Heard)
}

// Hook describes how deliveries about one source arrive.
type Hook struct {
	Kind Kind
	// SecretFile holds what deliveries are signed with, one secret a line.
	SecretFile string
	// Address is the repository's, empty if any repository may be named.
	Address string
	Source  Source
	// Pulls hears of pull requests; it may be nil.
	Pulls Pulls
	// Self is the login that weir writes comments with. Its comments are no news.
	Self string
}

// Result says what became of a delivery.
type Result string

// Results.
const (
	Accepted      Result = "accepted"
	Repeated      Result = "repeated" // it says nothing that was not said before
	Ignored       Result = "ignored"  // it is about something else
	Unsigned      Result = "unsigned"
	Invalid       Result = "invalid"
	TooLarge      Result = "too-large"
	Limited       Result = "limited" // too many from one address
	Busy          Result = "busy"
	Misconfigured Result = "misconfigured" // no secret is configured
)

// codes are the HTTP statuses of results. A delivery that was authenticated and
// understood gets 2xx, or forges would end up disabling the hook.
var codes = map[Result]int{
	Accepted: http.StatusAccepted, Repeated: http.StatusOK, Ignored: http.StatusOK, Unsigned: http.StatusUnauthorized, Invalid: http.StatusBadRequest,
	TooLarge: http.StatusRequestEntityTooLarge, Limited: http.StatusTooManyRequests, Busy: http.StatusServiceUnavailable, Misconfigured: http.StatusServiceUnavailable,
}

// Options of a Receiver.
type Options struct {
	Logger *slog.Logger
	// Received is called with the outcome of each delivery, for metrics; it may be
	// nil. The label is that of the forge's profile, "" where the path names no source
	// that takes deliveries.
	Received func(label string, result Result)
	// Origin is the address whose limit a delivery uses; nil for that of its
	// connection.
	Origin func(*http.Request) netip.Addr
}

const (
	// maxBody bounds a delivery. A push of very many commits may be larger: it is
	// refused, and seen by polling.
	maxBody = 1 << 20
	// reading bounds the bodies in memory, and readWait the wait for a turn.
	reading  = 32
	readWait = 5 * time.Second
	// readWithin bounds how long a body may take to arrive.
	readWithin = 10 * time.Second
	// waiting bounds the deliveries that are accepted and not acted on yet.
	waiting = 256
	// remembered bounds the ids of deliveries that are known.
	remembered = 4096
)

// Receiver takes deliveries for all sources. Run acts on them.
type Receiver struct {
	log      *slog.Logger
	received func(string, Result)
	origin   func(*http.Request) netip.Addr
	visitors *visitors
	turns    chan struct{}
	queue    chan accepted
	warn     map[Result]*rate.Sometimes

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

// accepted is a hint that is acted on: the source fetches, the watcher hears of the
// pull request, or both.
type accepted struct {
	source       string
	hint         Hint
	fetch, heard bool
}

// NewReceiver returns a Receiver without hooks.
func NewReceiver(o Options) *Receiver {
	r := &Receiver{
		log: o.Logger, received: o.Received, origin: o.Origin, visitors: newVisitors(), turns: make(chan struct{}, reading), queue: make(chan accepted, waiting),
		warn: map[Result]*rate.Sometimes{}, hooks: map[string]Hook{}, deliveries: newSeen(remembered), refs: map[string]map[string]namedCommit{},
	}
	if r.received == nil {
		r.received = func(string, Result) {}
	}
	if r.origin == nil {
		r.origin = peer
	}
	for result := range codes {
		r.warn[result] = &rate.Sometimes{First: 3, Interval: time.Minute}
	}
	return r
}

// Set replaces the hooks, by the name of their source.
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

// hook returns the current Hook of a source. After any wait it has to be called again: the hooks
// may have been replaced meanwhile, and what the replaced ones lead to must not act any more.
func (r *Receiver) hook(source string) Hook {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hooks[source]
}

// ServeHTTP takes one delivery. The answer does not say why a delivery was refused: the
// log does.
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
	r.received(ProfileOf(hook.Kind).Label, result)
	r.note(req, name, hook, result, hint, err)
	if result == Busy || result == Limited {
		w.Header().Set("Retry-After", "10")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(codes[result])
	text := http.StatusText(codes[result])
	if codes[result]/100 == 2 {
		text = string(result)
	}
	_, _ = w.Write([]byte(text + "\n")) // the forge is gone
}

// receive reads, checks and queues a delivery. The error is for the log alone.
func (r *Receiver) receive(w http.ResponseWriter, req *http.Request, name string, hook Hook) (Result, Hint, error) {
	from := r.origin(req)
	if !r.visitors.admit(from, time.Now()) {
		return Limited, Hint{}, nil
	}
	if hook.Source == nil {
		// As an unsigned one, so that no stranger can find out which sources exist.
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
	if hook = r.hook(name); hook.Source == nil { // it is gone since the delivery began
		return Ignored, hint, nil
	}
	result, err = r.judge(name, hook, hint)
	return result, hint, err
}

// read reads a body, bounded in size and time. The result is empty where it is whole.
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

// concerns reports whether a hint makes the source fetch, and whether the watcher hears of it.
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

// judge queues a hint that may be news.
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

// own reports whether a delivery is about weir's own writing. This is true for comments only: a
// person may share its login, so all other deliveries are accepted. So are edits on GitLab, which
// does not say who made them.
func own(hook Hook, hint Hint) bool {
	return hint.What == Commented && hook.Self != "" && strings.EqualFold(hint.Sender, hook.Self) && (!ProfileOf(hook.Kind).webhook.senderIsAuthor || !hint.Comment.Edited)
}

// sameWithin is the time in which a repeated delivery of the same commit of the same ref is
// ignored, even if the source has not reached the commit.
const sameWithin = 30 * time.Second

// known reports whether a hint says what the one before it of the same ref said.
// Deliveries have no signed id, so that replays are recognised by their content.
func (r *Receiver) known(name string, hook Hook, hint Hint) bool {
	last, ok := r.refs[name][hint.Ref]
	return ok && hint.Commit != "" && last.commit == hint.Commit && (time.Since(last.at) < sameWithin || hook.Source.At() == hint.Commit)
}

// note logs the result of a delivery. It limits the log of results that anybody can cause.
func (r *Receiver) note(req *http.Request, name string, hook Hook, result Result, hint Hint, err error) {
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

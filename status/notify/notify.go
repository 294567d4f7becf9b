package notify

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/outbox"
)

// Receiver is the destination of events.
type Receiver struct {
	// URL receives a POST for each event. It comes from the configuration, never from Git.
	URL string
	// SecretFile contains the key that signs events. It is read for each event.
	SecretFile string
	// Events lists the kinds to send; an empty list selects all.
	Events []string
}

// Options configures a Notifier.
type Options struct {
	Instance  string
	Receivers []Receiver
	Logger    *slog.Logger
	// Version is the version of weir, for the User-Agent.
	Version string
	// Sent is called with the result of each event for a receiver, for metrics: "sent", "repeated",
	// "dropped" or "failed". host is the receiver's host. Sent may be nil.
	Sent func(host, result string)
	// Transport defaults to http.DefaultTransport.
	Transport http.RoundTripper
}

const (
	// notifyQueue is the maximum number of events that wait for one receiver. Beyond that, the oldest is
	// dropped.
	notifyQueue = 500
	// notifyPerMinute is the rate limit of one receiver; half of it can be sent in a burst.
	notifyPerMinute = 60
	// notifyTimeout bounds one request.
	notifyTimeout = 10 * time.Second
	// notifyTries is the maximum number of attempts for one event, which take about half an hour.
	notifyTries = 10
	notifyAtEnd = 900 * time.Millisecond // the timeout of a request during shutdown
	// sameEvent is the time within which an event that repeats the last one of its subject is not sent.
	sameEvent = 10 * time.Minute
	// minNotifySecret is the minimum length of a secret, in bytes.
	minNotifySecret = 16
)

var delays = outbox.Delays{First: 2 * time.Second, Longest: 10 * time.Minute}

// Notifier sends events to receivers. A slow receiver does not delay the others. Waiting events are in
// memory only.
type Notifier struct {
	o       Options
	senders []*sender
}

// sender sends events to one receiver.
type sender struct {
	to     Receiver
	host   string
	o      *Options
	client *http.Client
	box    *outbox.Outbox

	mu      sync.Mutex
	waiting []*delivery
	sent    map[subject]lastSent
	lost    int     // dropped events since the last log message
	heir    *sender // the sender that has inherited the waiting events
}

// subject identifies what an event is about. Kinds with the same first word, such as drift-found and
// drift-gone, have the same subject. lastSent is the last event of a subject, and its time.
type subject struct{ thing, source, target, pool, resource, name string }

type lastSent struct {
	text [sha256.Size]byte
	at   time.Time
}

// New returns a Notifier. It sends nothing before Run.
func New(o Options) (*Notifier, error) {
	if o.Sent == nil {
		o.Sent = func(string, string) {}
	}
	n := &Notifier{o: o}
	for _, r := range o.Receivers {
		u, err := url.Parse(r.URL)
		if err != nil || u.Host == "" {
			return nil, errors.New("make notifications: a receiver has no valid address") // the address may contain a secret
		}
		n.senders = append(n.senders, &sender{
			to: r, host: u.Host, o: &n.o, sent: map[subject]lastSent{},
			box: outbox.New(delays, notifyPerMinute, time.Now),
			client: &http.Client{Transport: o.Transport, Timeout: notifyTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			}},
		})
	}
	return n, nil
}

// Add queues events. It never blocks. The events must already be redacted.
func (n *Notifier) Add(events []events.Event) {
	for _, w := range n.senders {
		for _, e := range events {
			if len(w.to.Events) == 0 || slices.Contains(w.to.Events, e.Kind) {
				w.add(e)
			}
		}
	}
}

// Inherit takes over the waiting events of the previous notifier, whose Run has ended, for receivers that
// both have. It also forwards events that are added to the previous notifier later. It returns the number
// of events that wait for removed receivers.
func (n *Notifier) Inherit(before *Notifier) (left int) {
	had := map[*sender]bool{}
	for _, old := range before.senders {
		i := slices.IndexFunc(n.senders, func(w *sender) bool { return !had[w] && w.to.URL == old.to.URL })
		if i < 0 {
			left += old.left()
			continue
		}
		had[n.senders[i]] = true
		n.senders[i].inherit(old)
	}
	return left
}

// inherit takes over the waiting events of the sender that a new configuration replaces, and the record of
// sent events. Later events that reach old go to w.
func (w *sender) inherit(old *sender) {
	old.mu.Lock()
	defer old.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(slices.Clone(old.waiting), w.waiting...)
	if over := len(w.waiting) - notifyQueue; over > 0 {
		w.waiting = slices.Delete(w.waiting, 0, over)
		w.lost += over
	}
	for about, last := range old.sent {
		if w.sent[about].at.Before(last.at) {
			w.sent[about] = last
		}
	}
	w.lost += old.lost
	old.waiting, old.heir = nil, w
	w.box.Nudge()
}

// Run sends events until ctx ends. It leaves the waiting events to Close, or to the Inherit of another
// Notifier.
func (n *Notifier) Run(ctx context.Context) error {
	n.each(func(w *sender) { outbox.Work(ctx, w.box, false, w.next, w.deliver) })
	return nil
}

// Close tries for a short time to send the waiting events. Run must have returned.
func (n *Notifier) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, notifyAtEnd)
	defer cancel()
	n.each(func(w *sender) { w.flush(ctx) })
}

func (n *Notifier) each(f func(*sender)) {
	var wg sync.WaitGroup
	for _, w := range n.senders {
		wg.Go(func() { f(w) })
	}
	wg.Wait()
}

// add queues an event for sending. It drops an event that repeats the last one about the same thing, and an
// old waiting event if the queue is full.
func (w *sender) add(e events.Event) {
	same := e
	same.Time = time.Time{}
	text, err := json.Marshal(same)
	if err != nil {
		return // an event is text and JSON values
	}
	thing, _, _ := strings.Cut(e.Kind, "-")
	about, now := subject{thing, e.Source, e.Target, e.Pool, string(e.Resource), e.Name}, lastSent{sha256.Sum256(text), e.Time}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heir != nil {
		w.heir.add(e)
		return
	}
	for other, last := range w.sent {
		if e.Time.Sub(last.at) >= sameEvent {
			delete(w.sent, other)
		}
	}
	// A failure after a recovery is not a repetition: the last event sent must be current.
	if last, ok := w.sent[about]; ok && last.text == now.text {
		w.o.Sent(w.host, "repeated")
		return
	}
	if _, ok := w.sent[about]; ok || len(w.sent) < 4*notifyQueue {
		w.sent[about] = now
	}
	if len(w.waiting) == notifyQueue {
		w.waiting = slices.Delete(w.waiting, 1, 2) // the first may be in transit
		w.lost++
		w.o.Sent(w.host, "dropped")
	}
	w.waiting = append(w.waiting, newDelivery(e))
	w.box.Nudge()
}

// delivery is an event that is being sent.
type delivery struct {
	events.Event
	id    string
	entry outbox.Entry
}

func newDelivery(e events.Event) *delivery {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	return &delivery{Event: e, id: hex.EncodeToString(id[:])}
}

// next returns the oldest event, so that events arrive in order.
func (w *sender) next() (*delivery, time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost > 0 {
		w.o.Logger.Error("notifications are dropped: the receiver is too slow", "host", w.host, "count", w.lost)
		w.lost = 0
	}
	return outbox.Pick(w.box, func(yield func(*outbox.Entry, *delivery) bool) {
		if len(w.waiting) > 0 {
			yield(&w.waiting[0].entry, w.waiting[0])
		}
	}, nil)
}

// drop removes the first event, unless newer events have already pushed it out.
func (w *sender) drop(d *delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 && w.waiting[0] == d {
		w.waiting = slices.Delete(w.waiting, 0, 1)
	}
}

// flush tries each waiting event once, as long as there is time.
func (w *sender) flush(ctx context.Context) {
	for d := w.first(); d != nil; d = w.first() {
		if err := w.attempt(ctx, d); err != nil {
			w.o.Sent(w.host, "failed")
			w.o.Logger.Warn("notifications are not sent any more", "host", w.host, "left", w.left(), "error", err)
			return
		}
		w.o.Sent(w.host, "sent")
		w.drop(d)
	}
}

func (w *sender) first() *delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil
	}
	return w.waiting[0]
}

func (w *sender) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}

// deliver sends an event once. An event that ctx interrupts stays first in the queue.
func (w *sender) deliver(ctx context.Context, d *delivery) {
	err := w.box.Wait(ctx)
	if err == nil {
		err = w.attempt(ctx, d)
	}
	if err == nil {
		w.box.Succeeded()
		w.drop(d)
		w.o.Sent(w.host, "sent")
		return
	}
	if ctx.Err() != nil {
		return
	}
	failure := outbox.Failure{Most: notifyTries}
	var refusal *notifyRefusal
	if errors.As(err, &refusal) {
		failure.Final, failure.After = !refusal.passes, refusal.after
	}
	w.mu.Lock()
	outcome := w.box.Failed(&d.entry, failure)
	w.mu.Unlock()
	log := w.o.Logger.With("host", w.host, "kind", d.Kind, "delivery", d.id, "tries", d.entry.Tries(), "error", err)
	switch outcome {
	case outbox.GivenUp:
		w.drop(d)
		w.o.Sent(w.host, "failed")
		log.Error("notification is given up")
	case outbox.FirstAgain:
		log.Warn("notification is tried again")
	case outbox.Again, outbox.Denied, outbox.FirstDenied, outbox.Superseded:
	}
}

// Waiting returns the number of unsent events, over all receivers.
func (n *Notifier) Waiting() (waiting int) {
	for _, w := range n.senders {
		waiting += w.left()
	}
	return waiting
}

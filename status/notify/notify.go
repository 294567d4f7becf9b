package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/outbox"
)

// Receiver is the destination of events.
type Receiver struct {
	// URL takes a POST for each event. It comes from the configuration, never from Git.
	URL string
	// SecretFile holds what events are signed with. It is read for each.
	SecretFile string
	// Events are the kinds to send, all if the list is empty.
	Events []string
}

// Options configures a Notifier.
type Options struct {
	Instance  string
	Receivers []Receiver
	Logger    *slog.Logger
	// Version of weir, in the User-Agent.
	Version string
	// Sent is called with the outcome of each event for a receiver, for metrics: "sent",
	// "repeated", "dropped" or "failed"; it may be nil. The host is the receiver's.
	Sent func(host, result string)
	// Transport is http.DefaultTransport if nil.
	Transport http.RoundTripper
}

// messageSchema names the form of a Message.
const messageSchema = "weir.dev/event/v1"

// Message is the body of a notification, as JSON.
type Message struct {
	Schema   string       `json:"schema"`
	Instance string       `json:"instance"`
	Event    events.Event `json:"event"`
}

// The headers of a notification. The signature is "sha256=" and the HMAC-SHA256, in
// hex, of timestamp, a full stop, and the body. Delivery stays the same when one is
// sent again; the timestamp, in Unix seconds, does not.
const (
	HeaderEvent     = "X-Weir-Event"
	headerDelivery  = "X-Weir-Delivery"
	HeaderTimestamp = "X-Weir-Timestamp"
	HeaderSignature = "X-Weir-Signature-256"
)

// Sign returns the signature of a notification.
func Sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

const (
	// notifyQueue bounds the events that wait for one receiver; the oldest is dropped.
	notifyQueue = 500
	// notifyPerMinute bounds what one receiver gets, half of it at once.
	notifyPerMinute = 60
	// notifyTimeout bounds one request.
	notifyTimeout = 10 * time.Second
	// notifyTries bounds the tries of one event: about half an hour as delays go.
	notifyTries = 10
	notifyAtEnd = 900 * time.Millisecond // at the end
	// sameEvent is the time in which an event that repeats the last one of its subject is not sent
	// again.
	sameEvent = 10 * time.Minute
	// minNotifySecret is the length of the shortest secret, in bytes.
	minNotifySecret = 16
)

var delays = outbox.Delays{First: 2 * time.Second, Longest: 10 * time.Minute}

// Notifier sends events to receivers, each at its own pace. Waiting events are in
// memory only: the durable record is the history.
type Notifier struct {
	o       Options
	senders []*sender
}

// sender sends to one receiver.
type sender struct {
	to     Receiver
	host   string
	o      *Options
	client *http.Client
	box    *outbox.Outbox

	mu      sync.Mutex
	waiting []*delivery
	sent    map[subject]lastSent
	lost    int     // since the log last said so
	heir    *sender // who has what waits since it was handed on
}

// subject identifies what an event is about. lastSent holds the last event of a subject, and its
// time. Kinds with the same first word, such as drift-found and drift-gone, describe the state of
// one thing.
type subject struct{ thing, source, target, pool, resource, name string }

type lastSent struct {
	text [sha256.Size]byte
	at   time.Time
}

// New returns a Notifier, which sends nothing before Run.
func New(o Options) (*Notifier, error) {
	if o.Sent == nil {
		o.Sent = func(string, string) {}
	}
	n := &Notifier{o: o}
	for _, r := range o.Receivers {
		u, err := url.Parse(r.URL)
		if err != nil || u.Host == "" {
			return nil, errors.New("make notifications: a receiver's address is none") // it may hold a secret
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

// Add takes in events that happened. It never blocks. Their content must be
// redacted before.
func (n *Notifier) Add(events []events.Event) {
	for _, w := range n.senders {
		for _, e := range events {
			if len(w.to.Events) == 0 || slices.Contains(w.to.Events, e.Kind) {
				w.add(e)
			}
		}
	}
}

// Inherit copies what waits in the previous notifier, whose Run has ended, for the receivers that
// both have, and what is still added there. It returns the number of events that wait for removed
// receivers.
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

// Run sends until ctx ends. It leaves the waiting events to Close, or to another Notifier's
// Inherit.
func (n *Notifier) Run(ctx context.Context) error {
	n.each(func(w *sender) { outbox.Work(ctx, w.box, false, w.next, w.deliver) })
	return nil
}

// Close sends for a moment what still waits. Run must have returned.
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
	// A failure after a recovery is no repetition: the last word must be true.
	if last, ok := w.sent[about]; ok && last.text == now.text {
		w.o.Sent(w.host, "repeated")
		return
	}
	if _, ok := w.sent[about]; ok || len(w.sent) < 4*notifyQueue {
		w.sent[about] = now
	}
	if len(w.waiting) == notifyQueue {
		w.waiting = slices.Delete(w.waiting, 1, 2) // the first may be on its way
		w.lost++
		w.o.Sent(w.host, "dropped")
	}
	w.waiting = append(w.waiting, newDelivery(e))
	w.box.Nudge()
}

// delivery is an event on its way.
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

// next is the oldest event: they arrive in their order.
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

// drop takes out the first event, unless newer ones have pushed it out already.
func (w *sender) drop(d *delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 && w.waiting[0] == d {
		w.waiting = slices.Delete(w.waiting, 0, 1)
	}
}

// flush gives what waits one try each, as long as there is time.
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

// deliver sends an event once. One that ctx interrupts stays the first.
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

// notifyRefusal is an answer other than 2xx.
type notifyRefusal struct {
	status int
	passes bool
	after  time.Duration
}

func (e *notifyRefusal) Error() string {
	s := "the receiver answers " + strconv.Itoa(e.status) + " " + http.StatusText(e.status)
	switch {
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		s += ": it wants another secret than secretFile holds"
	case e.status/100 == 3:
		s += ": redirects are not followed; configure the new address"
	}
	return s
}

// attempt sends an event once. Its errors do not show the address, in which a
// secret may be.
func (w *sender) attempt(ctx context.Context, d *delivery) error {
	secret, err := readNotifySecret(w.to.SecretFile)
	if err != nil {
		return err
	}
	body, err := json.Marshal(Message{Schema: messageSchema, Instance: w.o.Instance, Event: d.Event})
	if err != nil {
		return fmt.Errorf("encode notification: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.to.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the receiver's address is none")
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	for key, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "weir/" + w.o.Version, HeaderEvent: d.Kind, headerDelivery: d.id,
		HeaderTimestamp: timestamp, HeaderSignature: Sign(secret, timestamp, body),
	} {
		req.Header.Set(key, value)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("send notification: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection serves again
	_ = resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	refusal := &notifyRefusal{status: resp.StatusCode, after: forgehttp.RetryAfter(resp.Header)}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusTooEarly:
		refusal.passes = true
	default:
		refusal.passes = resp.StatusCode >= 500
	}
	return refusal
}

func readNotifySecret(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read notification secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < minNotifySecret {
		return nil, fmt.Errorf("read notification secret: %s has fewer than %d characters; openssl rand -hex 32 makes a good one", file, minNotifySecret)
	}
	return []byte(secret), nil
}

// Waiting counts the events that are still to be sent, over all receivers.
func (n *Notifier) Waiting() (waiting int) {
	for _, w := range n.senders {
		waiting += w.left()
	}
	return waiting
}

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

	"golang.org/x/time/rate"

	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// Receiver is where events are sent to.
type Receiver struct {
	// URL takes a POST for each event. It comes from the configuration, never from Git.
	URL string
	// SecretFile holds what events are signed with. It is read for each.
	SecretFile string
	// Events are the kinds that are sent, all if there are none.
	Events []string
}

// Options configures a Notifier.
type Options struct {
	Instance  string
	Receivers []Receiver
	Logger    *slog.Logger
	// Version of weir, in the User-Agent.
	Version string
	// Sent is told what became of each event for a receiver, for metrics: "sent",
	// "repeated", "dropped" or "failed"; nil if nobody asks. The host is the receiver's.
	Sent func(host, result string)
	// Transport is http.DefaultTransport if nil.
	Transport http.RoundTripper
}

// MessageSchema names the form of what is sent.
const MessageSchema = "weir.dev/event/v1"

// Message is the body of what is sent, as JSON.
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
	HeaderDelivery  = "X-Weir-Delivery"
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
	notifyTries    = 10
	notifyDelay    = 2 * time.Second
	notifyLongest  = 10 * time.Minute
	notifyPatience = 900 * time.Millisecond // at the end
	// sameEvent is how long an event that says the same is not sent again.
	sameEvent = 10 * time.Minute
	// minNotifySecret is the length of the shortest secret, in bytes.
	minNotifySecret = 16
)

// Notifier sends events to receivers, each at its own pace. What waits is in memory
// only: the durable record is the history.
type Notifier struct {
	o     Options
	lanes []*lane
}

// lane is the way to one receiver.
type lane struct {
	to     Receiver
	host   string
	o      *Options
	client *http.Client
	limit  *rate.Limiter
	wake   chan struct{}

	mu      sync.Mutex
	waiting []events.Event
	told    map[[sha256.Size]byte]time.Time
	lost    int // since the log last said so
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
			return nil, errors.New("make notifications: a receiver's address is none") // it may hold what is secret
		}
		n.lanes = append(n.lanes, &lane{
			to: r, host: u.Host, o: &n.o, wake: make(chan struct{}, 1), told: map[[sha256.Size]byte]time.Time{},
			limit: rate.NewLimiter(rate.Limit(notifyPerMinute)/60, notifyPerMinute/2),
			client: &http.Client{Transport: o.Transport, Timeout: notifyTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			}},
		})
	}
	return n, nil
}

// Add takes in events that happened. It never blocks. What is in them must have
// been redacted.
func (n *Notifier) Add(events []events.Event) {
	for _, l := range n.lanes {
		for _, e := range events {
			if len(l.to.Events) == 0 || slices.Contains(l.to.Events, e.Kind) {
				l.add(e)
			}
		}
	}
}

// Run sends until ctx ends, and then for a moment what still waits.
func (n *Notifier) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, l := range n.lanes {
		wg.Go(func() { l.run(ctx) })
	}
	wg.Wait()
	return nil
}

func (l *lane) add(e events.Event) {
	same := e
	same.Time = time.Time{}
	text, err := json.Marshal(same)
	if err != nil {
		return // an event is text and JSON values
	}
	key := sha256.Sum256(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, at := range l.told {
		if e.Time.Sub(at) >= sameEvent {
			delete(l.told, other)
		}
	}
	if _, repeated := l.told[key]; repeated {
		l.o.Sent(l.host, "repeated")
		return
	}
	if len(l.told) < 4*notifyQueue {
		l.told[key] = e.Time
	}
	if len(l.waiting) == notifyQueue {
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.lost++
		l.o.Sent(l.host, "dropped")
	}
	l.waiting = append(l.waiting, e)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lane) next() (events.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		l.o.Logger.Error("notifications are dropped: the receiver is too slow", "host", l.host, "count", l.lost)
		l.lost = 0
	}
	if len(l.waiting) == 0 {
		return events.Event{}, false
	}
	e := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	return e, true
}

func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		e, ok := l.next()
		if !ok {
			commits.Pause(ctx, time.Hour, l.wake)
			continue
		}
		l.deliver(ctx, e)
	}
	// What waits gets one try each, as long as there is time.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyPatience)
	defer cancel()
	for e, ok := l.next(); ok; e, ok = l.next() {
		if err := l.attempt(last, delivery(), e); err != nil {
			l.o.Sent(l.host, "failed")
			l.mu.Lock()
			left := len(l.waiting) + 1
			l.mu.Unlock()
			l.o.Logger.Warn("notifications are not sent any more", "host", l.host, "left", left, "error", err)
			return
		}
		l.o.Sent(l.host, "sent")
	}
}

// delivery makes the id of a notification.
func delivery() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	return hex.EncodeToString(id[:])
}

// deliver sends an event, again and again where that may help. An event that ctx
// interrupts goes back to the front.
func (l *lane) deliver(ctx context.Context, e events.Event) {
	id := delivery()
	for try := 1; ; try++ {
		err := l.limit.Wait(ctx)
		if err == nil {
			err = l.attempt(ctx, id, e)
		}
		if err == nil {
			l.o.Sent(l.host, "sent")
			return
		}
		if ctx.Err() != nil {
			l.mu.Lock()
			l.waiting = append([]events.Event{e}, l.waiting...)
			l.mu.Unlock()
			return
		}
		var refusal *notifyRefusal
		final := errors.As(err, &refusal) && !refusal.passes
		log := l.o.Logger.With("host", l.host, "kind", e.Kind, "delivery", id, "tries", try, "error", err)
		if final || try == notifyTries {
			l.o.Sent(l.host, "failed")
			log.Error("notification is given up")
			return
		}
		wait := commits.Doubled(notifyDelay, try, notifyLongest)
		if refusal != nil && refusal.after > 0 {
			wait = refusal.after
		}
		if try == 1 {
			log.Warn("notification is tried again", "after", wait)
		}
		commits.Pause(ctx, wait, nil)
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
func (l *lane) attempt(ctx context.Context, id string, e events.Event) error {
	secret, err := readNotifySecret(l.to.SecretFile)
	if err != nil {
		return err
	}
	body, err := json.Marshal(Message{Schema: MessageSchema, Instance: l.o.Instance, Event: e})
	if err != nil {
		return fmt.Errorf("encode notification: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.to.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the receiver's address is none")
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	for key, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "weir/" + l.o.Version, HeaderEvent: e.Kind, HeaderDelivery: id,
		HeaderTimestamp: timestamp, HeaderSignature: Sign(secret, timestamp, body),
	} {
		req.Header.Set(key, value)
	}
	resp, err := l.client.Do(req)
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

// Waiting is how many events are still to be sent, over all receivers.
func (n *Notifier) Waiting() int {
	waiting := 0
	for _, l := range n.lanes {
		l.mu.Lock()
		waiting += len(l.waiting)
		l.mu.Unlock()
	}
	return waiting
}

package notify

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/statustest"
)

const notifySecret = "a-secret-for-notifications"

// inbox is a receiver that verifies what it gets.
type inbox struct {
	t   *testing.T
	url string

	mu         sync.Mutex
	got        []Message
	deliveries []string
	// answer is called with the lock held; nil answers 204.
	answer func(n int) (code int, h http.Header)
	n      int
	forged int
}

func newInbox(t *testing.T) *inbox {
	b := &inbox{t: t}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL + "/hook?key=in-the-address"
	return b
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	if !hmac.Equal([]byte(r.Header.Get(HeaderSignature)), []byte(Sign([]byte(notifySecret), r.Header.Get(HeaderTimestamp), body))) {
		b.forged++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	b.deliveries = append(b.deliveries, r.Header.Get(headerDelivery))
	if b.answer != nil {
		code, h := b.answer(b.n)
		for k, v := range h {
			w.Header()[k] = v
		}
		if code/100 != 2 {
			w.WriteHeader(code)
			return
		}
	}
	var n Message
	if err := json.Unmarshal(body, &n); err != nil || n.Event.Kind != r.Header.Get(HeaderEvent) || n.Schema != messageSchema {
		b.t.Errorf("got %s: %v", body, err)
	}
	b.got = append(b.got, n)
	w.WriteHeader(http.StatusNoContent)
}

func (b *inbox) count() (got, requests int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got), b.n
}

// post is a Notifier that runs.
type post struct {
	*Notifier
	log     statustest.Log
	mu      sync.Mutex
	results map[string]int
	// leave ends it and keeps what waits, stop ends it for good.
	leave, stop func()
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func newPost(t *testing.T, rt http.RoundTripper, receivers ...Receiver) *post {
	t.Helper()
	p := &post{results: map[string]int{}}
	var err error
	p.Notifier, err = New(Options{
		Instance: "fleet", Receivers: receivers, Version: "test", Logger: slog.New(slog.NewTextHandler(&p.log, nil)), Transport: rt,
		Sent: func(_, result string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.results[result]++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx)
	}()
	p.leave = func() { cancel(); <-done }
	p.stop = func() { p.leave(); p.Close(context.Background()) }
	return p
}

func (p *post) result(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.results[name]
}

func happened(kind, text string) events.Event {
	return events.Event{Time: time.Now(), Kind: kind, Level: kinds.Info, Target: "prod", Text: text}
}

func TestNotificationsArrive(t *testing.T) {
	b := newInbox(t)
	rt := &http.Transport{}
	defer rt.CloseIdleConnections()
	p := newPost(t, rt, Receiver{URL: b.url, SecretFile: secretFile(t, notifySecret+"\n"), Events: []string{"drift-found", "refresh-failed"}})
	defer p.stop()
	p.Add([]events.Event{happened("drift-found", "a"), happened("group-updated", "not asked for"), happened("refresh-failed", "b")})
	p.Add([]events.Event{happened("drift-found", "a")}) // said already
	statustest.Until(t, func() bool { got, _ := b.count(); return got == 2 })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.got[0].Event.Text != "a" || b.got[1].Event.Text != "b" || b.got[0].Instance != "fleet" || b.deliveries[0] == b.deliveries[1] || b.forged != 0 {
		t.Errorf("got %+v", b.got)
	}
	if p.result("repeated") != 1 {
		t.Errorf("results: %v", p.results)
	}
}

// After a failure, a recovery and another failure a receiver hears of a failure last.
func TestTheLastWordArrives(t *testing.T) {
	b := newInbox(t)
	rt := &http.Transport{}
	defer rt.CloseIdleConnections()
	p := newPost(t, rt, Receiver{URL: b.url, SecretFile: secretFile(t, notifySecret)})
	defer p.stop()
	failed, recovered := happened("target-failed", "no"), happened("target-recovered", "yes")
	other := failed
	other.Target = "dev"
	for _, e := range []events.Event{failed, failed, other, recovered, other, failed, failed} {
		p.Add([]events.Event{e})
	}
	statustest.Until(t, func() bool { got, _ := b.count(); return got == 4 && p.result("repeated") == 3 })
	b.mu.Lock()
	defer b.mu.Unlock()
	var kinds []string
	for _, m := range b.got {
		kinds = append(kinds, m.Event.Target+" "+m.Event.Kind)
	}
	if want := []string{"prod target-failed", "dev target-failed", "prod target-recovered", "prod target-failed"}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
}

// roundTrip is a receiver without a network, for a clock of its own.
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answered(code int, h http.Header) *http.Response {
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: code, Header: h, Body: http.NoBody}
}

func TestNotificationsAreTriedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []int // the last one stays
		h       http.Header
		tries   int
		result  string
		least   time.Duration
	}{
		"at once":           {[]int{200}, nil, 1, "sent", 0},
		"after two":         {[]int{503, 500, 204}, nil, 3, "sent", 6 * time.Second},
		"when told":         {[]int{429, 200}, http.Header{"Retry-After": {"120"}}, 2, "sent", 2 * time.Minute},
		"without an answer": {[]int{0, 200}, nil, 2, "sent", 2 * time.Second},
		"never":             {[]int{503}, nil, notifyTries, "failed", 15 * time.Minute},
		"another secret":    {[]int{401}, nil, 1, "failed", 0},
		"gone":              {[]int{410}, nil, 1, "failed", 0},
		"moved":             {[]int{301}, http.Header{"Location": {"https://elsewhere.example.com/"}}, 1, "failed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				ids, stamps, hosts := map[string]int{}, map[string]int{}, map[string]int{}
				n, last := 0, time.Time{}
				began := time.Now()
				p := newPost(t, roundTrip(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					defer mu.Unlock()
					ids[r.Header.Get(headerDelivery)]++
					stamps[r.Header.Get(HeaderTimestamp)]++
					hosts[r.URL.Host]++
					code := tt.answers[min(n, len(tt.answers)-1)]
					n, last = n+1, time.Now()
					if code == 0 {
						return nil, fmt.Errorf("dial %s: connection refused", r.URL.Host)
					}
					return answered(code, tt.h), nil
				}), Receiver{URL: "https://hooks.example.com/in-the-address", SecretFile: secretFile(t, notifySecret)})
				p.Add([]events.Event{happened("drift-found", "a")})
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				p.stop()
				if n != tt.tries || len(ids) != 1 || len(stamps) != tt.tries || len(hosts) != 1 || p.result(tt.result) != 1 || last.Sub(began) < tt.least {
					t.Errorf("%d tries with ids %v, stamps %v, hosts %v, results %v, the last after %s", n, ids, stamps, hosts, p.results, last.Sub(began))
				}
				if text := p.log.String(); strings.Contains(text, "in-the-address") || strings.Contains(text, notifySecret) {
					t.Errorf("the log shows a secret: %s", text)
				}
			})
		})
	}
}

// TestSlowReceiver has one receiver that never answers beside one that does.
func TestSlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := 0
		var mu sync.Mutex
		file := secretFile(t, notifySecret)
		p := newPost(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "slow.example.com" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			mu.Lock()
			defer mu.Unlock()
			quick++
			return answered(200, nil), nil
		}), Receiver{URL: "https://slow.example.com", SecretFile: file}, Receiver{URL: "https://quick.example.com", SecretFile: file})
		began := time.Now()
		for i := range 2 * notifyQueue {
			p.Add([]events.Event{happened("drift-found", fmt.Sprint(i))})
			if i%20 == 0 {
				time.Sleep(30 * time.Second) // as much as the limit lets through
			}
		}
		if waited := time.Since(began); waited != 2*notifyQueue/20*30*time.Second {
			t.Errorf("Add waited: %s", waited)
		}
		time.Sleep(time.Hour)
		mu.Lock()
		if quick != 2*notifyQueue {
			t.Errorf("the quick one got %d", quick)
		}
		mu.Unlock()
		slow := p.senders[0]
		slow.mu.Lock()
		if len(slow.waiting) > notifyQueue || len(slow.sent) > 4*notifyQueue {
			t.Errorf("%d wait, %d are remembered", len(slow.waiting), len(slow.sent))
		}
		slow.mu.Unlock()
		if p.result("dropped") == 0 {
			t.Error("nothing was dropped")
		}
		ended := time.Now()
		p.stop()
		if took := time.Since(ended); took > notifyAtEnd {
			t.Errorf("it ends after %s", took)
		}
	})
}

func TestNotificationsKeepTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n := 0
		p := newPost(t, roundTrip(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			n++
			return answered(200, nil), nil
		}), Receiver{URL: "https://hooks.example.com", SecretFile: secretFile(t, notifySecret)})
		for i := range 200 {
			p.Add([]events.Event{happened("drift-found", fmt.Sprint(i))})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		if n < notifyPerMinute || n > notifyPerMinute*3/2+1 {
			t.Errorf("%d in the first minute", n)
		}
		mu.Unlock()
		p.stop()
	})
}

func TestNotifierNeedsASecret(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "short": "0123456789"} {
		if _, err := readNotifySecret(secretFile(t, text)); err == nil || strings.Contains(err.Error(), "0123456789") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{Receivers: []Receiver{{URL: "no-address"}}}); err == nil || strings.Contains(err.Error(), "no-address") {
		t.Errorf("an address that is none: %v", err)
	}
}

// TestBoardNotifies hands what was redacted to the notifier.
func TestBoardNotifies(t *testing.T) {
	var got []events.Event
	b := current.New(current.Options{
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "(redacted)") },
		Notify: func(events []events.Event) { got = append(got, events...) },
	})
	b.Activity.Add(events.Event{Kind: "configuration-refused", Text: "password hunter2"})
	if len(got) != 1 || got[0].Text != "password (redacted)" || got[0].Level == "" {
		t.Errorf("got %+v", got)
	}
}

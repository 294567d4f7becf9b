package notify

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/status/events"
)

// door answers 503 until it is open.
type door struct {
	mu   sync.Mutex
	open bool
	got  []string // the subjects of events that came through
}

func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody}
	if d.open {
		var m Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			return nil, err
		}
		d.got, out.StatusCode = append(d.got, m.Event.Text), http.StatusNoContent
	}
	return out, nil
}

// TestWhatWaitsIsHandedOn to the notifier of the next configuration, in its order, and so
// is what is still given to the old one; what has no receiver there is counted.
func TestWhatWaitsIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &door{}
		to := Receiver{URL: "https://receiver.example.com/a", SecretFile: secretFile(t, notifySecret)}
		gone := Receiver{URL: "https://receiver.example.com/b", SecretFile: to.SecretFile, Events: []string{"one"}}
		event := func(kind, text string) []events.Event {
			return []events.Event{{Time: time.Now(), Kind: kind, Text: text}}
		}
		old := newPost(t, d, gone, to)
		old.Add(event("one", "first"))
		old.Add(event("two", "second"))
		synctest.Wait()
		old.leave()
		next := newPost(t, d, to)
		next.Add(event("three", "third"))
		if left := next.Inherit(old.Notifier); left != 1 {
			t.Errorf("%d are said to be left", left)
		}
		old.Add(event("four", "fourth"))
		old.Add(event("two", "second"))
		d.mu.Lock()
		d.open = true
		d.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		next.stop()
		if want := "first second third fourth"; strings.Join(d.got, " ") != want {
			t.Errorf("want %s, got %v", want, d.got)
		}
	})
}

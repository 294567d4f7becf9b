package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/statustest"
)

// Many changes become few messages, and reporting them never waits for a page that does not read.
func TestASlowPageHoldsUpNothing(t *testing.T) {
	var w Watchers
	url := streaming(t, &w, pace{gap: time.Hour, beat: time.Hour}, nil)
	l := statustest.Listen(t, url)
	w.Changed("first")
	if name, _ := l.Next(); name != "change" {
		t.Fatalf("told of %s", name)
	}
	for i := range 20_000 { // it rests for an hour now, and all of this ends
		w.Changed(fmt.Sprintf("t%d", i))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list {
		rang := len(one.wake)
		if change := one.pending(); !change.All || len(change.Targets) != 0 || rang != 1 || len(one.wake) != 0 {
			t.Errorf("it is to be told %+v, and then has %d", change, len(one.wake))
		}
	}
}

func TestStreamsAreBoundedAndEnd(t *testing.T) {
	var w Watchers
	url := streaming(t, &w, pace{gap: time.Millisecond, beat: time.Hour}, nil)
	l := statustest.Listen(t, url)
	for i := range maxWatchers - 1 {
		if w.add(strconv.Itoa(i)) == nil {
			t.Fatal("no stream for a new caller, although some are free")
		}
	}
	refused := func() {
		t.Helper()
		answer, err := http.Get(url + "/live")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Errorf("one too many gets %s", answer.Status)
		}
	}
	refused()
	w.Close()
	if name, _ := l.Next(); name != "" {
		t.Errorf("a stream that was ended says %q", name)
	}
	refused()
	w.Close() // a second time does nothing
	w.Changed("prod")
}

// One caller cannot take all streams, and several together cannot keep a newcomer from
// having one.
func TestStreamsAreShared(t *testing.T) {
	var w Watchers
	for i := range maxWatchers {
		if got := w.add("greedy") != nil; got != (i < maxOfCaller) {
			t.Fatalf("stream %d of one caller: %t", i, got)
		}
	}
	for len(w.list) < maxWatchers {
		if w.add("second") == nil {
			t.Fatal("the streams that are left are not for another caller")
		}
	}
	of := func(by string) (n int) {
		for one := range w.list {
			if one.by == by {
				n++
			}
		}
		return n
	}
	for i := range 10 {
		by := strconv.Itoa(i)
		if w.add(by) == nil || of(by) != 1 || len(w.list) != maxWatchers || of("greedy") != maxOfCaller-i-1 {
			t.Fatalf("newcomer %d: %d streams, %d of the greedy one, %d in all", i, of(by), of("greedy"), len(w.list))
		}
	}
	for range maxWatchers {
		w.add("second") // it gets a fair share and no more
	}
	if a, b := of("greedy"), of("second"); a-b > 1 || b > a+1 || w.add("greedy") != nil && of("greedy") > of("second")+1 {
		t.Errorf("%d and %d streams", a, b)
	}
	w.Close()
	if w.add("late") != nil {
		t.Error("a stream begins after the end")
	}
}

// A message says something: what was told before is not told again as nothing.
func TestNoMessageIsEmpty(t *testing.T) {
	var w Watchers
	one := w.add("")
	var sent sync.WaitGroup
	for range 4 {
		sent.Go(func() {
			for i := range 500 {
				w.Changed(fmt.Sprintf("t%d", i))
			}
		})
	}
	ended := make(chan struct{})
	go func() { sent.Wait(); close(ended) }()
	for done := false; !done; {
		select {
		case <-one.wake:
			if c := one.pending(); !c.All && len(c.Targets) == 0 {
				t.Fatal("a message says nothing")
			}
		case <-ended:
			done = true
		}
	}
}

// A page that is closed is forgotten.
func TestClosedPagesAreForgotten(t *testing.T) {
	var w Watchers
	url := streaming(t, &w, pace{gap: time.Millisecond, beat: time.Millisecond}, nil)
	l := statustest.Listen(t, url)
	_ = l.Body.Close()
	for {
		w.mu.Lock()
		n := len(w.list)
		w.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A stream outlives the bounds that the server has for answers, and shows that it
// lives.
func TestStreamsOutliveTheServersBounds(t *testing.T) {
	var w Watchers
	url := streaming(t, &w, pace{gap: time.Millisecond, beat: 20 * time.Millisecond}, func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	l := statustest.Listen(t, url)
	for range 20 { // each at least 20 ms after the one before
		if name, _ := l.Next(); name != "beat" {
			t.Fatalf("got %q in place of a sign of life", name)
		}
	}
	w.Changed("prod")
	for {
		name, change := l.Next()
		if name == "beat" {
			continue
		}
		if name != "change" || change.Targets[0] != "prod" {
			t.Errorf("told of %s %+v", name, change)
		}
		return
	}
}

// streaming serves watchers with a quick rhythm.
func streaming(t *testing.T, w *Watchers, p pace, change func(*http.Server)) string {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.serve(rw, r, p) }))
	if change != nil {
		change(srv.Config)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(w.Close)
	return srv.URL
}

package status

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// listener reads a stream of server-sent events.
type listener struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Scanner
}

func listen(t *testing.T, url string) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream is %s, %s", answer.Status, answer.Header.Get("Content-Type"))
	}
	l := &listener{t: t, body: answer.Body, in: bufio.NewScanner(answer.Body)}
	if name, _ := l.next(); name != "hello" {
		t.Fatalf("the first message is %q", name)
	}
	return l
}

// next is the next message, "beat" for a sign of life and "" at the end.
func (l *listener) next() (name string, change liveChange) {
	l.t.Helper()
	for l.in.Scan() {
		line := l.in.Text()
		switch {
		case strings.HasPrefix(line, ":"):
			name = "beat"
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			if err := json.Unmarshal([]byte(line[6:]), &change); err != nil {
				l.t.Fatal(err)
			}
		case line == "" && name != "":
			return name, change
		}
	}
	return "", change
}

// streaming serves a board with a quick rhythm.
func streaming(t *testing.T, b *Board, p pace, change func(*http.Server)) string {
	w := &web{board: b, o: HandlerOptions{Logger: slog.New(slog.DiscardHandler)}, assets: map[string]asset{}, pace: p}
	srv := httptest.NewUnstartedServer(w.handler())
	if change != nil {
		change(srv.Config)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(b.EndStreams)
	return srv.URL
}

func TestPagesAreToldOfChanges(t *testing.T) {
	b := testBoard("prod", "dev")
	url := streaming(t, b, pace{gap: time.Millisecond, beat: time.Hour}, nil)
	one, other := listen(t, url), listen(t, url)
	b.Report(t.Context(), report("prod"))
	for _, l := range []*listener{one, other} {
		name, change := l.next()
		if name != "change" || change.All || len(change.Targets) != 1 || change.Targets[0] != "prod" {
			t.Errorf("told of %s %+v", name, change)
		}
	}
	b.Source(Source{Name: "fleet"})
	if name, change := one.next(); name != "change" || !change.All {
		t.Errorf("told of %s %+v", name, change)
	}
	b.Pull(Pull{Source: "fleet", Number: 1})
	if name, change := one.next(); name != "change" || !change.All {
		t.Errorf("told of %s %+v", name, change)
	}
}

// A stream outlives the bounds that the server has for answers, and shows that it
// lives.
func TestStreamsOutliveTheServersBounds(t *testing.T) {
	b := testBoard("prod")
	url := streaming(t, b, pace{gap: time.Millisecond, beat: 20 * time.Millisecond}, func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	})
	l := listen(t, url)
	for range 20 { // each at least 20 ms after the one before
		if name, _ := l.next(); name != "beat" {
			t.Fatalf("got %q in place of a sign of life", name)
		}
	}
	b.Report(t.Context(), report("prod"))
	for {
		name, change := l.next()
		if name == "beat" {
			continue
		}
		if name != "change" || change.Targets[0] != "prod" {
			t.Errorf("told of %s %+v", name, change)
		}
		return
	}
}

// What many changes become is bounded, and reporting them never waits for a page
// that does not read.
func TestASlowPageHoldsUpNothing(t *testing.T) {
	b := testBoard()
	url := streaming(t, b, pace{gap: time.Hour, beat: time.Hour}, nil)
	l := listen(t, url)
	b.Report(t.Context(), report("first"))
	if name, _ := l.next(); name != "change" {
		t.Fatalf("told of %s", name)
	}
	for i := range 20_000 { // it rests for an hour now, and all of this ends
		b.watchers.changed(fmt.Sprintf("t%d", i))
	}
	b.watchers.mu.Lock()
	defer b.watchers.mu.Unlock()
	for one := range b.watchers.list {
		rang := len(one.bell)
		if change := one.take(); !change.All || len(change.Targets) != 0 || rang != 1 || len(one.bell) != 0 {
			t.Errorf("it is to be told %+v, and then has %d", change, len(one.bell))
		}
	}
}

func TestStreamsAreBoundedAndEnd(t *testing.T) {
	b := testBoard()
	url := streaming(t, b, pace{gap: time.Millisecond, beat: time.Hour}, nil)
	l := listen(t, url)
	for range maxWatchers - 1 {
		if b.watchers.add() == nil {
			t.Fatal("there is no room though there should be")
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
	b.EndStreams()
	if name, _ := l.next(); name != "" {
		t.Errorf("a stream that was ended says %q", name)
	}
	refused()
	b.EndStreams() // a second time does nothing
	b.Report(t.Context(), report("prod"))
}

// A message says something: what was told before is not told again as nothing.
func TestNoMessageIsEmpty(t *testing.T) {
	b := testBoard()
	one := b.watchers.add()
	var sent sync.WaitGroup
	for range 4 {
		sent.Go(func() {
			for i := range 500 {
				b.watchers.changed(fmt.Sprintf("t%d", i))
			}
		})
	}
	ended := make(chan struct{})
	go func() { sent.Wait(); close(ended) }()
	for done := false; !done; {
		select {
		case <-one.bell:
			if c := one.take(); !c.All && len(c.Targets) == 0 {
				t.Fatal("a message says nothing")
			}
		case <-ended:
			done = true
		}
	}
}

// Whoever closes the page is forgotten.
func TestClosedPagesAreForgotten(t *testing.T) {
	b := testBoard()
	url := streaming(t, b, pace{gap: time.Millisecond, beat: time.Millisecond}, nil)
	l := listen(t, url)
	_ = l.body.Close()
	for {
		b.watchers.mu.Lock()
		n := len(b.watchers.list)
		b.watchers.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

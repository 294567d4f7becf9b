package forge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestStormIsFewLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = b.r.Run(ctx) })
		source := b.sources["github"]
		began := time.Now()
		for i := range 1000 {
			body := push(fmt.Sprintf("%040d", i+1))
			if rec := b.send("github", signed(body, "X-GitHub-Delivery", fmt.Sprint(i)), body, somewhere); rec.Code != 202 {
				t.Fatalf("delivery %d: %d", i, rec.Code)
			}
			synctest.Wait()
			if i == 0 && (source.count() != 1 || source.nudges[0] != began) {
				t.Error("the first is not acted on at once")
			}
			if i == 500 {
				source.mu.Lock()
				source.at = fmt.Sprintf("%040d", 1000)
				source.mu.Unlock()
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := source.count(); n != 2 || !source.nudges[1].Equal(began.Add(spacing)) {
			t.Errorf("%d looks: %v", n, source.nudges)
		}
		cancel()
		wg.Wait()
	})
}

func TestLookAgainUntilTheCommitIsThere(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration // until the source comes to the commit
		want  int
	}{"at once": {0, 1}, "after a while": {4 * time.Second, 2}, "never": {time.Hour, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = b.r.Run(ctx) })
				body := push(sha1a)
				b.send("github", signed(body), body, somewhere)
				synctest.Wait()
				time.Sleep(tt.after)
				source := b.sources["github"]
				source.mu.Lock()
				source.at = sha1a
				source.mu.Unlock()
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := source.count(); n != tt.want {
					t.Errorf("%d looks: %v", n, source.nudges)
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// TestHooksThatAreReplacedLoseNoDelivery: what was accepted for the hooks before, or was
// on its way to them, is told to those that are there when it is acted on.
func TestHooksThatAreReplacedLoseNoDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		before := b.withPulls()
		running(t, b)
		next := &fakeSource{}
		replace := func() *fakePulls {
			p := &fakePulls{}
			hook := b.r.hook("github")
			hook.Source, hook.Pulls = next, p
			b.r.Set(map[string]Hook{"github": hook})
			return p
		}
		// One waits for its turn: the source and the pull request were told a moment ago.
		for i, commit := range []string{sha1a, sha1b} {
			body := push(commit)
			b.send("github", signed(body), body, somewhere)
			b.tell("pull_request", fmt.Sprint(i), changed(7, "ada"))
			synctest.Wait()
		}
		// One is being read.
		r, w := io.Pipe()
		body := push(strings.Repeat("c", 40))
		req := httptest.NewRequest(http.MethodPost, Prefix+"github", r)
		req.Header, req.RemoteAddr, req.ContentLength = signed(body), somewhere, int64(len(body))
		rec := httptest.NewRecorder()
		read := make(chan struct{})
		go func() {
			defer close(read)
			b.r.ServeHTTP(rec, req)
		}()
		synctest.Wait()
		if b.sources["github"].count() != 1 || before.counts()[7] != 1 {
			t.Fatalf("told at first: %d, %v", b.sources["github"].count(), before.counts())
		}
		after := replace()
		time.Sleep(spacing)
		synctest.Wait()
		if next.count() != 1 || after.counts()[7] != 1 {
			t.Errorf("what waited was told %d times, %v", next.count(), after.counts())
		}
		next.mu.Lock()
		next.at = sha1b
		next.mu.Unlock()
		time.Sleep(time.Minute)
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		<-read
		synctest.Wait()
		if rec.Code != http.StatusAccepted || next.count() != 2 {
			t.Errorf("what was being read: %d, told %d times", rec.Code, next.count())
		}
		if b.sources["github"].count() != 1 || before.counts()[7] != 1 {
			t.Error("what is not there any more was told")
		}
	})
}

package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// letter is a text for a name, of which the last one counts.
type letter struct {
	name, text string
	entry      Entry
	sent       bool
}

// owner keeps letters for one destination.
type owner struct {
	box *Outbox

	mu      sync.Mutex
	letters []*letter
	log     []string // of what was written
	answer  func(name, text string) error
	most    int
}

var (
	errDenied = errors.New("denied")
	errFinal  = errors.New("final")
	errBusy   = errors.New("busy")
)

type later time.Duration

func (l later) Error() string { return "later" }

var quick = Delays{First: time.Second, Longest: 8 * time.Second, Many: 6, Slow: time.Minute}

func newOwner(perMinute int) *owner { return &owner{box: New(quick, perMinute, time.Now)} }

func (o *owner) put(name, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.box.Nudge()
	for _, l := range o.letters {
		if l.name == name {
			l.text, l.sent, l.entry = text, false, Entry{}
			return
		}
	}
	o.letters = append(o.letters, &letter{name: name, text: text})
}

type taken struct {
	*letter
	was string
}

func (o *owner) next() (taken, time.Duration, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return Pick(o.box, func(yield func(*Entry, taken) bool) {
		for _, l := range o.letters {
			if !l.sent && !yield(&l.entry, taken{l, l.text}) {
				return
			}
		}
	}, func(a, b taken) bool { return a.name < b.name })
}

func (o *owner) write(ctx context.Context, t taken) {
	if o.box.Wait(ctx) != nil {
		return
	}
	var err error
	if o.answer != nil {
		err = o.answer(t.name, t.was)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	entry := &t.entry
	if t.text != t.was {
		entry = nil
	}
	f := Failure{Denied: errors.Is(err, errDenied), Final: errors.Is(err, errFinal), Most: o.most}
	var after later
	if errors.As(err, &after) {
		f.After = time.Duration(after)
	}
	if err == nil {
		o.box.Succeeded()
		o.log = append(o.log, t.name+"="+t.was)
		if entry != nil {
			t.sent = true
		}
		return
	}
	o.box.Failed(entry, f)
}

// run works until stop is called, which returns when the worker has ended.
func (o *owner) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Work(ctx, o.box, false, o.next, o.write)
	}()
	return func() { cancel(); <-done }
}

func (o *owner) wrote(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.log, want) {
		t.Errorf("written: %v, want %v", o.log, want)
	}
}

func TestOrderIsTheOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(0)
		for _, name := range []string{"c", "a", "b"} {
			o.put(name, "1")
		}
		defer o.run(t)()
		o.wrote(t, "a=1", "b=1", "c=1")
	})
}

// A failed entry is tried again after 1, 2, 4, 8 and 8 s, then each minute, and holds up
// nothing else.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(0)
		began := time.Now()
		var tries []string
		o.answer = func(name, _ string) error {
			if name != "a" {
				return nil
			}
			if tries = append(tries, fmt.Sprint(time.Since(began))); len(tries) <= 7 {
				return errBusy
			}
			return nil
		}
		o.put("a", "1")
		o.put("b", "1")
		stop := o.run(t)
		o.wrote(t, "b=1")
		time.Sleep(5 * time.Minute)
		o.wrote(t, "b=1", "a=1")
		stop()
		if got, want := strings.Join(tries, " "), "0s 1s 3s 7s 15s 23s 1m23s 2m23s"; got != want {
			t.Errorf("tried at %s, want %s", got, want)
		}
	})
}

func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			err   error
			tries int
		}{"refused for good": {errFinal, 1}, "not worth more": {errBusy, 3}} {
			o := newOwner(0)
			o.most = 3
			tries := 0
			o.answer = func(string, string) error { tries++; return c.err }
			o.put("a", "1")
			stop := o.run(t)
			time.Sleep(time.Hour)
			synctest.Wait()
			if tries != c.tries {
				t.Errorf("%s: %d tries, want %d", name, tries, c.tries)
			}
			o.mu.Lock()
			o.answer = nil
			if o.letters[0].entry.Reset(); o.letters[0].entry.GaveUp() {
				t.Errorf("%s: still given up", name)
			}
			o.mu.Unlock()
			o.box.Nudge()
			o.wrote(t, "a=1")
			stop()
		}
	})
}

// One try stands for all while the token is denied, and nothing is given up.
func TestADeniedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(0)
		o.most = 2
		tries := 0
		o.answer = func(string, string) error { tries++; return errDenied }
		for i := range 20 {
			o.put(fmt.Sprintf("%02d", i), "1")
		}
		defer o.run(t)()
		time.Sleep(time.Hour)
		synctest.Wait()
		// 2, 4, 8, 16, 32 s, then each minute.
		if tries < 60 || tries > 66 {
			t.Errorf("%d tries in an hour", tries)
		}
		o.answer = nil
		o.box.TryToken()
		synctest.Wait()
		if len(o.log) != 20 {
			t.Errorf("%d are written once the token is accepted", len(o.log))
		}
	})
}

// The destination says when it may be asked again, for all entries.
func TestTheDestinationSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(0)
		began, first := time.Now(), true
		o.answer = func(string, string) error {
			if first {
				first = false
				return later(30 * time.Second)
			}
			if d := time.Since(began); d < 30*time.Second {
				t.Errorf("asked after %s", d)
			}
			return nil
		}
		o.put("a", "1")
		o.put("b", "1")
		defer o.run(t)()
		time.Sleep(time.Minute)
		o.wrote(t, "a=1", "b=1")
	})
}

// Half a minute's limit goes at once, the rest evenly; two ways share it.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(60)
		other := &owner{box: o.box.Beside()}
		for i := range 50 {
			o.put(fmt.Sprintf("%02d", i), "1")
			other.put(fmt.Sprintf("%02d", i), "1")
		}
		defer o.run(t)()
		defer other.run(t)()
		written := func() int {
			synctest.Wait()
			o.mu.Lock()
			defer o.mu.Unlock()
			other.mu.Lock()
			defer other.mu.Unlock()
			return len(o.log) + len(other.log)
		}
		if n := written(); n != 30 {
			t.Errorf("%d at once, want 30", n)
		}
		time.Sleep(20 * time.Second)
		if n := written(); n != 50 {
			t.Errorf("%d after 20 s, want 50", n)
		}
	})
}

// An entry that changes while it is written is written again, and its tries begin anew.
func TestTheLastWordCounts(t *testing.T) {
	for _, err := range []error{nil, errBusy, errFinal} {
		synctest.Test(t, func(t *testing.T) {
			o := newOwner(0)
			changed := false
			o.answer = func(name, text string) error {
				if text == "1" && !changed {
					changed = true
					o.put(name, "2")
					return err
				}
				return nil
			}
			o.put("a", "1")
			defer o.run(t)()
			want := []string{"a=1", "a=2"}
			if err != nil {
				want = want[1:]
			}
			o.wrote(t, want...)
		})
	}
}

// A stop ends the worker at once, whatever it waits for; draining then writes what there
// is time for, and a new process what is left.
func TestStopDrainAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(0)
		o.answer = func(name, _ string) error {
			if name == "a" {
				return errBusy
			}
			return nil
		}
		o.put("a", "1")
		stop := o.run(t)
		time.Sleep(20 * time.Second) // the next try is at 23 s
		stop()
		o.put("b", "1")
		began := time.Now()
		last, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		Work(last, o.box, true, o.next, o.write)
		if d := time.Since(began); d != 0 {
			t.Errorf("draining waited %s for what there is no time for", d)
		}
		o.wrote(t, "b=1")
		// The next process has the letters, and no tries.
		again := newOwner(0)
		for _, l := range o.letters {
			if !l.sent {
				again.put(l.name, l.text)
			}
		}
		Work(t.Context(), again.box, true, again.next, again.write) // ends: nothing is left
		again.wrote(t, "a=1")
	})
}

func TestNudgeNeverBlocks(t *testing.T) {
	o := newOwner(0)
	for range 1000 {
		o.box.Nudge()
	}
}

package commits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestQueueRetriesAndGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		fault    forgehttp.Fault
		after    time.Duration
		heals    int // the try that succeeds, 0 for none
		state    string
		least    int // tries
		most     int
		takes    time.Duration // at least
		patience time.Duration
	}{
		"a commit that is there a moment later": {fault: forgehttp.FaultMissing, heals: 3, state: "success", least: 3, most: 3, patience: time.Minute},
		"a forge that is down for an hour":      {fault: forgehttp.FaultBusy, heals: 20, state: "success", least: 20, most: 20, takes: 30 * time.Minute, patience: 2 * time.Hour},
		"a forge that asks to wait":             {fault: forgehttp.FaultBusy, after: 90 * time.Second, heals: 2, state: "success", least: 2, most: 2, takes: 90 * time.Second, patience: time.Hour},
		"a commit that is never there":          {fault: forgehttp.FaultMissing, state: "", least: LastingTries, most: LastingTries, patience: 48 * time.Hour},
		"a full context":                        {fault: forgehttp.FaultRefused, state: "", least: 1, most: 1, patience: time.Hour},
		"a token without the scope":             {fault: forgehttp.FaultDenied, state: "", least: 10, most: 20, patience: 3 * time.Hour},
		"a token that is renewed next day":      {fault: forgehttp.FaultDenied, heals: 105, state: "success", least: 105, most: 105, takes: 24 * time.Hour, patience: 30 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := statustest.NewForge()
				tries, begun := 0, time.Now()
				var took time.Duration
				f.FailWith(func(string, forge.CommitStatus) error {
					if tries++; tries == c.heals {
						took = time.Since(begun)
						return nil
					}
					return &forgehttp.Error{Forge: "memory", Fault: c.fault, After: c.after, Message: "no"}
				})
				var results []string
				p := start(t, t.TempDir(), f, func(o *Options) {
					o.Wrote = func(_ string, _ forge.CommitState, result string) { results = append(results, result) }
				})
				p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew}) // one context: success
				time.Sleep(c.patience)
				synctest.Wait()
				got, _, _ := strings.Cut(f.Shows(statustest.ShaNew)["weir/apply"], ":")
				if got != c.state || tries < c.least || tries > c.most || took < c.takes {
					t.Errorf("state %q after %d tries and %s, want %q after %d to %d and %s", got, tries, took, c.state, c.least, c.most, c.takes)
				}
				if len(results) != tries || results[0] != string(c.fault) && c.heals != 1 {
					t.Errorf("results are %v", results)
				}
			})
		})
	}
}

// TestQueueCoalesces: what is superseded while the forge is away is never
// posted, and verdicts go first.
func TestQueueCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		f.FailWith(func(string, forge.CommitStatus) error {
			return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "down"}
		})
		p := start(t, t.TempDir(), f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"dev", "prod"}})
		statustest.WaitIdle()
		p.Report(t.Context(), statustest.Created())
		statustest.WaitIdle()
		p.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		f.FailWith(nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want := []string{
			"4be91a7 weir/apply/prod success: 1 pool created",
			"4be91a7 weir/apply pending: 1 of 2 targets converged",
			"4be91a7 weir/apply/dev pending: planning",
		}
		if diff := cmp.Diff(want, f.Log()); diff != "" {
			t.Errorf("posted (-want +got):\n%s", diff)
		}
	})
}

func TestQueueKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		f.Limited.PerMinute = 60
		p := start(t, t.TempDir(), f)
		var touched []string
		for i := range 200 {
			touched = append(touched, fmt.Sprintf("t%03d", i))
		}
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: touched})
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(f.Log()); n < 60 || n > 100 {
			t.Errorf("%d writes in the first minute, want about 90", n)
		}
	})
}

// TestReportNeverWaits proves that a forge that does not answer does not hold
// up the reconciler.
func TestReportNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := statustest.NewForge()
		f.FailWith(func(string, forge.CommitStatus) error {
			time.Sleep(time.Hour)
			return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Message: "timeout"}
		})
		p := start(t, t.TempDir(), f)
		begun := time.Now()
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		synctest.Wait()
		// The forge has the lock of the fake only, never that of Commits.
		p.Report(t.Context(), statustest.Created())
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("the report waited for %s", waited)
		}
		time.Sleep(24 * time.Hour)
	})
}

// failing is a store that does not write.
type failing struct {
	state.Store
	fails *atomic.Bool
}

func (f failing) Update(fn func(*state.Tx) error) error {
	if f.fails.Load() {
		return errors.New("no space left on device")
	}
	return f.Store.Update(fn)
}

func TestJournalThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, fails := statustest.NewForge(), &atomic.Bool{}
		fails.Store(true)
		p := start(t, t.TempDir(), f, func(o *Options) { o.Store = failing{o.Store, fails} })
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		statustest.WaitIdle()
		if len(f.Log()) > 0 {
			t.Errorf("posted without a journal: %v", f.Log())
		}
		fails.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(f.Log()) != 2 {
			t.Errorf("posted once the journal can be written: %v", f.Log())
		}
	})
}

// TestJournalThatIsUnreadable leaves out what cannot be understood, and removes it.
func TestJournalThatIsUnreadable(t *testing.T) {
	store := statustest.StoreIn(t, t.TempDir())
	bucket := state.Bucket[any]{Name: journalBucket}
	if err := store.Update(func(tx *state.Tx) error {
		return errors.Join(
			bucket.Put(tx, "fleet\x00a", []string{"?"}), bucket.Put(tx, "fleet\x00b", map[string]any{"source": "other", "sha": "b"}),
			bucket.Put(tx, "fleet\x00c", map[string]any{"source": "fleet", "sha": "c", "parts": 1}), bucket.Put(tx, "fleet\x00c\x0000", map[string]any{"contexts": map[string]any{"x": nil}}),
			bucket.Put(tx, "fleet\x00d", map[string]any{"source": "fleet", "sha": "d", "turn": 7, "parts": 1}), bucket.Put(tx, "fleet\x00e\x0000", part{}),
		)
	}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	c, err := New(Options{Instance: "weir", Store: store, Forges: map[string]Forge{"fleet": statustest.NewForge()}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || c.journal.statuses["fleet"].current() == nil || c.journal.statuses["fleet"].current().SHA != "d" || !strings.Contains(log.String(), "cannot be read") {
		t.Fatalf("start over an unreadable journal: %v, log %q", err, log.String())
	}
	if err := c.Leave(); err != nil {
		t.Fatal(err)
	}
	if left := journalOf(t, store); len(left) != 1 || left["fleet\x00d"] == nil {
		t.Errorf("the journal has %q", left)
	}
}

func FuzzParseJournal(f *testing.F) {
	f.Add([]byte(`{"source":"fleet","sha":"4be9","turn":1,"parts":1}`), []byte(`{"targets":{"prod":{"state":"pending"}},"contexts":{"c":{"want":{"context":"c","state":"pending"}}}}`))
	f.Add([]byte(`null`), []byte(`null`))
	f.Add([]byte(`{"source":"fleet","sha":"4be9","parts":-1}`), []byte(`{"targets":{"a":null}}`))
	f.Fuzz(func(t *testing.T, head, first []byte) {
		key := trackKey("fleet", "4be9")
		tr, err := parse(key, head, map[string]json.RawMessage{partKey(key, 0): first})
		if err != nil {
			return
		}
		if tr.Targets == nil || tr.Contexts == nil || tr.SHA == "" {
			t.Errorf("a broken track passed: %+v", tr)
		}
		aggregate(tr.Targets)
	})
}

// TestOnlyWhatChangedIsWritten: a report on one of a thousand targets does not write the
// journal anew.
func TestOnlyWhatChangedIsWritten(t *testing.T) {
	store, f := statustest.StoreIn(t, t.TempDir()), statustest.NewForge()
	c, err := New(Options{Instance: "weir", Store: store, Forges: map[string]Forge{"fleet": f}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("prod-%03d", i))
	}
	r := Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: names}
	if c.Begin(r); c.journal.save(false) != nil {
		t.Fatal("not saved")
	}
	before := journalOf(t, store)
	c.Report(t.Context(), statustest.Report("prod-500", statustest.Pool("prod-500", "web")))
	if err := c.journal.save(false); err != nil {
		t.Fatal(err)
	}
	changed, whole, longest := 0, 0, 0
	for key, value := range journalOf(t, store) {
		whole += len(value)
		if longest = max(longest, len(value)); string(before[key]) != string(value) {
			changed += len(value)
		}
	}
	if changed == 0 || changed > whole/8 || longest > 64<<10 {
		t.Errorf("%d of %d bytes were written, the longest record has %d", changed, whole, longest)
	}
	again, err := New(Options{Instance: "weir", Store: store, Forges: map[string]Forge{"fleet": f}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil || len(again.Unfinished()) != 999 || again.Pending() != c.Pending() {
		t.Errorf("read: %d targets, %d contexts, %v", len(again.Unfinished()), again.Pending(), err)
	}
}

// TestAnotherWeirGoesOn: who takes a source over posts what the one before wanted, and that
// one posts and writes nothing more.
func TestAnotherWeirGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := statustest.NewForge(), statustest.StoreIn(t, t.TempDir())
		var speaker atomic.Int32
		one, two := start(t, t.TempDir(), f, heldBy(store, &speaker, 0)), start(t, t.TempDir(), f, heldBy(store, &speaker, 1))
		r := Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}}
		one.Begin(r)
		statustest.WaitIdle()
		if len(f.AnyPending()) != 2 {
			t.Fatalf("pending: %v", f.AnyPending())
		}
		f.FailWith(func(string, forge.CommitStatus) error {
			return &forgehttp.Error{Forge: "memory", Fault: forgehttp.FaultBusy, Status: 503, Message: "busy"}
		})
		one.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		statustest.WaitIdle()
		speaker.Store(1)
		f.FailWith(nil)
		if err := two.TakeOver("fleet"); err != nil {
			t.Fatal(err)
		}
		statustest.WaitIdle()
		statustest.WantShown(t, f, statustest.ShaNew, map[string]string{"weir/apply": "success: prod: nothing to change in AWS", "weir/apply/prod": "success: nothing to change in AWS"})
		posted, journal := len(f.Log()), fmt.Sprint(journalOf(t, store))
		one.Begin(Revision{Source: "fleet", SHA: strings.Repeat("a", 40), Touched: []string{"prod"}})
		time.Sleep(time.Hour)
		if len(f.Log()) != posted || fmt.Sprint(journalOf(t, store)) != journal {
			t.Errorf("who does not speak for the source posted %v", f.Log()[posted:])
		}
	})
}

// heldBy makes a weir speak for sources while speaker is n.
func heldBy(store state.Store, speaker *atomic.Int32, n int32) func(*Options) {
	return func(o *Options) {
		o.Store = store
		o.Held = func(string) state.Store {
			if speaker.Load() == n {
				return store
			}
			return nil
		}
	}
}

// TestNothingIsWrittenBehindALookThatHung: who no longer speaks for a source when the forge
// answers at last what the commit has, writes nothing on it.
func TestNothingIsWrittenBehindALookThatHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := statustest.NewForge(), statustest.StoreIn(t, t.TempDir())
		var speaker atomic.Int32
		slow := &slowForge{Forge: f, took: 15 * time.Second}
		one := start(t, t.TempDir(), slow, heldBy(store, &speaker, 0))
		two := start(t, t.TempDir(), f, heldBy(store, &speaker, 1))
		one.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		time.Sleep(5 * time.Second) // the forge is asked, and hangs
		speaker.Store(1)
		if err := two.TakeOver("fleet"); err != nil {
			t.Fatal(err)
		}
		two.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		time.Sleep(5 * time.Second)
		posted := len(f.Log())
		time.Sleep(20 * time.Second)
		if posted == 0 || len(f.Log()) != posted {
			t.Errorf("%d statuses were posted, and then %v", posted, f.Log()[posted:])
		}
	})
}

// slowForge takes long to say what a commit has.
type slowForge struct {
	Forge
	took time.Duration
}

func (s *slowForge) Statuses(ctx context.Context, sha string) (map[string]forge.CommitStatus, error) {
	time.Sleep(s.took)
	return s.Forge.Statuses(ctx, sha)
}

// TestWhoSpeaksAgainLooksAgain: what a weir once wrote on a commit is not what the commit has
// when it speaks for the source again.
func TestWhoSpeaksAgainLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, store := statustest.NewForge(), statustest.StoreIn(t, t.TempDir())
		var speaker atomic.Int32
		one := start(t, t.TempDir(), f, heldBy(store, &speaker, 0))
		two := start(t, t.TempDir(), f, heldBy(store, &speaker, 1))
		first := Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}}
		failing := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Failed, statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "prod-web"))
		one.Begin(first)
		one.Report(t.Context(), failing)
		statustest.WaitIdle()
		want := maps.Clone(f.Now[statustest.ShaNew])
		if want["weir/apply"].State != forge.Failure {
			t.Fatalf("shown: %v", want)
		}
		speaker.Store(1)
		if err := two.TakeOver("fleet"); err != nil {
			t.Fatal(err)
		}
		two.Report(t.Context(), statustest.Report("prod", statustest.Pool("prod", "web")))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if f.Now[statustest.ShaNew]["weir/apply"].State != forge.Success {
			t.Fatalf("shown: %v", f.Now[statustest.ShaNew])
		}
		// The branch moves on and back, and fails again where it failed before.
		two.Begin(Revision{Source: "fleet", SHA: strings.Repeat("a", 40), Touched: []string{"prod"}})
		two.Begin(first)
		speaker.Store(0)
		if err := one.TakeOver("fleet"); err != nil {
			t.Fatal(err)
		}
		one.Begin(Revision{Source: "fleet", SHA: strings.Repeat("a", 40), Touched: []string{"prod"}})
		one.Begin(first)
		one.Report(t.Context(), failing)
		statustest.WaitIdle()
		if got := f.Now[statustest.ShaNew]; got["weir/apply"].State != forge.Failure {
			t.Errorf("the forge shows %v", got)
		}
	})
}

// BenchmarkJournal is what precedes a status: the record on the disk that it is wanted.
func BenchmarkJournal(b *testing.B) {
	c, err := New(Options{Instance: "weir", Store: statustest.StoreIn(b, b.TempDir()), Forges: map[string]Forge{"fleet": statustest.NewForge()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		c.Begin(Revision{Source: "fleet", SHA: fmt.Sprintf("%040x", i%20), Touched: []string{"prod"}})
		if err := c.journal.save(false); err != nil {
			b.Fatal(err)
		}
	}
}

package commits

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
		statustest.Settle()
		p.Report(t.Context(), statustest.Created())
		statustest.Settle()
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

func TestJournalThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dir := statustest.NewForge(), filepath.Join(t.TempDir(), "gone")
		p := start(t, dir, f)
		p.Begin(Revision{Source: "fleet", SHA: statustest.ShaNew, Touched: []string{"prod"}})
		statustest.Settle()
		if len(f.Log()) > 0 {
			t.Errorf("posted without a journal: %v", f.Log())
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(f.Log()) != 2 {
			t.Errorf("posted once the journal can be written: %v", f.Log())
		}
	})
}

func TestJournalThatIsUnreadable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "commit-statuses.json")
	if err := os.WriteFile(path, []byte(`{"version":1,"commits":[{"sou`), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	c, err := New(Options{Instance: "weir", StateDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || c.Pending() != 0 {
		t.Fatalf("start over an unreadable journal: %v", err)
	}
	if _, err := os.Stat(path + ".unreadable"); err != nil || !strings.Contains(log.String(), "put aside") {
		t.Errorf("the journal is not put aside: %v; log %q", err, log.String())
	}
}

func FuzzParseJournal(f *testing.F) {
	f.Add([]byte(`{"version":1,"commits":[{"source":"fleet","sha":"4be9","targets":{"prod":{"state":"pending"}},"contexts":{"c":{"want":{"context":"c","state":"pending"}}}}]}`))
	f.Add([]byte(`{"version":1,"commits":[null]}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tracks, err := parseJournal(raw)
		if err != nil {
			return
		}
		for _, tr := range tracks {
			if tr.Targets == nil || tr.Contexts == nil || tr.SHA == "" {
				t.Errorf("a broken track passed: %+v", tr)
			}
			aggregate(tr.Targets)
		}
	})
}

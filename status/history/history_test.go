package history

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/report"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string, o Options) (*Archive, func()) {
	t.Helper()
	db, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	return New(db, o), func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func event(at time.Duration, kind string) events.Event {
	return events.Event{
		Time: noon.Add(at), Kind: kind, Level: kinds.Warning, Target: "prod", Pool: "default/web", Resource: "launch-template", Name: "web",
		Revision: "4be91a7730c2", Reason: "why", Text: "what", Changes: []events.Change{{Field: "maxSize", From: 7.0, To: nil, At: "a.yaml:1:2"}},
		Facts: map[string]string{"version": "5"},
	}
}

func texts(list []events.Event) (out []string) {
	for _, e := range list {
		out = append(out, e.Kind)
	}
	return out
}

func TestHistoryIsThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	a, closed := open(t, dir, Options{})
	run := Run{Time: noon, Target: "prod", Revision: "4be9", Phase: report.Moving, Duration: Seconds(1500 * time.Millisecond), Text: "x"}
	told := events.Known{Revision: "4be9", Standing: []string{"fault"}, Pools: map[string]events.KnownPool{"default/web": {Rollout: &events.KnownRollout{ID: "r"}}}}
	gone := map[string]events.Known{"target old": told, "target prod": told}
	if err := a.Append(Record{Events: []events.Event{event(0, "one"), event(1, "two")}, Runs: []Run{run}, Known: gone}); err != nil {
		t.Fatal(err)
	}
	if err := a.Append(Record{Events: []events.Event{event(2, "three")}, Known: map[string]events.Known{"target old": {}}}); err != nil {
		t.Fatal(err)
	}
	closed()
	a, closed = open(t, dir, Options{})
	defer closed()
	list, err := a.Events(Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]events.Event{event(2, "three"), event(1, "two"), event(0, "one")}, list); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	runs, err := a.Runs(Filter{})
	if diff := cmp.Diff([]Run{run}, runs); diff != "" || err != nil {
		t.Errorf("passes (-want +got):\n%s%v", diff, err)
	}
	back, err := a.Known()
	if diff := cmp.Diff(map[string]events.Known{"target prod": told}, back); diff != "" || err != nil {
		t.Errorf("told (-want +got):\n%s%v", diff, err)
	}
}

func TestFilter(t *testing.T) {
	a, closed := open(t, t.TempDir(), Options{})
	defer closed()
	other := event(3, "three")
	other.Target, other.Pool = "dev", "team/batch"
	if err := a.Append(Record{Events: []events.Event{event(1, "one"), event(2, "two"), other}}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		f    Filter
		want []string
	}{
		{Filter{}, []string{"three", "two", "one"}},
		{Filter{Limit: 1}, []string{"three"}},
		{Filter{Skip: 1, Limit: 1}, []string{"two"}},
		{Filter{Skip: 3}, nil},
		{Filter{Target: "prod"}, []string{"two", "one"}},
		{Filter{Target: "prod", Pool: "team/batch"}, nil},
		{Filter{Until: noon.Add(1)}, []string{"one"}},
		{Filter{About: []string{"prod"}}, []string{"two", "one"}},
		{Filter{About: []string{"batch"}}, []string{"three"}},
		{Filter{About: []string{"team/batch", "prod"}, Kinds: []string{"one", "three"}}, []string{"three", "one"}},
		{Filter{About: []string{"nobody"}}, nil},
		{Filter{Since: noon.Add(2)}, []string{"three", "two"}},
	} {
		got, err := a.Events(tc.f)
		if diff := cmp.Diff(tc.want, texts(got)); diff != "" || err != nil {
			t.Errorf("%+v (-want +got):\n%s%v", tc.f, diff, err)
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	now := noon
	a, closed := open(t, t.TempDir(), Options{MaxAge: time.Hour, MaxEvents: 5, MaxPasses: 3, Now: func() time.Time { return now }})
	defer closed()
	for i := range 4 {
		r := Record{}
		for j := range 3 {
			r.Events = append(r.Events, event(time.Duration(i*3+j), fmt.Sprint(i*3+j)))
			r.Runs = append(r.Runs, Run{Time: noon, Text: fmt.Sprint(i*3 + j)})
		}
		if err := a.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.Events(Filter{})
	if diff := cmp.Diff([]string{"11", "10", "9", "8", "7"}, texts(got)); diff != "" || err != nil {
		t.Errorf("by number (-want +got):\n%s%v", diff, err)
	}
	if runs, _ := a.Runs(Filter{}); len(runs) != 3 || runs[0].Text != "11" {
		t.Errorf("passes %v", runs)
	}
	now = noon.Add(2 * time.Hour)
	if err := a.Append(Record{Events: []events.Event{event(2*time.Hour, "late")}}); err != nil {
		t.Fatal(err)
	}
	got, err = a.Events(Filter{})
	if diff := cmp.Diff([]string{"late"}, texts(got)); diff != "" || err != nil {
		t.Errorf("by age (-want +got):\n%s%v", diff, err)
	}
}

// TestKilled kills a process while it writes without end: what it said to have written
// is there, and nothing is broken.
func TestKilled(t *testing.T) {
	const variable = "WEIR_TEST_HISTORY_DIR"
	if dir := os.Getenv(variable); dir != "" {
		db, err := state.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		a := New(db, Options{MaxEvents: 50})
		for i := 0; ; i++ {
			kind := fmt.Sprint(i)
			err := a.Append(Record{
				Events: []events.Event{{Time: time.Now(), Kind: kind}}, Known: map[string]events.Known{"target prod": {Revision: kind}},
			})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println("wrote", i)
		}
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), variable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sure := -1
	for sure < 100 {
		if _, err := fmt.Fscanf(out, "wrote %d\n", &sure); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	a, closed := open(t, dir, Options{})
	defer closed()
	if err := a.db.(*state.DB).Lost(); err != nil {
		t.Fatal(err)
	}
	got, err := a.Events(Filter{})
	if err != nil || len(got) != 50 {
		t.Fatalf("%d events, %v", len(got), err)
	}
	var newest int
	if _, err := fmt.Sscan(got[0].Kind, &newest); err != nil || newest < sure {
		t.Errorf("the newest is %d, and %d was written", newest, sure)
	}
	for i, e := range got {
		if e.Kind != fmt.Sprint(newest-i) {
			t.Fatalf("event %d is %s", i, e.Kind)
		}
	}
	told, err := a.Known()
	if err != nil || told["target prod"].Revision != fmt.Sprint(newest) {
		t.Errorf("told is %v, %v, and the newest event %d", told, err, newest)
	}
}

package refusals

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func denied() *observed.Error {
	return &observed.Error{Kind: observed.Denied, Code: "AccessDenied", Message: "no", Err: errors.New("no")}
}

func pool(name string, size int32) *intent.Pool {
	return &intent.Pool{Key: intent.Key{Namespace: "default", Name: name}, Group: &intent.Group{MaxSize: size}}
}

// resize sets the maximum size of the group of a pool.
func resize(p *intent.Pool, from, to int) step.Step {
	return step.Step{
		Verb: step.Update, Resource: step.AutoScalingGroup, Name: p.Key.Name, Pool: p.Key.String(), Wanted: p, Do: step.UpdateGroup{},
		Changes: []step.Change{{Field: "maxSize", From: from, To: to}},
	}
}

func TestRefusedStepsWait(t *testing.T) {
	key := Key{Target: "blue", Owner: "default/web"}
	kind := func(kind observed.ErrorKind) *observed.Error { return &observed.Error{Kind: kind, Code: "Code"} }
	unsent := &observed.Error{Kind: observed.Busy, Code: observed.CodeChanged}
	unknown := kind(observed.Invalid)
	unknown.Unknown = observed.UnknownName{Kind: "key-pair", Name: "k"}
	for name, tc := range map[string]struct {
		errs []*observed.Error
		wait time.Duration
	}{
		"invalid":                {[]*observed.Error{kind(observed.Invalid)}, time.Hour},
		"an unknown name":        {[]*observed.Error{unknown}, 10 * time.Minute},
		"denied":                 {[]*observed.Error{kind(observed.Denied)}, 10 * time.Minute},
		"over a quota":           {[]*observed.Error{kind(observed.Quota)}, 10 * time.Minute},
		"throttled":              {[]*observed.Error{kind(observed.Throttled)}, 0},
		"not sent":               {[]*observed.Error{unsent}, 5 * time.Second},
		"not sent again":         {[]*observed.Error{unsent, unsent, unsent}, 20 * time.Second},
		"not sent, then refused": {[]*observed.Error{unsent, unsent, kind(observed.Denied)}, 10 * time.Minute},
		"not sent for long": {[]*observed.Error{unsent, unsent, unsent, unsent, unsent, unsent, unsent, unsent, unsent, unsent, unsent, unsent, unsent, unsent},
			5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var r Record
			var waits bool
			for _, err := range tc.errs {
				waits = r.Refuse(key, "d", err, start)
			}
			if waits != (tc.wait > 0) {
				t.Errorf("waits: %t", waits)
			}
			if tc.wait > 0 && r.Refused(key, "d", start.Add(tc.wait)) != tc.errs[len(tc.errs)-1] {
				t.Error("the steps may be tried before the time")
			}
			for what, got := range map[string]*observed.Error{
				"after the time":       r.Refused(key, "d", start.Add(tc.wait+1)),
				"other steps":          r.Refused(key, "other", start),
				"another pool":         r.Refused(Key{Target: "blue", Owner: "default/db"}, "d", start),
				"another target":       r.Refused(Key{Target: "green", Owner: "default/web"}, "d", start),
				"a step that is alone": r.Refused(Key{Target: "blue", Owner: "default/web", What: "d"}, "d", start),
			} {
				if got != nil {
					t.Errorf("%s: %v", what, got)
				}
			}
			if r.Succeeded(key); r.Refused(key, "d", start) != nil {
				t.Error("refused after the steps ran")
			}
		})
	}
}

// A request to try again lifts the entries of its pools and of all launch configurations.
func TestRetryLiftsAllEntries(t *testing.T) {
	var r Record
	web, db := pool("web", 2), pool("db", 2)
	shared := "default/shared"
	owners := []string{"default/web", "default/db", step.OwnerOfConfig + shared}
	for _, owner := range owners {
		r.Refuse(Key{Target: "blue", Owner: owner}, "d", denied(), start)
	}
	for range 2 {
		r.Wrote("blue", "c1", resize(web, 1, 2), start)
		r.Wrote("blue", "c1", resize(db, 1, 2), start)
	}
	r.Retry([]string{"default/web"})
	v := r.View(start)
	var got []bool
	for _, owner := range owners {
		got = append(got, r.Refused(Key{Target: "blue", Owner: owner}, "d", start) != nil)
	}
	for _, p := range []*intent.Pool{web, db} {
		s := resize(p, 1, 2)
		got = append(got, v.Spent(s, WritesOf(s, "blue")[0]))
	}
	if want := []bool{false, true, false, false, true}; !cmp.Equal(want, got) || !v.Retry["default/web"] || v.Retry["default/db"] {
		t.Errorf("left: %v, want %v; asked: %v", got, want, v.Retry)
	}
	// The request itself stays while its pool waits.
	for _, waits := range []bool{true, false} {
		r.Retried(v, map[string]bool{"default/web": waits})
		if r.View(start).Retry["default/web"] != waits {
			t.Errorf("waits: %t, and the request is not", waits)
		}
	}
}

func TestAChangeIsWrittenAFewTimes(t *testing.T) {
	create := func(s step.Step) step.Step { s.Verb = step.Create; return s }
	other := func(s step.Step) step.Step { s.Wanted = pool("web", 3); return s }
	remove := func(s step.Step) step.Step { s.Changes[0].To = nil; return s }
	for name, tc := range map[string]struct {
		step  func(n int) step.Step // nth write, from 0
		most  int
		taken bool
	}{
		"AWS returns the same":            {step: func(int) step.Step { return resize(pool("web", 2), 1, 2) }, most: 2},
		"AWS returns other values":        {step: func(n int) step.Step { return resize(pool("web", 2), 10+n, 2) }, most: 5},
		"a removal with other values":     {step: func(n int) step.Step { return remove(resize(pool("web", 2), 10+n, 2)) }, most: 20},
		"a creation":                      {step: func(int) step.Step { return create(resize(pool("web", 2), 1, 2)) }, most: 5},
		"the pool changes in Git":         {step: func(n int) step.Step { return other(resize(pool("web", 2), 1, n)) }, most: 20},
		"AWS comes to hold what it wrote": {step: func(int) step.Step { return resize(pool("web", 2), 1, 2) }, most: 20, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			var r Record
			n := 0
			for ; n < 20; n++ {
				s := tc.step(n)
				if r.View(start).Spent(s, WritesOf(s, "blue")[0]) {
					break
				}
				r.Wrote("blue", "c1", s, start)
				if tc.taken {
					r.Taken("blue", nil, nil)
				}
			}
			if n != tc.most {
				t.Errorf("%d writes, want %d", n, tc.most)
			}
		})
	}
}

// While a pool is unclear, its plan does not show that AWS holds what weir wrote.
func TestWritesOfUnclearPoolsStay(t *testing.T) {
	s := resize(pool("web", 2), 1, 2)
	config := s
	config.Pool, config.LaunchConfig = "", "default/shared"
	for name, tc := range map[string]struct {
		step    step.Step
		asked   bool
		unclear map[string]bool
		stays   bool
	}{
		"taken":                                {step: s},
		"asked for again":                      {step: s, asked: true, stays: true},
		"unclear":                              {step: s, unclear: map[string]bool{"default/web": true}, stays: true},
		"another pool is unclear":              {step: s, unclear: map[string]bool{"default/db": true}},
		"a launch configuration":               {step: config},
		"its pools may be among unclear pools": {step: config, unclear: map[string]bool{"default/db": true}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			var r Record
			r.Wrote("blue", "c1", tc.step, start)
			var plan []step.Step
			if tc.asked {
				plan = append(plan, tc.step)
			}
			r.Taken("green", nil, nil)
			r.Taken("blue", plan, tc.unclear)
			if got := r.View(start).HasWrites(); got != tc.stays {
				t.Errorf("stays: %t", got)
			}
		})
	}
}

func TestAFieldThatIsChangedBackIsLeftAlone(t *testing.T) {
	var r Record
	s, now := resize(pool("web", 2), 1, 2), start
	write := WritesOf(s, "blue")[0]
	for n := range MostCorrections + 1 { // the first write corrects nothing
		if got := r.View(now).Contested(s, write, now); got != 0 {
			t.Fatalf("contested %d times after %d writes", got, n)
		}
		r.Wrote("blue", "c1", s, now)
		r.Taken("blue", nil, nil)
		now = now.Add(time.Minute)
	}
	v := r.View(now)
	if got := v.Contested(s, write, now); got != MostCorrections {
		t.Errorf("contested %d times", got)
	}
	if at, known := v.WroteAt(write.Key); at != "c1" || !known {
		t.Errorf("written at %q, %t", at, known)
	}
	if other := resize(pool("web", 3), 1, 2); v.Contested(other, write, now) != 0 {
		t.Error("contested although Git wants something else")
	}
	v.Retry = map[string]bool{"default/web": true}
	if v.Contested(s, write, now) != 0 {
		t.Error("contested although somebody asked for another try")
	}
	if later := now.Add(CorrectionsFor); r.View(later).HasCorrections() {
		t.Error("a correction is never forgotten")
	}
}

func TestRolloutsAreCounted(t *testing.T) {
	var r Record
	key := RolloutKey("blue", "default/web", "c1", "hash")
	for n := range 3 {
		r.Started(key, start.Add(time.Duration(n)*time.Hour))
	}
	now := start.Add(2 * time.Hour)
	v := r.View(now)
	if got := []int{v.Started(key, 90*time.Minute, now), v.Started(key, RolloutsFor, now), v.Started("other", RolloutsFor, now)}; !cmp.Equal([]int{2, 3, 0}, got) {
		t.Errorf("counted %v", got)
	}
	if later := now.Add(RolloutsFor); r.View(later).Started(key, 100*time.Hour, later) != 0 {
		t.Error("a rollout is never forgotten")
	}
}

func TestForget(t *testing.T) {
	var r Record
	for _, target := range []string{"blue", "green"} {
		r.Refuse(Key{Target: target, Owner: "default/web"}, "d", denied(), start)
		r.Wrote(target, "c1", resize(pool("web", 2), 1, 2), start)
	}
	r.Refuse(Key{Target: "blue", Owner: "default/db"}, "d", &observed.Error{Kind: observed.Busy, Code: observed.CodeChanged}, start)
	blue := map[string]bool{"blue": true}
	for _, tc := range []struct {
		after           time.Duration
		parked, written int
	}{{0, 2, 1}, {UnsentMost + 6*time.Second, 1, 1}, {11 * time.Minute, 0, 1}} {
		r.Forget(blue, true, start.Add(tc.after))
		if got := r.Sizes(); got["parked"] != tc.parked || got["written"] != tc.written {
			t.Errorf("after %s: %v", tc.after, got)
		}
	}
}

// The stored form does not change: other processes read it.
func TestStoredForm(t *testing.T) {
	var r Record
	targets := []Wanted{{Target: "blue", Wanted: "w1", Rendered: true, Pools: []intent.Pool{*pool("web", 2)}}}
	if r.ToStore(targets, true, start) != nil {
		t.Error("stored before it was recalled")
	}
	r.Recall(nil, targets, start)
	s := resize(&targets[0].Pools[0], 1, 2)
	for range 2 {
		r.Wrote("blue", "c1", s, start)
	}
	r.Refuse(Key{Target: "blue", Owner: "default/web"}, "d1", denied(), start)
	r.Refuse(Key{Target: "blue", Owner: step.OwnerOfConfig + "default/shared", What: "d2"}, "d2", denied(), start)
	stored := r.ToStore(targets, true, start)
	data, err := json.Marshal(stored["blue"])
	if err != nil {
		t.Fatal(err)
	}
	write := WritesOf(s, "blue")[0]
	refusal := func(key, digest string) string {
		return `{"key":"blue\u0000` + key + `","digest":"` + digest + `","until":"2026-03-01T12:10:00Z","error":` + errorJSON(t) + `}`
	}
	want := `{"wanted":"w1","refused":[` + refusal("default/web", "d1") + `,` + refusal(step.OwnerOfConfig+`default/shared\u0000d2`, "d2") + `],` +
		`"vain":[{"owner":"default/web","pool":"default/web","what":"` + write.Key.What + `","from":"` + write.from + `","unchanged":2,"writes":2}]}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var back Stored
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	r.Stored("blue", stored["blue"])
	if again := r.ToStore(targets, true, start); len(again) > 0 {
		t.Errorf("stored once more: %v", again)
	}
	r.Succeeded(Key{Target: "blue", Owner: "default/web"})
	r.Succeeded(Key{Target: "blue", Owner: step.OwnerOfConfig + "default/shared", What: "d2"})
	r.Taken("blue", nil, nil)
	if again := r.ToStore(targets, true, start); len(again) != 1 || !again["blue"].Empty() {
		t.Errorf("what is over stays stored: %v", again)
	}
	recallInto(t, back, s, write)
}

func errorJSON(t *testing.T) string {
	t.Helper()
	err := *denied()
	err.Err = nil
	data, fault := json.Marshal(&err)
	if fault != nil {
		t.Fatal(fault)
	}
	return string(data)
}

// recallInto recalls what was stored into new records.
func recallInto(t *testing.T, stored Stored, s step.Step, write Write) {
	t.Helper()
	web := Key{Target: "blue", Owner: "default/web"}
	for name, tc := range map[string]struct {
		wanted         Wanted
		retry          []string
		refused, spent bool
	}{
		"the same":               {Wanted{"blue", "w1", true, []intent.Pool{*s.Wanted}}, nil, true, true},
		"something else":         {Wanted{"blue", "w2", true, []intent.Pool{*s.Wanted}}, nil, true, false},
		"no render":              {Wanted{"blue", "w1", false, nil}, nil, true, false},
		"another target":         {Wanted{"green", "w1", true, []intent.Pool{*s.Wanted}}, nil, false, false},
		"somebody asked for it":  {Wanted{"blue", "w1", true, []intent.Pool{*s.Wanted}}, []string{"default/web"}, false, false},
		"somebody asked another": {Wanted{"blue", "w1", true, []intent.Pool{*s.Wanted}}, []string{"default/db"}, true, true},
	} {
		var r Record
		r.Retry(tc.retry)
		early := start.Add(-time.Hour) // the clock of the new owner
		r.Recall(map[string]Stored{"blue": stored}, []Wanted{tc.wanted}, early)
		if got := r.Refused(web, "d1", early) != nil; got != tc.refused {
			t.Errorf("%s: refused: %t", name, got)
		}
		if r.Refused(web, "d1", early.Add(11*time.Minute)) != nil {
			t.Errorf("%s: it waits for longer than the error's time", name)
		}
		if got := r.View(early).Spent(s, write); got != tc.spent {
			t.Errorf("%s: spent: %t", name, got)
		}
	}
}

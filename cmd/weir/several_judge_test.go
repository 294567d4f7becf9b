package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// attempt is a request that may change AWS, as it arrives.
type attempt struct {
	at                time.Time
	member, scope, op string
	detail            string
	refused           bool
}

// sample is who owned what according to the engine, asked between two moments.
type sample struct {
	sent, received time.Time
	owners         map[string]string
}

// evidence is what AWS heard, and what the engine said meanwhile.
type evidence struct {
	attempts []attempt
	samples  []sample
}

// saw adds a sample. Of many that are alike in a row two are left: the first, and one that
// lasts as long as the others did.
func (e *evidence) saw(s sample) {
	if n := len(e.samples); n > 1 && maps.Equal(e.samples[n-1].owners, s.owners) && maps.Equal(e.samples[n-2].owners, s.owners) {
		e.samples[n-1].received = s.received
		return
	}
	e.samples = append(e.samples, s)
}

// faults are what must not have been: a write in a scope by a member that did not own it, a
// group that was rolled twice for one commit, and work that was not shared.
func (e *evidence) faults() (out []string) {
	for _, a := range e.attempts {
		before, after := -1, -1
		for i, s := range e.samples {
			if !s.received.After(a.at) || !s.sent.After(a.at) && before < 0 {
				before = i
			}
			if s.received.After(a.at) {
				after = i
				break
			}
		}
		owned := false
		for i := max(before, 0); i <= after && i < len(e.samples); i++ {
			owned = owned || e.samples[i].owners[a.scope] == "member-"+strings.ToLower(a.member)
		}
		if !owned && after >= 0 {
			out = append(out, fmt.Sprintf("%s: %s calls %s %s in %s, which is %v's then", a.at.Format("15:04:05.000"), a.member, a.op, a.detail, a.scope, e.samples[max(before, 0)].owners[a.scope]))
		}
	}
	rolled := e.rolled()
	for _, what := range slices.Sorted(maps.Keys(rolled)) {
		if n := rolled[what]; n > 1 {
			out = append(out, fmt.Sprintf("rolled %d times for one commit: %s", n, what))
		}
	}
	if writers := e.writers(); len(writers) < 2 || len(rolled) == 0 {
		out = append(out, fmt.Sprintf("the work was not shared: writes of %v, %d rollouts", writers, len(rolled)))
	}
	return out
}

// rolled counts rollouts by scope, group and version.
func (e *evidence) rolled() map[string]int {
	out := map[string]int{}
	for _, a := range e.attempts {
		if a.op == "StartInstanceRefresh" && !a.refused {
			out[a.scope+" "+a.detail]++
		}
	}
	return out
}

// writers are the members that tried to change AWS.
func (e *evidence) writers() []string {
	names := map[string]bool{}
	for _, a := range e.attempts {
		names[a.member] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (e *evidence) String() string {
	return fmt.Sprintf("%d attempts to write by %d members, %d rollouts, %d changes of owners seen", len(e.attempts), len(e.writers()), len(e.rolled()), len(e.samples))
}

// TestTheJudgeFinds what it is there for, in histories that are right but for one thing.
func TestTheJudgeFinds(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	right := func() evidence {
		e := evidence{attempts: []attempt{
			{at: at(1), member: "A", scope: "x", op: "StartInstanceRefresh", detail: "web 1"},
			{at: at(1.1), member: "A", scope: "x", op: "StartInstanceRefresh", detail: "web 1", refused: true},
			{at: at(2), member: "A", scope: "y", op: "StartInstanceRefresh", detail: "web 1"},
			{at: at(4.95), member: "A", scope: "y", op: "CreateOrUpdateTags"},
			{at: at(4.95), member: "B", scope: "y", op: "CreateOrUpdateTags"},
			{at: at(6), member: "B", scope: "y", op: "StartInstanceRefresh", detail: "web 2"},
			{at: at(8), member: "A", scope: "x", op: "UpdateAutoScalingGroup"},
			{at: at(8), member: "B", scope: "x", op: "UpdateAutoScalingGroup"},
		}}
		// A owns both, B has y from the fifth second on, and from the seventh to the ninth
		// nobody can say.
		for s := 0.0; s < 20; s += 0.1 {
			owners := map[string]string{"x": "member-a", "y": "member-a"}
			switch {
			case s > 9:
				owners["x"] = "member-b"
				fallthrough
			case s > 4.95:
				owners["y"] = "member-b"
			}
			if s < 7 || s > 9 {
				e.saw(sample{at(s), at(s + 0.02), owners})
			}
		}
		return e
	}
	e := right()
	if faults := e.faults(); len(faults) > 0 {
		t.Errorf("a history that is right: %v", faults)
	}
	for name, tc := range map[string]struct {
		doctor func(*evidence)
		want   string
	}{
		"a former owner that writes on": {func(e *evidence) {
			e.attempts = append(e.attempts, attempt{at: at(6.5), member: "A", scope: "y", op: "UpdateAutoScalingGroup", detail: "web"})
		}, "00:00:06.500: A calls UpdateAutoScalingGroup web in y, which is member-b's then"},
		"a refused one, too": {func(e *evidence) {
			e.attempts = append(e.attempts, attempt{at: at(12), member: "A", scope: "x", op: "DeleteTags", refused: true})
		}, "A calls DeleteTags  in x, which is member-b's then"},
		"one that is early": {func(e *evidence) {
			e.attempts = append(e.attempts, attempt{at: at(3), member: "B", scope: "y", op: "CreateLaunchTemplateVersion"})
		}, "B calls CreateLaunchTemplateVersion  in y, which is member-a's then"},
		"a stranger while nobody could say": {func(e *evidence) {
			e.attempts = append(e.attempts, attempt{at: at(8), member: "C", scope: "x", op: "DeleteTags"})
		}, "C calls DeleteTags  in x"},
		"a scope that nobody owns": {func(e *evidence) {
			e.attempts = append(e.attempts, attempt{at: at(1), member: "A", scope: "z", op: "DeleteTags"})
		}, "A calls DeleteTags  in z, which is 's then"},
		"a successor that rolls again": {func(e *evidence) {
			e.attempts = append(e.attempts, attempt{at: at(6.5), member: "B", scope: "y", op: "StartInstanceRefresh", detail: "web 1"})
		}, "rolled 2 times for one commit: y web 1"},
		"one that does everything": {func(e *evidence) {
			e.attempts = e.attempts[:3]
		}, "the work was not shared: writes of [A], 2 rollouts"},
		"nothing rolled": {func(e *evidence) {
			e.attempts = e.attempts[3:5]
		}, "the work was not shared: writes of [A B], 0 rollouts"},
	} {
		e := right()
		tc.doctor(&e)
		if faults := e.faults(); len(faults) != 1 || !strings.Contains(faults[0], tc.want) {
			t.Errorf("%s: %q, want %q", name, faults, tc.want)
		}
	}
}

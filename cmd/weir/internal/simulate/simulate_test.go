package simulate

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A seed makes the same run only where one goroutine runs at a time and none is
// interrupted, which a process is told when it starts.
func TestMain(m *testing.M) {
	const setting = "asyncpreemptoff=1"
	if !strings.Contains(os.Getenv("GODEBUG"), setting) {
		program, err := os.Executable()
		if err == nil {
			env := append(os.Environ(), "GOMAXPROCS=1", "GODEBUG="+strings.TrimPrefix(os.Getenv("GODEBUG")+","+setting, ","))
			err = syscall.Exec(program, os.Args, env) //nolint:gosec // It is this program.
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	debug.SetGCPercent(400) // time is dearer here than memory
	os.Exit(m.Run())
}

// wanted skips where there is no git, and where a short run is asked for.
func wanted(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a world takes some seconds")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the git binary is not installed")
	}
}

func options(seed uint64) Options {
	// Of four seeds one is of two daemons, and one of a daemon that applies what is approved.
	daemons := 1
	if seed%4 == 0 {
		daemons = 2
	}
	return Options{
		Seed: seed, Pools: number("POOLS", 4), Days: number("DAYS", 1), Events: number("EVENTS", 48), Faults: float64(number("FAULTS", 1)), Leave: leave(), Interval: 10 * time.Minute,
		Daemons: number("DAEMONS", daemons), Reviewed: seed%4 == 1,
	}
}

// number is a number of the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("WEIR_SIMULATE_" + name)); err == nil {
		return n
	}
	return otherwise
}

func leave() (out []int) {
	for _, text := range strings.Split(os.Getenv("WEIR_SIMULATE_LEAVE"), ",") {
		if n, err := strconv.Atoi(text); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// seeds reads 3, 1-20 or 1-20,33.
func seeds(t *testing.T, text string) (out []uint64) {
	t.Helper()
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 64)
		last, err2 := strconv.ParseUint(to, 10, 64)
		if err != nil || err2 != nil || last < first {
			t.Fatalf("%q are no seeds; write 7, 1-20 or 1-20,33", text)
		}
		for s := first; s <= last; s++ {
			out = append(out, s)
		}
	}
	return out
}

// Whatever happens, and whatever becomes of the calls: the invariants hold,
// and after some hours of rest AWS is what Git says.
func TestSimulate(t *testing.T) {
	wanted(t)
	text := os.Getenv("WEIR_SIMULATE_SEEDS")
	if text == "" {
		text = "1-4"
	}
	for _, seed := range seeds(t, text) {
		o := options(seed)
		if name := os.Getenv("WEIR_SIMULATE_LOG"); name != "" {
			f, err := os.Create(name) //nolint:gosec // It is named by who runs the test.
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			o.Log = f
		}
		began := time.Now()
		r := Run(t, o)
		t.Logf("seed %d: %d days in %v, %d steps, %d writes, %d decisions, sum %x", seed, o.Days, time.Since(began).Round(time.Millisecond), r.Steps, r.Writes, len(r.Decisions), r.Sum)
		if len(r.Failed) == 0 {
			continue
		}
		small, least := Shrink(t, o, r, number("SHRINK", 60))
		t.Errorf("seed %d fails:\n%s\nwith %d decisions:\n%v\nat the end:\n%s\nagain: make simulate SEEDS=%d DAYS=%d LEAVE=%s", seed, strings.Join(least.Failed, "\n"), len(least.Decisions), lines(least.Decisions), least.Last, seed, o.Days, list(small.Leave))
	}
}

func lines(all []Decision) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintln(&b, d)
	}
	return b.String()
}

func list(steps []int) string {
	slices.Sort(steps)
	var out []string
	for _, s := range slices.Compact(steps) {
		out = append(out, strconv.Itoa(s))
	}
	return strings.Join(out, ",")
}

// A seed makes the same run again. What goroutines of one process do beside each other at
// one moment the machine decides, which tells under load: plans of pull requests that wait
// for one another are left out, and of four runs two must be the same.
func TestASeedReplays(t *testing.T) {
	wanted(t)
	o := options(4)
	o.Days, o.Leave, o.Alone = 1, nil, true
	var runs [][]string
	for len(runs) < 4 {
		var b bytes.Buffer
		o.Log = &b
		r := Run(t, o)
		if len(r.Failed) > 0 {
			t.Fatalf("%v", r.Failed)
		}
		var notes []string
		for line := range strings.Lines(b.String()) {
			if !strings.HasPrefix(line, "time=") { // what daemons log has times of the machine
				notes = append(notes, line)
			}
		}
		if slices.ContainsFunc(runs, func(before []string) bool { return slices.Equal(before, notes) }) {
			return
		}
		runs = append(runs, notes)
	}
	for i, line := range runs[0] {
		if i >= len(runs[1]) || runs[1][i] != line {
			t.Fatalf("line %d is %q, and in the second run %q", i, line, runs[1][min(i, len(runs[1])-1)])
		}
	}
}

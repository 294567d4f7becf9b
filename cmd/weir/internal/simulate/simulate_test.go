package simulate

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
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

// exact says that nothing takes a goroutine's turn away, so that a seed makes the same run again.
var exact bool

// A seed makes the same run only where one goroutine runs at a time and none is
// interrupted, which a process is told when it starts.
func TestMain(m *testing.M) {
	const setting, done = "asyncpreemptoff=1", "WEIR_SIMULATE_ALONE"
	if os.Getenv(done) == "" && os.Getenv("WEIR_SIMULATE_PLANT") == "" { // who plants runs others
		program, err := os.Executable()
		if err == nil {
			env := append(os.Environ(), "GOMAXPROCS=1", "TMPDIR="+cmp.Or(inMemory(), os.TempDir()), "GODEBUG="+strings.TrimPrefix(os.Getenv("GODEBUG")+","+setting, ","))
			if err = alone(program, append(env, done+"=exact")); err != nil {
				fmt.Fprintf(os.Stderr, "no seed makes the same run again for sure: %v\n", err)
				err = syscall.Exec(program, os.Args, append(env, done+"=mostly")) //nolint:gosec // It is this program.
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	exact = os.Getenv(done) == "exact"
	_ = os.Unsetenv(done)
	debug.SetGCPercent(-1) // the world does it, when nothing else happens
	os.Exit(m.Run())
}

// wanted skips where there is no git, and where a short run is asked for.
func wanted(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short is set: each simulated world takes seconds")
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
	if members := number("MEMBERS", 0); members > 0 {
		return several(seed, members)
	}
	return Options{
		Seed: seed, Pools: number("POOLS", 4), Days: number("DAYS", 1), Events: number("EVENTS", 48), Faults: float64(number("FAULTS", 1)), Leave: leave(), Interval: 10 * time.Minute,
		Daemons: number("DAEMONS", daemons), Reviewed: seed%4 == 1,
	}
}

// several are the options of an instance of several members: so much happens to them that
// hours are enough.
func several(seed uint64, members int) Options {
	return Options{
		Seed: seed, Pools: number("POOLS", 2), Hours: number("HOURS", 2), Events: number("EVENTS", 600), Faults: float64(number("FAULTS", 1)), Leave: leave(), Interval: 2 * time.Minute,
		Members: members, Reviewed: seed%4 == 1,
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

// Whatever happens, the invariants hold, and after some hours of rest AWS is what Git says.
func TestSimulate(t *testing.T) {
	wanted(t)
	text := os.Getenv("WEIR_SIMULATE_SEEDS")
	if text == "" {
		text = "1,4" // make soak has more
	}
	for _, seed := range seeds(t, text) {
		o := options(seed)
		o.Log = logFile(t)
		began := time.Now()
		r := Run(t, o)
		t.Logf("seed %d: %d days in %v, %d steps, %d writes, %d decisions, sum %x", seed, o.Days, time.Since(began).Round(time.Millisecond), r.Steps, r.Writes, len(r.Decisions), r.Sum)
		if len(r.Failed) == 0 {
			continue
		}
		t.Logf("seed %d fails before anything is left out:\n%s\nat the end:\n%s", seed, strings.Join(r.Failed, "\n"), r.Last)
		small, least := Shrink(t, o, r, number("SHRINK", 60))
		t.Errorf("seed %d fails:\n%s\nwith %d decisions:\n%v\nat the end:\n%s\nagain: make simulate SEEDS=%d DAYS=%d MEMBERS=%d LEAVE=%s", seed, strings.Join(least.Failed, "\n"), len(least.Decisions), lines(least.Decisions), least.Last, seed, o.Days, o.Members, list(small.Leave))
	}
}

// logFile is the file that gets a line for each step, nil for none.
func logFile(t *testing.T) io.Writer {
	name := os.Getenv("WEIR_SIMULATE_LOG")
	if name == "" {
		return nil
	}
	f, err := os.Create(name) //nolint:gosec // It is named by who runs the test.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
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

// The members of one instance are killed, stand still for longer than their leases, lose the
// engine and are told to hand over: one of them at a time writes to an account and region, one
// speaks, and in the end AWS is what Git says. MEMBERS=3 has TestSimulate do so for any seed.
func TestMembers(t *testing.T) {
	wanted(t)
	runs := map[uint64]int{2: 3}
	if os.Getenv("WEIR_SOAK") != "" {
		runs[1] = 2
	}
	for seed, members := range runs {
		for _, failed := range Run(t, several(seed, members)).Failed {
			t.Errorf("make simulate MEMBERS=%d SEEDS=%d: %s", members, seed, failed)
		}
	}
}

// A seed makes the same run again, also on a machine that has much else to do. Go's runtime
// picks some orders at random, so now and then a run differs: two of four are the same.
// REPLAYS=20 wants all of 20 to be.
func TestASeedReplays(t *testing.T) {
	wanted(t)
	if !exact {
		t.Skip("this machine lets no process trace another: a run in some differs")
	}
	all := number("REPLAYS", 0)
	for _, seed := range seeds(t, cmp.Or(os.Getenv("WEIR_SIMULATE_SEEDS"), "4")) {
		var runs [][]string
		same := false
		for len(runs) < cmp.Or(all, 4) && (all > 0 || !same) {
			notes := notesOf(t, seed)
			same = slices.ContainsFunc(runs, func(earlier []string) bool { return slices.Equal(earlier, notes) })
			if len(runs) > 0 && !slices.Equal(runs[0], notes) {
				i := differAt(runs[0], notes)
				t.Logf("line %d of run %d of seed %d is %q, and in the first %q", i, len(runs)+1, seed, notes[i], runs[0][i])
				if all > 0 {
					t.FailNow()
				}
			}
			runs = append(runs, notes)
		}
		if !same {
			t.Errorf("%d runs of seed %d are all different", len(runs), seed)
		}
	}
}

// differAt is the first place where two runs differ, or the last of the shorter one.
func differAt(a, b []string) int {
	i := 0
	for i < min(len(a), len(b))-1 && a[i] == b[i] {
		i++
	}
	return i
}

// notesOf runs a seed and returns the lines of its log, without what daemons log: that has
// times of the machine.
func notesOf(t *testing.T, seed uint64) (notes []string) {
	t.Helper()
	o := options(seed)
	var b bytes.Buffer
	o.Log = &b
	if r := Run(t, o); len(r.Failed) > 0 {
		t.Fatalf("%v", r.Failed)
	}
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "time=") {
			notes = append(notes, line)
		}
	}
	return notes
}

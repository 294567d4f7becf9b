package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fleetSizes are those of the short form, and of the whole that make soak runs, with so many
// machines in a pool.
func fleetSizes(machines int) fleetSize {
	if os.Getenv("WEIR_SOAK") != "" {
		return fleetSize{number("CLUSTERS", 10), number("POOLS", 5), number("MACHINES", machines)}
	}
	return fleetSize{number("CLUSTERS", 3), number("POOLS", 2), number("MACHINES", 8)}
}

// A fleet is rolled in waves: a good image reaches all of it, a bad one some machines of one
// pool, and the revert that weir proposes puts all right.
func TestSoakOfAFleet(t *testing.T) {
	inFleet(t, fleetSizes(100), 1, func(f *fleet) {
		f.begin()
		f.good()
		f.bad()
	})
}

// TestSoakOfAPublishedImage: pools follow images, and nobody commits anything. A good image
// that is published reaches all of them, a bad one, published before the refreshes to the good
// one have ended, some machines of one pool, and merging the pull request that pins the good one
// puts all right.
func TestSoakOfAPublishedImage(t *testing.T) {
	inFleet(t, fleetSizes(100), 1, func(f *fleet) {
		f.follows = true
		f.begin()
		f.good()
		f.bad()
		if p := f.forge.proposed(false)[0]; !strings.HasPrefix(p.Head, "weir/pin-") || !strings.Contains(p.Title, imageGood) {
			t.Errorf("%s: %s", p.Head, p.Title)
		}
	})
}

// The same, with daemons that are killed again and again, at moments that a seed picks: alone,
// or one of two.
func TestSoakOfAFleetWhoseDaemonsAreKilled(t *testing.T) {
	first := 2
	if os.Getenv("WEIR_SOAK") != "" {
		first = 1
	}
	for members := first; members <= 2; members++ {
		seed := uint64(number("SEED", 1))
		t.Run(fmt.Sprintf("%d of seed %d", members, seed), func(t *testing.T) {
			inFleet(t, fleetSizes(20), members, func(f *fleet) {
				f.begin()
				f.rand = rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // It is repeated on purpose.
				f.strike(8, time.Hour, 6)
				f.good()
				f.strike(4, 10*time.Minute, 2)
				f.bad()
				if f.kills < 6 {
					t.Errorf("daemons were killed %d times", f.kills)
				}
			})
		})
	}
}

// begin has daemons make the fleet.
func (f *fleet) begin() {
	f.publish(imageOld)
	if !f.follows { // commits name them
		f.publish(imageGood)
		f.publish(imageBad)
	}
	first := f.push("first", f.files(imageOld))
	for _, m := range f.members {
		f.start(m)
	}
	f.until("the fleet is made", 2*time.Hour, f.whole(imageOld, first))
	f.figures("the fleet is made")
}

// strike has daemons be killed so often from now on, within a time, and at some of the next
// calls that change AWS.
func (f *fleet) strike(times int, within time.Duration, writes int) {
	f.strikes = nil
	for range times {
		f.strikes = append(f.strikes, time.Now().Add(time.Duration(f.rand.Int64N(int64(within)))))
	}
	slices.SortFunc(f.strikes, time.Time.Compare)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killAt = nil
	for at := f.writes; len(f.killAt) < writes; {
		at += 1 + f.rand.IntN(3)
		f.killAt = append(f.killAt, at)
	}
}

// good rolls a good image.
func (f *fleet) good() {
	began := time.Now()
	commit := f.bring("a good image", imageGood)
	f.until("a good image is rolled", 4*time.Hour, f.whole(imageGood, commit))
	f.figures("a good image is rolled")
	if took := time.Since(began); took > 90*time.Minute && !f.follows {
		f.t.Errorf("a good image took %v", took)
	}
}

// bring has the fleet get an image, by a commit or because it was published, and says which
// commit is followed then.
func (f *fleet) bring(what, image string) string {
	if f.follows {
		f.publish(image)
		return f.tip()
	}
	return f.push(what, f.files(image))
}

// publish makes an image the newest of those that pools look for.
func (f *fleet) publish(id string) {
	image := fmt.Sprintf(`{"id": %q, "name": "published-%s", "architecture": "x86_64", "created": %q}`, id, id, time.Now().UTC().Format(time.RFC3339))
	if err := f.aws.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"images": [` + image + `]}}}`)); err != nil {
		f.t.Fatal(err)
	}
	f.say("%s is published", id)
}

// within is how long new machines have to become Ready, by the fleet's FleetRollout.
const within = 4 * time.Minute

// bad rolls an image with which no machine becomes Ready.
func (f *fleet) bad() {
	began := time.Now()
	commit := f.bring("a bad image", imageBad)
	var first time.Time
	f.until("the bad image is stopped", 3*time.Hour, func(stands) string {
		if first.IsZero() && f.first != "" {
			first = f.launchedAt(f.first)
		}
		groups, machines := f.launched(imageBad)
		r := f.rollout()
		if r == nil || r.Revision != commit || r.Stopped == nil {
			return fmt.Sprintf("%d machines of %v", machines, groups)
		}
		if moving := f.refreshing(groups); len(moving) > 0 {
			return fmt.Sprintf("AWS replaces machines of %v", moving)
		}
		return ""
	})
	end := f.rollout().Stopped.At
	cancels := f.asked("CancelInstanceRefresh", began)
	if n := len(cancels); n > 0 && cancels[n-1].Time.After(end) {
		end = cancels[n-1].Time
	}
	signal := first.Add(within)
	if f.lived.After(signal) { // a daemon has to be there to see it
		signal = f.lived
	}
	f.t.Logf("stopped %v after the first new machine's time to become Ready was over, with %d cancellations: %s", end.Sub(signal).Round(time.Millisecond), len(cancels), f.rollout().Stopped.Why)
	if end.Sub(signal) > time.Minute {
		f.t.Errorf("stopped %v after the first bad sign", end.Sub(signal))
	}
	f.until("a pull request", 10*time.Minute, func(stands) string {
		if n := len(f.forge.proposed(false)); n != 1 {
			return fmt.Sprint(n, " pull requests")
		}
		return ""
	})
	f.figures("a bad image is stopped")

	stopped := time.Now()
	for _, m := range f.members { // each takes over in its turn
		f.stop(m)
		f.until("the others go on", 2*time.Minute, f.pause(time.Minute))
		f.start(m)
	}
	files := f.files(imageBad)
	files["README.md"], files["overlays/c1/pools.yaml"] = "more", files["overlays/c1/pools.yaml"]+"# more\n"
	other := f.push("another commit", files)
	f.until("another commit is looked at", time.Hour, f.pause(10*time.Minute))
	if got := f.forge.last(other, "fleet/apply"); got.State == "success" {
		f.t.Errorf("the commit that leaves the bad image where it is: %s %s", got.State, got.Description)
	}
	if again := f.asked("StartInstanceRefresh", stopped); len(again) > 0 {
		f.t.Errorf("it is rolled out again: %s", again[0].Body)
	}
	groups, machines := f.launched(imageBad)
	f.t.Logf("machines with the bad image: %v", groups)
	if machines > 50 || machines > f.size.machines/2 || machines == 0 || len(groups) != 1 {
		f.t.Errorf("%d machines got the bad image, of %v", machines, groups)
	}
	f.figures("and rests")

	f.forge.proposed(true)
	f.until("the revert is rolled", 3*time.Hour, f.whole(imageGood, f.tip()))
	if n := len(f.forge.proposed(false)); n != 1 || f.forge.pushes != 1 {
		f.t.Errorf("%d pull requests by %d pushes", n, f.forge.pushes)
	}
	f.figures("its revert is merged")
}

// pause is empty after a while.
func (f *fleet) pause(long time.Duration) func(stands) string {
	end := time.Now().Add(long)
	return func(stands) string {
		if time.Now().Before(end) {
			return "it is not time yet"
		}
		return ""
	}
}

// figures says what a part of the test took.
func (f *fleet) figures(what string) {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	cpu := time.Duration(use.Utime.Nano() + use.Stime.Nano())
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	counts, total, refused := f.aws.CallCounts(), 0, 0
	for _, c := range f.aws.Calls() {
		if c.ErrorCode != "" {
			refused++
		}
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		total += counts[name]
		text += fmt.Sprintf("\n  %6d %s", counts[name], name)
	}
	f.t.Logf("%s: %v emulated, %v of CPU, heap %d MB, at most %d MB, %d kills, %d calls to AWS, %d of the last refused:%s", what, time.Since(f.mark).Round(time.Second), (cpu - f.cpu).Round(time.Millisecond), m.HeapAlloc>>20, use.Maxrss>>10, f.kills, total, refused, text)
	f.mark, f.cpu = time.Now(), cpu
	f.aws.ResetCalls()
}

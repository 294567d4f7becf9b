package simulate

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A daemon of 20 pools lives for years: what it holds in memory and on disk comes to a level
// and stays there. Its process is one all the time, for what the test's own process holds of
// those that have ended is no daemon's.
func TestSoak(t *testing.T) {
	if os.Getenv("WEIR_SOAK") == "" {
		t.Skip("it takes most of an hour; make soak runs it")
	}
	wanted(t)
	s := soak{t: t, every: number("EVERY", 100), level: 2 * number("EVERY", 100)}
	r := Run(t, Options{
		Seed: 1, Pools: number("POOLS", 20), Days: number("DAYS", 2000), Events: number("EVENTS", 6), Faults: 0.2, Interval: time.Hour, Daemons: 1, Steady: true, Forgets: true, Daily: s.look,
	})
	for _, f := range r.Failed {
		t.Error(f)
	}
}

// soak holds what a daemon holds now against what it holds when it had come to its level.
type soak struct {
	t            *testing.T
	every, level int
	at           []holds
}

// holds is what a daemon holds; its world, which is in the same process, holds some of it.
type holds struct {
	Heap, Goroutines, Files, State, StateFiles, Mirror, MirrorFiles int
}

func (s *soak) look(w *World, day int) {
	if day%s.every != 0 || w.members[0].process == nil {
		return
	}
	dir := w.members[0].process.dir
	var now holds
	now.State, now.StateFiles = size(filepath.Join(dir, "state"), "mirrors")
	now.Mirror, now.MirrorFiles = size(filepath.Join(dir, "state", "mirrors"), "")
	now.Goroutines = runtime.NumGoroutine()
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		now.Files = len(list)
	}
	runtime.GC()
	runtime.GC() // what finalizers have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	now.Heap = int(m.HeapAlloc)
	if name := os.Getenv("WEIR_SIMULATE_HEAP"); name != "" {
		if f, err := os.Create(name); err == nil { //nolint:gosec // It is named by who runs the test.
			_ = pprof.WriteHeapProfile(f)
			_ = f.Close()
		}
	}
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	s.t.Logf("day %d after %d s of CPU, %d steps, %d writes: %+v", day, use.Utime.Sec+use.Stime.Sec, w.step, w.checks.writes, now)
	s.at = append(s.at, now)
	if day <= s.level {
		return
	}
	was := s.at[s.level/s.every-1]
	const mib = 1 << 20
	for _, one := range []struct {
		what           string
		was, now, most int
	}{
		{"heap", was.Heap, now.Heap, was.Heap*3/2 + 8*mib},
		{"goroutines", was.Goroutines, now.Goroutines, was.Goroutines + 20},
		{"open files", was.Files, now.Files, 250}, // one for each pack of the mirror, up to 200
		{"bytes of state", was.State, now.State, was.State*3/2 + 2*mib},
		{"files of state", was.StateFiles, now.StateFiles, was.StateFiles + 20},
		{"files of the mirror", was.MirrorFiles, now.MirrorFiles, 600}, // it is made again at 200 packs, of two files or three
	} {
		if one.now > one.most {
			s.t.Errorf("day %d: %s: %d, and %d on day %d", day, one.what, one.now, one.was, s.level)
		}
	}
}

// size is what the files below a directory hold, but for those below one of its own.
func size(dir, but string) (bytes, files int) {
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // It went meanwhile.
		}
		if e.IsDir() && but != "" && name == filepath.Join(dir, but) {
			return fs.SkipDir
		}
		if info, err := e.Info(); err == nil && !e.IsDir() {
			bytes += int(info.Size())
			files++
		}
		return nil
	})
	return bytes, files
}

// forget drops what happened long ago: a forge that is asked about it says that it does not
// know, and Git packs what it has.
func (w *World) forget(day int) {
	w.struck = nil
	w.aws.ResetCalls()
	w.forge.pulls = slices.DeleteFunc(w.forge.pulls, func(p *pull) bool { return p.state != "open" && time.Since(p.updated) > 10*24*time.Hour })
	w.forge.comments = slices.DeleteFunc(w.forge.comments, func(c *comment) bool {
		return !slices.ContainsFunc(w.forge.pulls, func(p *pull) bool { return p.number == c.number })
	})
	keep := map[string]bool{}
	for _, h := range w.repo.heads {
		keep[h.revision] = true
	}
	for _, p := range w.forge.pulls {
		for _, c := range p.commits {
			keep[c.revision] = true
		}
	}
	for sha := range w.forge.statuses {
		if !keep[sha] {
			delete(w.forge.statuses, sha)
		}
	}
	for sha := range w.checks.deleted {
		if !keep[sha] {
			delete(w.checks.deleted, sha)
		}
	}
	if day%20 == 0 {
		w.repo.git(w.repo.dir(), nil, "repack", "-adkq")
	}
}

package simulate

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A daemon of 20 pools lives for years: what it holds in memory and on disk comes to a level
// and stays there. RESTART=10 has it stop and start again each ten days.
func TestSoak(t *testing.T) {
	if os.Getenv("WEIR_SOAK") == "" {
		t.Skip("it takes most of an hour; make soak runs it")
	}
	wanted(t)
	runtime.MemProfileRate = 16 << 10
	s := soak{t: t, every: number("EVERY", 100), level: 2 * number("EVERY", 100), restart: number("RESTART", 0)}
	r := Run(t, Options{
		Log: logFile(t), Seed: 1, Pools: number("POOLS", 20), Days: number("DAYS", 2000), Events: number("EVENTS", 6), Faults: 0.2, Interval: time.Hour, Daemons: 1, Steady: true, Forgets: true, Daily: s.look,
	})
	for _, f := range r.Failed {
		t.Error(f)
	}
}

// The process keeps no memory of a daemon that has ended.
func TestEndedDaemonsAreLetGo(t *testing.T) {
	wanted(t)
	r := Run(t, Options{Seed: 1, Pools: 2, Days: 4, Events: 12, Faults: 0.2, Interval: time.Hour, Daily: func(w *World, _ int) {
		w.restart()
		if n := w.alive(); n > 1 {
			t.Errorf("%d of %d daemons are in memory, and one runs", n, len(w.members[0].apps))
		}
	}})
	for _, f := range r.Failed {
		t.Error(f)
	}
}

// restart stops the daemon and starts it again.
func (w *World) restart() {
	if m := w.members[0]; m.process != nil {
		dir := m.process.dir
		m.stop()
		m.start(dir)
		w.run(time.Now().Add(time.Minute))
	}
}

// alive is how many processes of the first member are in memory.
func (w *World) alive() (n int) {
	runtime.GC()
	runtime.GC() // what finalizers have let go
	for _, a := range w.members[0].apps {
		if a.Value() != nil {
			n++
		}
	}
	return n
}

// soak holds what a daemon holds now against what it holds when it had come to its level.
type soak struct {
	t                     *testing.T
	every, level, restart int
	at                    []holds
}

// holds is what a daemon holds, with so many pull requests open. Of the heap, Objects are those of Git that it keeps, which
// have bounds of their own, and World is what the world holds that is in the same process.
type holds struct {
	Pulls, Heap, Weir, Objects, World, Goroutines, Files, State, StateFiles, Mirror, MirrorFiles int
}

// heap says whose what is on the heap is, by the innermost function of weir that took it.
func (h *holds) heap() {
	n, _ := runtime.MemProfile(nil, false)
	records := make([]runtime.MemProfileRecord, n+100)
	n, _ = runtime.MemProfile(records, false)
	for _, r := range records[:n] {
		bytes, objects := float64(r.InUseBytes()), float64(r.InUseObjects())
		if objects == 0 {
			continue
		}
		bytes /= 1 - math.Exp(-bytes/objects/float64(runtime.MemProfileRate)) // of which one in some is on record
		whose := &h.Weir
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			name, ours := strings.CutPrefix(f.Function, "github.com/weir-gitops/weir/")
			if !ours {
				continue
			}
			switch {
			case strings.HasPrefix(name, "source/git."):
				whose = &h.Objects
			case strings.HasPrefix(name, "reconciler/awsemu"), strings.HasPrefix(name, "cmd/weir/internal/simulate."):
				whose = &h.World
			}
			break
		}
		*whose += int(bytes)
	}
}

func (s *soak) look(w *World, day int) {
	if s.restart > 0 && day%s.restart == 0 {
		w.restart()
	}
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
	if n := w.alive(); n > 1 {
		s.t.Errorf("day %d: %d daemons are in memory, and one runs", day, n)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	now.Heap = int(m.HeapAlloc)
	for _, p := range w.forge.pulls {
		if p.state == "open" {
			now.Pulls++
		}
	}
	now.heap()
	if name := os.Getenv("WEIR_SIMULATE_HEAP"); name != "" {
		if f, err := os.Create(fmt.Sprintf("%s.%d", name, day)); err == nil { //nolint:gosec // It is named by who runs the test.
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
		{"heap of weir", was.Weir, now.Weir, was.Weir*5/4 + 4*mib},
		{"heap of Git's objects", was.Objects, now.Objects, 96 * mib}, // the bounds of source/git's caches
		{"heap of the world", was.World, now.World, was.World*5/4 + 4*mib},
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
	for _, p := range w.forge.pulls { // what nobody has looked at for a month is closed
		if p.state == "open" && time.Since(p.updated) > 30*24*time.Hour {
			p.state, p.updated = "closed", time.Now()
		}
	}
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
	maps.DeleteFunc(w.checks.deleted, func(at place, _ *deletion) bool { return !keep[at.revision] })
	if day%20 == 0 {
		w.repo.git(w.repo.dir(), nil, "repack", "-adkq")
	}
}

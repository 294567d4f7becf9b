package simulate

import (
	"maps"
	"path"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
)

// settle: after all that, weir and AWS come to rest, and to what Git says.
func (w *World) settle() {
	w.calm = true
	// Git wants again what waits for somebody, such as deletions above the limit.
	next := w.repo.head().clone()
	next.broken = false
	for key := range next.pools {
		if t := w.targetOf(key); w.targetOfGroup(path.Base(key)) != t {
			delete(next.pools, key) // another weir's
		}
	}
	names := slices.Collect(maps.Keys(w.groups()))
	for _, t := range w.targets {
		for _, name := range append(names, t.prefix+"0") {
			if key := t.name + "/" + name; w.targetOfGroup(name) == t && next.pools[key] == (pool{}) {
				next.pools[key] = pool{max: 3, kind: types[0], owner: "team-0"}
			}
		}
	}
	w.trace("%s", w.commit(w.dice(-1), next, "mended"))
	round := min(30*time.Minute, 3*w.o.Interval)
	w.run(time.Now().Add(2 * round)) // who was killed has started again
	for _, t := range w.targets {
		t.command(commands.ResumePath, gates.Request{All: true})
		if w.stopped[t] { // who cancelled a rollout by hand lets weir try again
			t.command(commands.ReconcilePath, gates.Request{Retry: true})
		}
	}
	rounds := 16
	if w.engine != nil {
		rounds = 8
	}
	for range rounds {
		w.run(time.Now().Add(round))
		for _, m := range w.instances {
			if m.reviewed {
				m.approve()
			}
		}
	}
	w.checks.written = nil
	before, turns := w.asked(), 0
	if w.engine != nil {
		turns = w.engine.turns
	}
	w.run(time.Now().Add(4 * round))
	first := w.asked() - before
	w.run(time.Now().Add(4 * round))
	if second := w.asked() - before - first; second > 2*first+20 {
		w.fail("two hours at rest took %d steps, and the next two %d", first, second)
	}
	if first > 2000*len(w.members) {
		w.fail("two hours at rest took %d steps", first)
	}
	if n := w.checks.written; len(n) > 0 {
		w.fail("at rest weir writes: %v", n)
	}
	if w.engine != nil {
		w.engine.atRest(w.engine.turns-turns, 8*round)
		w.engine.owned()
		w.engine.strayed()
	}
	w.same()
}

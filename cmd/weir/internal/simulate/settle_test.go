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
	// What waits for somebody, as deletions above the limit do, is wanted again.
	next := w.repo.head().clone()
	next.broken = false
	for key := range next.pools {
		if m := w.memberOf(key); w.memberOfGroup(path.Base(key)) != m {
			delete(next.pools, key) // another weir's
		}
	}
	names := slices.Collect(maps.Keys(w.groups()))
	for _, m := range w.members {
		for _, name := range append(names, m.prefix+"0") {
			if key := m.target + "/" + name; w.memberOfGroup(name) == m && next.pools[key] == (pool{}) {
				next.pools[key] = pool{max: 3, kind: types[0], owner: "team-0"}
			}
		}
	}
	w.trace("%s", w.commit(w.dice(-1), next, "mended"))
	w.run(time.Now().Add(time.Hour)) // who was killed has started again
	for _, m := range w.members {
		m.command(commands.ResumePath, gates.Request{Target: m.target, All: true})
	}
	for range 16 {
		w.run(time.Now().Add(30 * time.Minute))
		for _, m := range w.members {
			if m.reviewed {
				m.approve()
			}
		}
	}
	w.checks.written = nil
	before := w.step
	w.run(time.Now().Add(2 * time.Hour))
	first := w.step - before
	w.run(time.Now().Add(2 * time.Hour))
	if second := w.step - before - first; second > 2*first+20 {
		w.fail("two hours at rest took %d steps, and the next two %d", first, second)
	}
	if first > 2000*len(w.members) {
		w.fail("two hours at rest took %d steps", first)
	}
	if n := w.checks.written; len(n) > 0 {
		w.fail("at rest weir writes: %v", n)
	}
	w.same()
}

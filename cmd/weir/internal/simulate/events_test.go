package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
)

// event is something that happens at a moment.
type event struct {
	at time.Time
	do func()
}

// at has something happen after a while.
func (w *World) at(after time.Duration, do func()) {
	e := event{time.Now().Add(after), do}
	i, _ := slices.BinarySearchFunc(w.events, e, func(a, b event) int {
		if a.at.After(b.at) {
			return 1
		}
		return -1
	})
	w.events = slices.Insert(w.events, i, e)
}

// happening is something that people or machines do. Of each, weight says how often it is
// taken beside the others; do returns what was done, "" for nothing.
type happening struct {
	weight int
	do     func(w *World, r *rand.Rand) string
}

// happenings are all that may happen.
var happenings = []happening{
	// Commits.
	{12, func(w *World, r *rand.Rand) string {
		return w.change(r, "size", func(p *pool) { p.max = 2 + r.IntN(5) })
	}},
	{6, func(w *World, r *rand.Rand) string {
		return w.change(r, "type", func(p *pool) { p.kind = types[r.IntN(len(types))] })
	}},
	{4, func(w *World, r *rand.Rand) string {
		return w.change(r, "tag", func(p *pool) { p.owner = "team-" + strconv.Itoa(r.IntN(4)) })
	}},
	{4, func(w *World, r *rand.Rand) string {
		next := w.repo.head().clone()
		name := fmt.Sprintf("pool-%d", r.IntN(3*w.o.Pools))
		if _, there := next.pools[name]; there {
			return ""
		}
		next.pools[name] = pool{max: 3, kind: types[0], owner: "team-0"}
		return w.commit(next, "add "+name, false)
	}},
	{4, func(w *World, r *rand.Rand) string {
		next := w.repo.head().clone()
		name := w.any(r)
		if name == "" || len(next.pools) < 2 {
			return ""
		}
		delete(next.pools, name)
		return w.commit(next, "remove "+name, false)
	}},
	{2, func(w *World, _ *rand.Rand) string { // somebody else's name
		next := w.repo.head().clone()
		if _, there := next.pools[foreignName]; there {
			delete(next.pools, foreignName)
		} else {
			next.pools[foreignName] = pool{max: 3, kind: types[0], owner: "team-0"}
			w.alike()
		}
		return w.commit(next, "the name of another weir's group, or no more", false)
	}},
	{1, func(w *World, _ *rand.Rand) string {
		next := w.repo.head().clone()
		next.pools = map[string]pool{}
		return w.commit(next, "remove everything", false)
	}},
	{3, func(w *World, _ *rand.Rand) string {
		next := w.repo.head().clone()
		next.broken = !next.broken
		return w.commit(next, fmt.Sprintf("broken: %v", next.broken), false)
	}},
	{3, func(w *World, r *rand.Rand) string {
		back := w.repo.heads[r.IntN(len(w.repo.heads))]
		return w.commit(back.clone(), "force-push of what was before", true)
	}},
	// The console.
	{6, func(w *World, r *rand.Rand) string {
		return w.console(r, url.Values{"Action": {"UpdateAutoScalingGroup"}, "MaxSize": {strconv.Itoa(6 + r.IntN(4))}})
	}},
	{3, func(w *World, r *rand.Rand) string {
		return w.console(r, url.Values{"Action": {"UpdateAutoScalingGroup"}, "DefaultCooldown": {strconv.Itoa(r.IntN(600))}})
	}},
	{3, func(w *World, r *rand.Rand) string {
		return w.console(r, url.Values{"Action": {"SuspendProcesses"}, "ScalingProcesses.member.1": {"AZRebalance"}})
	}},
	{2, func(w *World, r *rand.Rand) string {
		return w.console(r, url.Values{"Action": {"DeleteAutoScalingGroup"}, "ForceDelete": {"true"}})
	}},
	{2, func(w *World, r *rand.Rand) string {
		return w.console(r, url.Values{"Action": {"CancelInstanceRefresh"}})
	}},
	// Commands.
	{2, func(w *World, r *rand.Rand) string {
		if name := w.any(r); name != "" {
			w.command(commands.SuspendPath, gates.Request{Target: "prod", Pool: name, Reason: "simulated", For: "6h"})
			return "suspend " + name
		}
		return ""
	}},
	{2, func(w *World, _ *rand.Rand) string {
		w.command(commands.ResumePath, gates.Request{Target: "prod", All: true})
		return "resume all"
	}},
	{1, func(w *World, _ *rand.Rand) string {
		w.command(commands.SuspendPath, gates.Request{Target: "prod", Reason: "simulated", For: "2h"})
		return "suspend the target"
	}},
	{1, func(w *World, _ *rand.Rand) string {
		w.command(commands.ReconcilePath, gates.Request{Target: "prod"})
		return "reconcile"
	}},
	// The process.
	{2, func(w *World, r *rand.Rand) string {
		d := w.daemon
		if d == nil {
			return ""
		}
		w.stop()
		w.at(time.Duration(1+r.IntN(300))*time.Second, func() { w.start(d.dir) })
		return "restart"
	}},
	{1, func(w *World, r *rand.Rand) string {
		if w.daemon != nil {
			w.kill(w.daemon, r)
		}
		return "kill"
	}},
}

var types = []string{"t3.large", "m5.large", "m6i.large"}

// any is one of the pools of the branch.
func (w *World) any(r *rand.Rand) string {
	names := slices.Sorted(maps.Keys(w.repo.head().pools))
	if len(names) == 0 {
		return ""
	}
	return names[r.IntN(len(names))]
}

func (w *World) change(r *rand.Rand, what string, do func(*pool)) string {
	name := w.any(r)
	if name == "" {
		return ""
	}
	next := w.repo.head().clone()
	p := next.pools[name]
	do(&p)
	next.pools[name] = p
	return w.commit(next, what+" of "+name, false)
}

func (w *World) commit(t tree, what string, force bool) string {
	w.repo.push(t, force)
	return "commit: " + what + " " + w.repo.head().revision[:7]
}

func (w *World) console(r *rand.Rand, form url.Values) string {
	name := w.any(r)
	if name == "" || name == foreignName {
		return ""
	}
	form.Set("AutoScalingGroupName", name)
	if w.person(form) == "" {
		return ""
	}
	w.checks.touched(name)
	return "console: " + form.Encode()
}

// begin makes what is there before the daemon is.
func (w *World) begin() {
	first := tree{pools: map[string]pool{}}
	for i := range w.o.Pools {
		first.pools[fmt.Sprintf("pool-%d", i)] = pool{max: 3, kind: types[0], owner: "team-0"}
	}
	w.repo.push(first, false)
	w.checks.begin(w)
}

// schedule decides what happens in all the days.
func (w *World) schedule() {
	r := rand.New(rand.NewPCG(w.o.Seed, 1<<41)) //nolint:gosec // It is repeated on purpose.
	var sum int
	for _, h := range happenings {
		sum += h.weight
	}
	for i := range w.o.Days * w.o.Events {
		after := time.Duration(r.Int64N(int64(w.o.Days) * int64(24*time.Hour)))
		which := r.IntN(sum)
		own := rand.New(rand.NewPCG(w.o.Seed, 1<<42+uint64(i))) //nolint:gosec // It is repeated on purpose.
		if w.left(-1 - i) {
			continue
		}
		w.at(after, func() {
			for _, h := range happenings {
				if which -= h.weight; which >= 0 {
					continue
				}
				if what := h.do(w, own); what != "" {
					w.struck = append(w.struck, Decision{-1 - i, what})
					w.trace("%s", what)
				}
				return
			}
		})
	}
}

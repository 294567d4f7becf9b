package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"path"
	"regexp"
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

// nextEvent takes the next event; nothing holds it afterwards.
func (w *World) nextEvent() event {
	e := w.events[0]
	w.events = slices.Delete(w.events, 0, 1)
	return e
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
		t := w.targets[r.IntN(len(w.targets))]
		key := fmt.Sprintf("%s/%s%d", t.name, t.prefix, r.IntN(3*w.o.Pools))
		if _, there := next.pools[key]; there {
			return ""
		}
		next.pools[key] = pool{max: 3, kind: types[0], owner: "team-0"}
		return w.commit(r, next, "add "+key)
	}},
	{4, func(w *World, r *rand.Rand) string {
		next := w.repo.head().clone()
		name := w.any(r)
		if name == "" || len(next.pools) < 2 {
			return ""
		}
		delete(next.pools, name)
		return w.commit(r, next, "remove "+name)
	}},
	{8, func(w *World, r *rand.Rand) string { // its machines are of several versions
		key := w.any(r)
		for range 2 + r.IntN(3) {
			w.later(r, 1, 12, func() string { return w.alter(r, key, "hurry") })
		}
		return "several types of " + key
	}},
	{3, func(w *World, r *rand.Rand) string { // somebody else's name
		next, key := w.repo.head().clone(), w.targets[0].name+"/"+foreignName
		if len(w.instances) > 1 && r.IntN(2) == 0 {
			key = w.targets[0].name + "/" + w.targets[1].prefix + "0"
		}
		if _, there := next.pools[key]; there {
			delete(next.pools, key)
		} else {
			next.pools[key] = pool{max: 3, kind: types[0], owner: "team-0"}
			w.alike()
		}
		return w.commit(r, next, "the name of another weir's group, or no more: "+key)
	}},
	{2, func(w *World, r *rand.Rand) string { // all pools, or all but one
		next, left := w.repo.head().clone(), r.IntN(2)
		for _, key := range slices.Sorted(maps.Keys(next.pools)) {
			if len(next.pools) > left {
				delete(next.pools, key)
			}
		}
		return w.commit(r, next, fmt.Sprintf("remove all but %d", left))
	}},
	{3, func(w *World, r *rand.Rand) string {
		next := w.repo.head().clone()
		next.broken = !next.broken
		return w.commit(r, next, fmt.Sprintf("broken: %v", next.broken))
	}},
	{3, func(w *World, r *rand.Rand) string {
		back := w.repo.heads[r.IntN(len(w.repo.heads))]
		switch r.IntN(3) {
		case 0: // what was before, once more
			w.repo.point(branch, back.revision)
			w.repo.moved(back.tree, back.revision)
		case 1: // something else in place of what came after it
			w.repo.moved(back.tree, w.repo.commit(branch, back.tree, "instead", back.revision))
		default: // another history
			w.repo.push(back.tree, true)
		}
		w.hook(r, "push", w.pushed())
		return "force-push of what was before " + w.repo.head().revision[:7]
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
	{4, func(w *World, r *rand.Rand) string { // and somebody changes it all the same
		key := w.any(r)
		t := w.targetOf(key)
		if t == nil {
			return ""
		}
		in := gates.Request{Pool: path.Base(key), Reason: "simulated", For: "6h"}
		if r.IntN(2) == 0 {
			in.Pool, in.For = "", "2h"
		}
		t.command(commands.SuspendPath, in)
		w.later(r, 12, 90, func() string { return w.alter(r, key, "suspended") })
		return "suspend " + cmp.Or(in.Pool, t.name)
	}},
	{2, func(w *World, r *rand.Rand) string {
		t := w.targets[r.IntN(len(w.targets))]
		t.command(commands.ResumePath, gates.Request{All: true})
		return "resume all of " + t.name
	}},
	{1, func(w *World, r *rand.Rand) string {
		t := w.targets[r.IntN(len(w.targets))]
		t.command(commands.ReconcilePath, gates.Request{Retry: r.IntN(2) == 0})
		return "reconcile " + t.name
	}},
}

// processHappenings are what happens to processes.
var processHappenings = []happening{
	{2, func(w *World, r *rand.Rand) string {
		all := w.running()
		if len(all) == 0 || w.frozen {
			return ""
		}
		d := all[r.IntN(len(all))].process
		d.stop()
		w.at(time.Duration(1+r.IntN(300))*time.Second, func() { d.start(d.dir) })
		return "restart of " + d.name
	}},
	{1, func(w *World, r *rand.Rand) string {
		all := w.running()
		if len(all) == 0 || w.frozen {
			return ""
		}
		d := all[r.IntN(len(all))].process
		w.kill(d, r)
		return "kill of " + d.name
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
	return w.changeOf(r, w.any(r), what, do)
}

// alter gives the machines of a pool another type.
func (w *World) alter(r *rand.Rand, key, what string) string {
	return w.changeOf(r, key, what+": type", func(p *pool) {
		p.kind = types[(slices.Index(types, p.kind)+1+r.IntN(len(types)-1))%len(types)]
	})
}

func (w *World) changeOf(r *rand.Rand, key, what string, do func(*pool)) string {
	next := w.repo.head().clone()
	p, ok := next.pools[key]
	if !ok {
		return ""
	}
	do(&p)
	next.pools[key] = p
	return w.commit(r, next, what+" of "+key)
}

// later has something happen after so many minutes, unless the world is at rest by then.
func (w *World) later(r *rand.Rand, least, most int, do func() string) {
	w.at(time.Duration(least*60+r.IntN((most-least)*60))*time.Second, func() {
		if !w.calm {
			w.trace("%s", do())
		}
	})
}

func (w *World) commit(r *rand.Rand, t tree, what string) string {
	w.repo.push(t, false)
	w.hook(r, "push", w.pushed())
	return "commit: " + what + " " + w.repo.head().revision[:7]
}

func (w *World) console(r *rand.Rand, form url.Values) string {
	name := path.Base(w.any(r))
	if name == "." || name == foreignName {
		return ""
	}
	form.Set("AutoScalingGroupName", name)
	if w.person(form) == "" {
		return ""
	}
	w.checks.touched(name)
	if t := w.targetOfGroup(name); t != nil && form.Get("Action") == "CancelInstanceRefresh" {
		w.stopped[t] = true
	}
	return "console: " + form.Encode()
}

// begin makes what is there before the daemons are.
func (w *World) begin() {
	first := tree{pools: map[string]pool{}}
	for _, t := range w.targets {
		for i := range w.o.Pools {
			first.pools[fmt.Sprintf("%s/%s%d", t.name, t.prefix, i)] = pool{max: 3, kind: types[0], owner: "team-0"}
		}
	}
	w.repo.push(first, false)
	w.checks.begin(w)
}

// held finds what waits for somebody to approve it.
var held = regexp.MustCompile(`weir approve ([0-9a-f]{64})`)

// approve approves what the instance holds for it, as somebody does who has read it.
func (m *instance) approve() string {
	digests := map[string]bool{}
	for _, found := range held.FindAllStringSubmatch(m.get("/api/v1/targets"), -1) {
		digests[found[1]] = true
	}
	for _, digest := range slices.Sorted(maps.Keys(digests)) {
		for _, h := range m.knows() {
			m.allow(h.tree)
		}
		m.command(commands.ApprovePath, gates.Request{Digest: digest, By: "alice"}, func() {})
	}
	if len(digests) == 0 {
		return ""
	}
	return fmt.Sprintf("approve %d of %s", len(digests), m.name)
}

// schedule decides what happens in all the days.
func (w *World) schedule() {
	r := rand.New(rand.NewPCG(w.o.Seed, 1<<41)) //nolint:gosec // It is repeated on purpose.
	var sum int
	all := slices.Clone(happenings)
	if !w.o.Steady {
		all = append(all, processHappenings...)
	}
	if w.engine != nil {
		all = append(all, crewHappenings()...)
	}
	if !w.o.Alone {
		all = append(all, pullHappenings...)
	}
	if w.o.Reviewed {
		all = append(all, happening{15, unapproved}, happening{15, func(w *World, _ *rand.Rand) string { return w.instances[0].approve() }})
		w.at(time.Minute, func() { w.trace("%s", w.instances[0].approve()) })
	}
	for _, h := range all {
		sum += h.weight
	}
	length := time.Duration(w.o.Days)*24*time.Hour + time.Duration(w.o.Hours)*time.Hour
	for i := range int(length.Hours()) * w.o.Events / 24 {
		after := time.Duration(r.Int64N(int64(length)))
		which := r.IntN(sum)
		own := rand.New(rand.NewPCG(w.o.Seed, 1<<42+uint64(i))) //nolint:gosec // It is repeated on purpose.
		if w.left(-1 - i) {
			continue
		}
		w.at(after, func() {
			for _, h := range all {
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

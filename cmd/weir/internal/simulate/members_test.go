package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-gitops/weir/status/commands"
)

// regions are those in which an instance of several members has targets, one in each.
var regions = []string{"eu-west-1", "us-east-1", "ap-south-1", "sa-east-1"}

// joinCrew adds an instance of several members, before the world begins.
func (w *World) joinCrew() {
	w.engine = newEngine(w)
	w.join(0)
	m := w.instances[0]
	for _, region := range regions[1:] {
		w.follow(m)
		m.targets[len(m.targets)-1].region = region
	}
	for range w.o.Members - 1 {
		m.members = append(m.members, &member{instance: m})
	}
	w.members = m.members
	for i, one := range m.members {
		one.id = string(rune('a' + i))
	}
}

// stand has a member's machine stand still: its calls, those to it, and whoever reads its
// clock wait. Which of the clocks go on meanwhile differs from machine to machine.
func (m *member) stand(r *rand.Rand) string { return m.process.stand(r) }

func (d *daemon) stand(r *rand.Rand) string {
	long, how := time.Duration(1000+r.IntN(60_000))*time.Millisecond, r.IntN(3)
	resume := d.clock.Stop()
	d.w.at(long, func() {
		switch how {
		case 1:
			d.clock.Slept(long)
		case 2:
			d.clock.Paused(long)
		}
		resume()
		d.stood = time.Now()
		d.w.trace("%s goes on", d.id)
	})
	return fmt.Sprintf("%s stands still for %v, way %d", d.id, long, how)
}

// troubles are what happens to members of an instance, and to what they share. A new one is
// an entry: how often, and what it does to one of those that run.
var troubles = []struct {
	weight int
	do     func(m *member, r *rand.Rand) string
}{
	{6, (*member).stand},
	{6, func(m *member, r *rand.Rand) string { // the way to the engine is cut
		d, long := m.process, time.Duration(1000+r.IntN(60_000))*time.Millisecond
		d.cut = []string{"refused", "nothing"}[r.IntN(2)]
		m.w.at(long, func() { d.cut = "" })
		return fmt.Sprintf("%s is cut off from the engine for %v: %s", d.id, long, d.cut)
	}},
	{3, func(m *member, r *rand.Rand) string { // the engine is started again
		long := time.Duration(500+r.IntN(40_000)) * time.Millisecond
		m.w.engine.down = time.Now().Add(long)
		return fmt.Sprintf("the engine is down for %v", long)
	}},
	{3, func(m *member, r *rand.Rand) string {
		long := time.Duration(5+r.IntN(120)) * time.Second
		m.w.engine.slow = time.Now().Add(long)
		return fmt.Sprintf("the engine is slow for %v", long)
	}},
	{3, func(m *member, r *rand.Rand) string { // an hour ahead or behind, or right again
		wall := time.Duration(r.IntN(3)-1) * time.Hour
		m.process.clock.SetWall(wall - m.wall)
		m.wall = wall
		return fmt.Sprintf("the clock of %s is off by %v", m.process.id, wall)
	}},
	{3, func(m *member, r *rand.Rand) string {
		move := commands.Move{By: "alice", Member: m.process.id}
		m.command(commands.DrainPath, move, func() {})
		m.w.at(time.Duration(10+r.IntN(300))*time.Second, func() {
			move.Undo = true
			m.command(commands.DrainPath, move, func() {})
		})
		return "drain of " + m.process.id
	}},
	{4, func(m *member, r *rand.Rand) string {
		t := m.targets[r.IntN(len(m.targets))]
		m.command(commands.TakePath, commands.Move{By: "alice", Member: m.process.id, Scope: t.name}, func() {})
		return fmt.Sprintf("%s is to take %s", m.process.id, t.name)
	}},
}

// crewHappenings are troubles as happenings.
func crewHappenings() (out []happening) {
	for _, one := range troubles {
		out = append(out, happening{one.weight, func(w *World, r *rand.Rand) string {
			all := w.running()
			if len(all) == 0 {
				return ""
			}
			return one.do(all[r.IntN(len(all))], r)
		}})
	}
	return out
}

// crewFaults are all that may strike another call of one of several members.
var crewFaults = append(faults[:len(faults):len(faults)], fault{"stands still", 4, "", func(_ *World, c *call, r *rand.Rand) { c.daemon.stand(r) }})

// engineFaults are all that may strike a call to the engine, beside what happens to it.
var engineFaults = []fault{
	{"lost before", 3, "", func(_ *World, c *call, r *rand.Rand) { c.fate.without, c.fate.hangs = true, r.IntN(2) == 0 }},
	{"lost answer", 4, "", func(_ *World, c *call, _ *rand.Rand) { c.fate.lost = true }},
	{"slow", 3, "", func(_ *World, c *call, r *rand.Rand) {
		c.fate.takes += time.Duration(r.IntN(3000)) * time.Millisecond
	}},
	{"late", 2, "", func(_ *World, c *call, r *rand.Rand) {
		c.fate.late, c.fate.hangs = time.Duration(1+r.IntN(4000))*time.Millisecond, true
	}},
}

// reached decides whether a call to the engine gets there now.
func (e *engine) reached(c *call, r *rand.Rand) {
	now := time.Now()
	switch {
	case c.daemon.cut != "":
		c.fate.without, c.fate.hangs = true, c.daemon.cut == "nothing"
	case now.Before(e.down):
		c.fate.without = true
	case now.Before(e.slow):
		c.fate.takes += time.Duration(r.IntN(2500)) * time.Millisecond
	}
}

package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// fate is what becomes of a call.
type fate struct {
	name    string        // "" for nothing but time
	takes   time.Duration // until the answer; odd, so that none comes at the moment that its time is up
	without bool          // the connection ends before the call has an effect
	lost    bool          // and after it
	hangs   bool          // and nobody is told that it has ended
	late    time.Duration // nothing is told, and it has its effect so much later
	emu     *awsemu.Fault // what AWS says instead
	stale   bool          // as it was before the last push
}

func (f fate) String() string {
	if f.name == "" {
		return ""
	}
	return " [" + f.name + "]"
}

// fault is something that may become of a call. Of each, weight says how often it is
// taken beside the others.
type fault struct {
	name   string
	weight int
	of     string // only of calls to AWS, or where no instance has several members; "" for of all
	strike func(w *World, c *call, r *rand.Rand)
}

// faults are all that may strike a call.
var faults = []fault{
	{"lost before", 3, "", func(_ *World, c *call, _ *rand.Rand) { c.fate.without = true }},
	{"lost answer", 4, "", func(_ *World, c *call, _ *rand.Rand) { c.fate.lost = true }},
	{"slow", 3, "", func(_ *World, c *call, r *rand.Rand) { c.fate.takes += time.Duration(1+r.IntN(50)) * time.Second }},
	{"hangs", 1, "", func(_ *World, c *call, _ *rand.Rand) { c.fate.takes += time.Hour }},
	{"throttled", 5, "aws", func(_ *World, c *call, _ *rand.Rand) { c.fate.emu = &awsemu.Fault{Kind: awsemu.Throttled} }},
	{"internal error", 2, "aws", func(_ *World, c *call, _ *rand.Rand) {
		c.fate.emu = &awsemu.Fault{Kind: awsemu.FailBefore, Code: "InternalFailure", Status: 500}
	}},
	{"stale read", 3, "aws", func(_ *World, c *call, _ *rand.Rand) {
		if !c.write {
			c.fate.emu = &awsemu.Fault{Kind: awsemu.StaleRead}
		}
	}},
	{"stale refs", 4, "", func(_ *World, c *call, _ *rand.Rand) { c.fate.stale = c.service == "git" && !c.write }},
	{"frozen", 1, "alone", func(w *World, _ *call, r *rand.Rand) { w.freeze(time.Duration(1+r.IntN(300)) * time.Minute) }},
	{"clock set", 1, "alone", func(w *World, _ *call, r *rand.Rand) { w.set(r) }},
	{"killed before", 1, "", func(w *World, c *call, r *rand.Rand) { c.fate.without = true; w.kill(c.daemon, r) }},
	{"killed after", 1, "", func(w *World, c *call, r *rand.Rand) {
		w.killAfter = func() { w.kill(c.daemon, r) }
	}},
}

// decide says what becomes of a call.
func (w *World) decide(c *call, r *rand.Rand) {
	c.fate = fate{takes: time.Duration(10+r.IntN(190))*time.Millisecond + 307*time.Microsecond}
	list := faults
	if w.engine != nil {
		list = crewFaults
	}
	if c.service == "engine" {
		list = engineFaults
		c.fate.takes = time.Duration(1+r.IntN(30))*time.Millisecond + 307*time.Microsecond
		w.engine.turns++
		w.engine.reached(c, r)
	}
	strikes, which := r.Float64() < w.rate()*w.o.Faults, r.IntN(weights(list))
	if !strikes || w.left(w.step) { // the dice are thrown all the same
		return
	}
	for _, f := range list {
		if which -= f.weight; which >= 0 {
			continue
		}
		if f.of == "aws" && c.service != "aws" || f.of == "alone" && w.engine != nil {
			return
		}
		c.fate.name = f.name
		w.struck = append(w.struck, Decision{w.step, fmt.Sprintf("%s: %s", f.name, c.name)})
		f.strike(w, c, r)
		return
	}
}

func weights(list []fault) (sum int) {
	for _, f := range list {
		sum += f.weight
	}
	return sum
}

// rate is how likely a call is struck now: some hours are bad ones, and the last are good.
func (w *World) rate() float64 {
	if w.calm {
		return 0
	}
	spell := 3 * time.Hour
	if w.engine != nil {
		spell = 20 * time.Minute
	}
	hour := uint64(time.Since(w.began) / spell)
	r := rand.New(rand.NewPCG(w.o.Seed, 1<<40+hour)) //nolint:gosec // It is repeated on purpose.
	return []float64{0, 0, 0.002, 0.02, 0.1}[r.IntN(5)]
}

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Holding says which steps of a plan are held by what the plan itself was made of:
// the commit, AWS and the configuration. A digest does not tell it, so that an
// approval of held steps is one of the same plan.
type Holding struct {
	// Sum stands for which steps are held, and why; empty where none is.
	Sum string `json:"sum,omitempty"`
	// Counts are the numbers of steps, by hold.
	Counts map[Hold]int `json:"counts,omitempty"`
}

// Passes reports whether a hold ends without a change of the plan: a window opens, an
// earlier target converges, somebody approves.
func (h Hold) Passes() bool {
	return slices.Contains([]Hold{HeldApproval, HeldWindow, HeldWave, HeldRolloutLimit, HeldWaiting}, h)
}

// Waits reports whether a step waits for something of weir's own, after which the plan
// may be another.
func (p *Plan) Waits() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Held == HeldWaiting })
}

// Holding is which steps are held. What is asked for at the moment when steps are to
// run (an approval, a window, a wave, a turn), and what a process remembers, is no part of it.
func (p *Plan) Holding() Holding {
	var h Holding
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	for _, s := range p.Steps {
		switch s.Held {
		case "", HeldApproval, HeldWindow, HeldWave, HeldRolloutLimit, HeldWaiting, HeldStopped:
			continue
		}
		if h.Counts == nil {
			h.Counts = map[Hold]int{}
		}
		h.Counts[s.Held]++
		_ = enc.Encode([]string{string(s.Held), string(s.Verb), string(s.Resource), s.Name, s.about().eksCluster()}) // texts only
	}
	if h.Counts != nil {
		h.Sum = hex.EncodeToString(sum.Sum(nil)[:8])
	}
	return h
}

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/weir-gitops/weir/reconciler/step"
)

// Holding says which steps of a plan are held by what the plan itself was made of:
// the commit, AWS and the configuration. A digest does not tell it, so that an
// approval of held steps is one of the same plan.
type Holding struct {
	// Sum stands for which steps are held, and why; empty where none is.
	Sum string `json:"sum,omitempty"`
	// Counts are the numbers of steps, by hold.
	Counts map[step.Hold]int `json:"counts,omitempty"`
}

// Waits reports whether a step waits for something of weir's own, after which the plan
// may be another.
func (p *Plan) Waits() bool {
	return slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Held == step.HeldWaiting })
}

// Holding is which steps are held. What is asked for at the moment when steps are to
// run (an approval, a window, a wave, a turn), and what a process remembers, is no part of it.
func (p *Plan) Holding() Holding {
	var h Holding
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	for _, s := range p.Steps {
		switch s.Held {
		case "", step.HeldApproval, step.HeldWindow, step.HeldWave, step.HeldRolloutLimit, step.HeldWaiting, step.HeldStopped:
			continue
		}
		if h.Counts == nil {
			h.Counts = map[step.Hold]int{}
		}
		h.Counts[s.Held]++
		_ = enc.Encode([]string{string(s.Held), string(s.Verb), string(s.Resource), s.Name, s.About().EksCluster()}) // texts only
	}
	if h.Counts != nil {
		h.Sum = hex.EncodeToString(sum.Sum(nil)[:8])
	}
	return h
}

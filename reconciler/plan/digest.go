package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Digest identifies the work of the plan: SHA-256 over the target's name, account and region, and
// the verb, resource, name and field changes of every step, in order. The name of a nodegroup
// includes its EKS cluster. Revision, origins, numbers and times are no part of it, so the same
// work has the same digest wherever it is planned. It is empty for a plan that was made without
// secrets.
func (p *Plan) Digest() string {
	if p.Secretless {
		return ""
	}
	if p.Digested != "" {
		return p.Digested
	}
	type change struct {
		Field    string
		From, To any
	}
	type entry struct {
		Verb     step.Verb
		Resource step.Resource
		Name     string
		Cluster  string `json:",omitempty"`
		Changes  []change
	}
	var steps []entry
	for _, s := range p.Steps {
		d := entry{Verb: s.Verb, Resource: s.Resource, Name: s.Name, Cluster: s.About().EksCluster()}
		for _, c := range s.Changes {
			if strings.HasPrefix(c.Field, model.UserDataField+".") {
				continue // covered by the change of user data as a whole; not every plan shows the parts
			}
			d.Changes = append(d.Changes, change{c.Field, c.From, c.To})
		}
		steps = append(steps, d)
	}
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	// A Change contains only JSON values, so encoding cannot fail.
	_ = enc.Encode([]any{p.Target, p.Account, p.Region, steps})
	return hex.EncodeToString(sum.Sum(nil))
}

// CombinedDigest returns the digest of several targets' plans: the hash of their digests, sorted.
// It is empty if one of them has none.
func CombinedDigest(plans []*Plan) string {
	var all []string
	for _, p := range plans {
		d := p.Digest()
		if d == "" {
			return ""
		}
		all = append(all, d)
	}
	sort.Strings(all)
	sum := sha256.New()
	for _, d := range all {
		sum.Write([]byte(d + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Holding identifies the steps of a plan that are held because of the plan's own input: the commit,
// AWS and the configuration. It is not part of the digest, so an approval of held steps stays valid
// for the same plan.
type Holding struct {
	// Sum identifies the held steps and their holds. It is empty if no step is held.
	Sum string `json:"sum,omitempty"`
	// Counts maps each hold to the number of its steps.
	Counts map[step.Hold]int `json:"counts,omitempty"`
}

// Waits reports whether a step waits for work of weir itself, after which the plan may be
// different.
func (p *Plan) Waits() bool {
	return slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Held == step.HeldWaiting })
}

// Holding returns the held steps. It excludes holds that depend on the moment when steps run (an
// approval, a window, a wave, a turn) and on a process's memory.
func (p *Plan) Holding() Holding {
	if p.held != nil {
		return *p.held
	}
	var h Holding
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	for _, s := range p.Steps {
		switch s.Held {
		case "", step.HeldApproval, step.HeldWindow, step.HeldWave, step.HeldGate, step.HeldRolloutLimit, step.HeldWaiting, step.HeldStopped, step.HeldPolicy, step.HeldPreflight:
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

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

// Digest identifies what the plan would do: SHA-256 over the target's name,
// account and region and each step's verb, resource, name and field changes, in
// order; a nodegroup's name is that within its EKS cluster. Revision, origins, numbers and
// times are no part of it, so the same work has the same digest wherever it is planned. It
// is empty for a plan that was made without secrets.
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
				continue // user data as a whole stands for its parts, which not every plan shows
			}
			d.Changes = append(d.Changes, change{c.Field, c.From, c.To})
		}
		steps = append(steps, d)
	}
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	// A Change holds JSON values only, so encoding cannot fail.
	_ = enc.Encode([]any{p.Target, p.Account, p.Region, steps})
	return hex.EncodeToString(sum.Sum(nil))
}

// CombinedDigest is the digest of several targets' plans: the hash of their
// digests, sorted. It is empty if one of them has none.
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

// Holding says which steps of a plan are held by what the plan itself was made of:
// the commit, AWS and the configuration. A digest does not contain it, so that an
// approval of held steps is one of the same plan.
type Holding struct {
	// Sum identifies the held steps and their reasons; empty for no held step.
	Sum string `json:"sum,omitempty"`
	// Counts are the numbers of steps, by hold.
	Counts map[step.Hold]int `json:"counts,omitempty"`
}

// Waits reports whether a step waits for something of weir's own, after which the plan
// may be another.
func (p *Plan) Waits() bool {
	return slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Held == step.HeldWaiting })
}

// Holding returns which steps are held. It excludes conditions of the moment when steps run (an
// approval, a window, a wave, a turn) and a process's memory.
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

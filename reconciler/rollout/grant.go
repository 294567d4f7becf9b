package rollout

import "slices"

// grant permits pools of the running wave to go as far as its share, within maxMachines. An earlier
// permission stays until its machines are replaced.
func (n *next) grant(r *Run, all []Pool) {
	share, _ := r.Spec.share(r.Wave, r.Share)
	used := n.reserve(r, all)
	if r.Paused != nil || r.Next != nil || refused(r) != "" {
		return
	}
	for i := range r.Members {
		m := &r.Members[i]
		if m.Wave != r.Wave || !n.mayGo(*m, share) {
			continue
		}
		goal, need := share, machinesLeft(n.pools, *m, share)
		if limit := r.Spec.MaxMachines; limit > 0 && used+need > limit {
			if goal, need = part(n.pools, *m, limit-used); need == 0 {
				continue
			}
		}
		m.Granted, m.Reserved = goal, need
		used += need
	}
}

// reserve updates the reserved machines of members. It returns the number of all machines that are
// reserved or being replaced, including earlier runs.
func (n *next) reserve(r *Run, all []Pool) (used int32) {
	for _, p := range all {
		if _, is := r.member(p.ID); !is && p.Moving != nil {
			used += p.Moving.Left
		}
	}
	r.Left = slices.DeleteFunc(r.Left, func(m Member) bool {
		p := n.pools[m.ID]
		return !missing(n.in, m) && (p == nil || p.Hash != "")
	})
	if len(r.Left) == 0 {
		r.Left = nil
	}
	for _, m := range r.Left {
		used += m.Reserved
	}
	for i := range r.Members {
		r.Members[i].Reserved = n.reserved(r.Members[i])
		used += r.Members[i].Reserved
	}
	return used
}

// reserved returns the number of machines that a member has reserved by now.
func (n *next) reserved(m Member) int32 {
	p := n.pools[m.ID]
	if p != nil && p.Hash == "" { // it could not be planned, and may be changing
		return m.Reserved
	}
	switch done, _ := n.done(m, max(m.Granted, 1)); {
	case m.Granted == 0 && !missing(n.in, m), done && m.Granted > 0:
		m.Reserved = 0 // machines of an earlier change are added below
	case m.Granted > 0:
		m.Reserved = machinesLeft(n.pools, m, m.Granted)
	}
	if p != nil && p.Moving != nil {
		m.Reserved = max(m.Reserved, p.Moving.Left)
	}
	return m.Reserved
}

// missing reports whether the owner of a member's target has not reported on the followed commit.
func missing(in Input, m Member) bool {
	_, missing := in.Missing[m.Target]
	return missing
}

// mayGo reports whether a member can start on a share: it has no machines in progress or reserved,
// its wanted hash is the same as at the start of the run, and it has not reached the share.
func (n *next) mayGo(m Member, share int32) bool {
	p := n.pools[m.ID]
	if p == nil || missing(n.in, m) || m.Reserved > 0 || p.Moving != nil || p.Hash != m.Hash || p.Failed != "" {
		return false
	}
	done, _ := n.done(m, share)
	return !done && (!p.Whole || share == 100)
}

// part returns how far a member can go if only some machines are free, and how many it then
// replaces. It returns zero if the member goes as a whole or not at all. The part is a separate
// refresh, and a later refresh completes the share.
func part(pools map[ID]*Pool, m Member, free int32) (goal, need int32) {
	p := pools[m.ID]
	if p.Whole || free <= 0 || p.Machines == 0 {
		return 0, 0
	}
	goal = int32(int64(p.New+free) * 100 / int64(p.Machines))
	if need = machinesLeft(pools, m, goal); need > free {
		return 0, 0
	}
	return goal, need
}

// machinesLeft returns the number of machines that a pool has yet to replace for a share.
func machinesLeft(pools map[ID]*Pool, m Member, share int32) int32 {
	p := pools[m.ID]
	if p == nil {
		return Need(m.Machines, share) // its owner is silent, so the earlier number counts
	}
	return max(0, Need(p.Machines, share)-p.New)
}

// refused explains why a run that has not started yet must not start: its gates already fail, or
// are unknown.
func refused(r *Run) string {
	if r.started() {
		return ""
	}
	for i, g := range r.Gates {
		switch {
		case g.Verdict == Fail:
			return "gate " + g.Name + " failed before the rollout started: " + g.What
		case g.Verdict == Unknown && outside(r.Spec.Gates[i]):
			return "gate " + g.Name + " is unknown: " + g.What
		}
	}
	return ""
}

// allows returns the share up to which the run lets a pool roll, and the reason for waiting.
func (r *Run) allows(p Pool) (share int32, wait string) {
	i, is := r.member(p.ID)
	if !is || r.Members[i].Hash != p.Hash || r.Gathers || r.Stopped != nil || !r.Ended.IsZero() || r.Began.IsZero() {
		if r.Gathers && p.Pending {
			return 0, r.Name + " " + r.Wait
		}
		return 0, "waits until its place in the waves of " + r.Name + " is known"
	}
	m := r.Members[i]
	moving := p.Moving != nil
	switch {
	case r.Paused != nil && !moving:
		return 0, r.Name + " " + r.Wait
	case m.Granted == 100:
		return 100, ""
	case m.Granted > 0:
		return m.Granted, r.Name + ": " + r.Wait
	case m.Wave > r.Wave:
		return 0, "waits for " + r.Spec.WaveName(m.Wave) + " of " + r.Name + ": " + r.Wait
	case p.Whole && r.Spec.MaxMachines > 0 && p.Machines > r.Spec.MaxMachines:
		return 0, r.Name + ": EKS rolls a nodegroup as a whole, and its " + itoa(int(p.Machines)) + " machines are more than maxMachines, which is " + itoa(int(r.Spec.MaxMachines)) + ": split it, or raise maxMachines"
	case r.Paused == nil && r.Next == nil && len(r.Moves()) > 0:
		return 0, "waits for other pools: " + r.Name + " replaces at most " + count(int(r.Spec.MaxMachines), "machine") + " at a time"
	}
	return 0, r.Name + ": " + r.Wait
}

// ends describes who ends the hold of a pool by the run. It is empty if the run's waves do.
func (r *Run) ends(p Pool) string {
	i, is := r.member(p.ID)
	switch {
	case r.Paused != nil:
		return "weir rollout resume " + r.Name
	case is && r.Members[i].Wave <= r.Wave && p.Whole && r.Spec.MaxMachines > 0 && p.Machines > r.Spec.MaxMachines:
		return "a commit that splits it, or raises maxMachines"
	}
	return ""
}

func (b *Bad) text() string {
	return "was stopped by " + b.Rollout + " on " + clock(b.At) + ": " + b.Why + "; released by: " + b.ends()
}

// ends describes how users can end the stop of a bad change.
func (b *Bad) ends() string {
	what := "what its machines are"
	if len(b.Fields) > 0 {
		what = "what was stopped (" + b.Names() + ")"
	}
	return "a commit that changes " + what + ", or weir reconcile " + b.Target + " --retry"
}

// Stop makes the permit the one of a pool with a stopped change. still is set if b is an earlier
// change that the wanted configuration still contains.
func (p *Permit) Stop(b *Bad, still bool) {
	p.Share, p.Stopped, p.Wait, p.Gate, p.Ends, p.Back = 0, true, b.text(), false, b.ends(), nil
	if still {
		p.Wait = b.StillText()
	}
	if b.Rollback {
		p.Back = b.Earlier
	}
}

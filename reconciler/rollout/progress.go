package rollout

// done reports whether a member has reached a share. unknown is set if its owner has not reported
// on the followed commit.
func (n *next) done(m Member, share int32) (done, unknown bool) {
	p := n.pools[m.ID]
	switch {
	case missing(n.in, m):
		return false, true
	case p == nil:
		return true, false // Git no longer wants it
	case p.Moving != nil, p.Hash == "":
		return false, false
	case p.Failed != "", n.stopped(*p):
		return true, false
	case p.Facts.NodesFrom == FromNodes && p.Facts.NodesUnknown == "" && p.Facts.Ready < p.New:
		return false, false // replaced, and not all ready
	case !p.Pending:
		return true, false
	case p.Hash != m.Hash:
		return false, false // another run starts with it
	case p.Whole:
		return share < 100, false
	}
	return share < 100 && p.New >= Need(p.Machines, share), false
}

// waits explains why the running share is not complete. It is empty if it is. It also notes if a
// gate is the reason.
func (n *next) waits(r *Run) string {
	share, _ := r.Spec.share(r.Wave, r.Share)
	where := r.Spec.WaveName(r.Wave)
	if share < 100 {
		where += ", " + itoa(int(share)) + " % of each pool"
	}
	w := n.waveOf(r, share)
	switch {
	case r.Paused != nil:
		return r.PauseText()
	case r.Next != nil:
		return "waits until running rollouts have ended, because the FleetRollout has changed; it then starts again at its first wave"
	case w.silent != "":
		return where + ": waits for the target " + w.silent + ", which " + n.in.Missing[w.silent]
	case refused(r) != "":
		r.Gated = true
		return where + ": " + refused(r)
	case w.faulty != nil:
		return where + ": " + w.faulty.String() + " cannot be planned at " + ShortRevision(w.faulty.Revision) + ": " + w.faulty.Fault
	case w.held != nil:
		return where + ": " + count(w.open, "pool") + " of it must roll; " + w.held.String() + " is held (" + w.held.Held + ")"
	case w.open > 0:
		return where + ": " + count(w.open, "pool") + " of it must roll"
	case !w.granted:
		return ""
	}
	return n.proves(r, where)
}

// wave is the state of the members of the running wave.
type wave struct {
	// open counts the members that have not reached the share. granted reports whether a member was
	// permitted to roll.
	open    int
	granted bool
	// silent is a target whose owner has not reported, held the first held pool, and faulty the
	// first pool that could not be planned.
	silent       string
	held, faulty *Pool
}

// waveOf summarizes how far the members of a rollout's current wave are from a share.
func (n *next) waveOf(r *Run, share int32) (w wave) {
	for _, m := range r.Members {
		if m.Wave != r.Wave {
			continue
		}
		p := n.pools[m.ID]
		w.granted = w.granted || m.Granted > 0
		done, unknown := n.done(m, share)
		if unknown {
			w.silent = m.Target
		}
		if !done {
			w.open++
			if p != nil && p.Held != "" && w.held == nil {
				w.held = p
			}
		}
		if p != nil && p.Hash == "" && p.Fault != "" && w.faulty == nil {
			w.faulty = p
		}
	}
	return w
}

// proves explains why a rolled share does not continue to the next one yet: it bakes, and
// afterwards its gates must pass.
func (n *next) proves(r *Run, where string) string {
	if r.Baked.IsZero() {
		r.Baked = n.in.Now
	}
	end := r.Baked.Add(r.Spec.Bake(r.Wave))
	if n.in.Now.Before(end) {
		n.planAgainAt(end)
		return where + ": bakes until " + clock(end)
	}
	for _, g := range r.Gates {
		switch {
		case g.Verdict != Pass:
			r.Gated = true
			return where + ": gate " + g.Name + " is " + string(g.Verdict) + ": " + g.What
		case g.At.Before(end):
			return where + ": gate " + g.Name + " is checked once more"
		}
	}
	return ""
}

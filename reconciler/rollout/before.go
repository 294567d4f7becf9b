package rollout

// newMember returns a pool as a member of a wave.
func (n *next) newMember(r *Run, p Pool, wave int) Member {
	return Member{ID: p.ID, Wave: wave, Hash: p.Hash, Machines: p.Machines, Whole: p.Whole, Idle: p.idle(), Earlier: n.before(p), Change: n.changeOf(r, p)}
}

// recall updates the earlier version of members that were not permitted anything yet. An earlier
// change may have been in progress when this one began, and may have ended since.
func (n *next) recall(r *Run) {
	for i := range r.Members {
		m := &r.Members[i]
		p := n.pools[m.ID]
		if !r.Active() || m.Granted > 0 || p == nil || p.Hash != m.Hash {
			continue
		}
		m.Whole = p.Whole
		if p.Earlier != nil {
			m.Earlier, m.Change = n.before(*p), n.changeOf(r, *p)
		}
	}
}

// before returns the version to which a pool's machines return: the first of their versions that
// was not found bad. If all were, it is the version before the first of them. It is nil if that is
// the wanted version or unknown.
func (n *next) before(p Pool) *Version {
	if p.Earlier == nil {
		return nil
	}
	var at *Version
	var bad *Bad
	for _, v := range append([]Version{*p.Earlier}, p.Others...) {
		b := n.out.Record.BadOf(p.ID, v.Hash)
		if b == nil {
			return &v
		}
		if bad == nil {
			at, bad = &v, b
		}
	}
	pins := at.Pin != ""
	for range badKept {
		if at = bad.Earlier; at == nil || at.Hash == p.Hash {
			return nil
		}
		pins = pins && at.Pin != ""
		if bad = n.out.Record.BadOf(p.ID, at.Hash); bad == nil {
			out := *at
			if !pins { // then more differs than the answer to a lookup
				out.Pin = ""
			}
			return &out
		}
	}
	return nil
}

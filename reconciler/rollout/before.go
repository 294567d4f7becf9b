package rollout

// newMember is a pool in its wave.
func (n *next) newMember(r *Run, p Pool, wave int) Member {
	return Member{ID: p.ID, Wave: wave, Hash: p.Hash, Machines: p.Machines, Whole: p.Whole, Idle: p.idle(), Earlier: n.before(p), Change: n.changeOf(r, p)}
}

// recall has members that were allowed nothing yet go back to what they have by now: what an
// earlier change moved when this one began has come to an end since.
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

// before is the version that a pool's machines go back to: the first of those that they have
// which was not found bad. Where all were, it is what there was before the first of them. It
// is nil if the pool must become that version, or if it is unknown.
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
			if !pins { // then more than a lookup's answer lies between
				out.Pin = ""
			}
			return &out
		}
	}
	return nil
}

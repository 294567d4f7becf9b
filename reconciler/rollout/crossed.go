package rollout

// crossed reports runs that wait for each other in a circle: each has a pool in its running wave
// that the next run rolls only in a later wave. This wait never ends by itself.
func (n *next) crossed() {
	runs := n.out.Record.Runs
	waits := make([]map[int]ID, len(runs)) // for each run: the runs that it waits for, and the pool
	for i := range runs {
		waits[i] = n.waitsFor(i)
	}
	for i := range runs {
		j, via := around(waits, i)
		if j < 0 {
			continue
		}
		a, b := &runs[i], &runs[j]
		k, _ := b.member(via)
		a.Gated, a.Wait = false, a.Spec.WaveName(a.Wave)+": "+via.String()+" waits forever: "+b.Name+" reaches it in "+b.Spec.WaveName(b.Members[k].Wave)+
			", after pools that wait for "+a.Name+"; these FleetRollouts order the same pools differently: change the waves or the selector of one in Git"
	}
}

// waitsFor returns the other runs that delay pools of a run's wave until a later wave of theirs.
func (n *next) waitsFor(i int) map[int]ID {
	out, r := map[int]ID{}, &n.out.Record.Runs[i]
	if !r.Active() || r.Gathers {
		return out
	}
	share, _ := r.Spec.share(r.Wave, r.Share)
	for _, m := range r.Members {
		done, unknown := n.done(m, share)
		if p := n.pools[m.ID]; m.Wave != r.Wave || done || unknown || p == nil || p.Moving != nil {
			continue
		}
		for j := range n.out.Record.Runs {
			o := &n.out.Record.Runs[j]
			k, is := o.member(m.ID)
			if _, known := out[j]; j != i && is && !known && o.Active() && !o.Gathers && o.Members[k].Wave > o.Wave && o.Members[k].Hash == m.Hash {
				out[j] = m.ID
			}
		}
	}
	return out
}

// around returns the run after i on a circle that leads back to i, and the pool for which i waits
// for it. It returns -1 for none.
func around(waits []map[int]ID, i int) (int, ID) {
	for j := range len(waits) {
		via, is := waits[i][j]
		if !is {
			continue
		}
		seen, left := map[int]bool{}, []int{j}
		for len(left) > 0 {
			at := left[0]
			left = left[1:]
			if at == i {
				return j, via
			}
			if seen[at] {
				continue
			}
			seen[at] = true
			for to := range waits[at] {
				left = append(left, to)
			}
		}
	}
	return -1, ID{}
}

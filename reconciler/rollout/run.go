package rollout

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// conduct moves a run as far as possible now. It returns false if nothing is left of the run.
func (n *next) conduct(r *Run) bool {
	all := governed(n.in, r)
	var due []Pool
	for _, p := range all {
		if n.due(p) {
			due = append(due, p)
		}
	}
	if begins(r, due) {
		*r = r.idle()
		r.Revision, r.Began, r.Since, r.Gathers = n.in.Revision, n.in.Now, n.in.Now, true
	}
	if r.Gathers {
		n.gather(r, due)
	}
	n.drop(r)
	n.join(r, due)
	n.recall(r)
	if r.Active() && !r.Gathers {
		n.advance(r, all)
	}
	if r.Gone && len(n.in.Missing) == 0 && !r.Active() {
		return slices.ContainsFunc(all, func(p Pool) bool { return p.Moving != nil || p.Hash == "" })
	}
	return true
}

// idle returns the run without its change. Machines that the change may still replace count
// further.
func (r *Run) idle() Run {
	left := slices.Clone(r.Left)
	for _, m := range r.Members {
		if m.Reserved > 0 {
			left = append(left, m)
		}
	}
	return Run{Name: r.Name, Spec: r.Spec, Next: r.Next, Gone: r.Gone, Paused: r.Paused, Left: left, Unproven: r.unproven()}
}

// begins reports whether the due pools have a change other than the run's. A new commit starts one,
// or a new answer of AWS to a lookup. If a pool's owner reports the effect of the run's commit
// late, the pool belongs to the run.
func begins(r *Run, due []Pool) bool {
	for _, p := range due {
		i, is := r.member(p.ID)
		switch {
		case r.Gathers:
		case is && r.Members[i].Hash != p.Hash:
			return true
		case is && !r.Active(), !is && p.Revision != r.Revision, !is && r.Stopped == nil && !r.Active():
			return true
		}
	}
	return false
}

// gather fixes the members once all targets have reported the effect of the commit on their pools,
// or the time for that is over.
func (n *next) gather(r *Run, due []Pool) {
	r.Revision = n.in.Revision
	names := unheard(n.in, r)
	if len(due) == 0 && len(names) == 0 {
		*r = r.idle()
		return
	}
	until := r.Began.Add(Settle)
	if len(names) > 0 && n.in.Now.Before(until) {
		r.Wait = "waits until " + names[0] + more(len(names)-1) + " reported what " + ShortRevision(r.Revision) + " changes, until " + clock(until) + " at the latest"
		n.planAgainAt(until)
		return
	}
	if len(due) == 0 {
		r.Wait = "waits for " + names[0]
		return
	}
	r.Gathers, r.Since, r.Members = false, n.in.Now, n.members(r, due)
	r.Wave, r.Share = -1, 0
	n.nextWave(r)
	machines := int32(0)
	for _, m := range r.Members {
		machines += m.Machines
	}
	n.addEvent(Began, r, "begins: "+count(len(r.Members), "pool")+", "+count(int(machines), "machine")+", in "+count(r.waves(), "wave"))
}

// unheard returns the targets that have not reported the effect of the change on their pools. They
// have not reported at all, or used answers of AWS from before the start of the run.
func unheard(in Input, r *Run) []string {
	out := slices.Collect(maps.Keys(in.Missing))
	for _, p := range in.Pools {
		if Selects(r.Spec.Selector, p) && in.Fresh[p.Target].Before(r.Began) {
			out = append(out, p.Target)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// join adds pools whose owners reported late: they are rolled last, or are stopped if the change
// was stopped.
func (n *next) join(r *Run, due []Pool) {
	if r.Gathers || r.Began.IsZero() || !r.Ended.IsZero() {
		return
	}
	for _, p := range due {
		if _, is := r.member(p.ID); is {
			continue
		}
		last := max(r.Wave, len(r.Spec.Waves))
		for _, m := range r.Members {
			last = max(last, m.Wave)
		}
		m := n.newMember(r, p, last)
		r.Members = append(r.Members, m)
		slices.SortFunc(r.Members, func(a, b Member) int { return compare(a.ID, b.ID) })
		if r.Stopped != nil {
			n.out.Record.mark(r, m)
		}
	}
}

// drop removes members without a permit whose change contains a stopped change. Their owner had not
// compared it when the run began.
func (n *next) drop(r *Run) {
	if !r.Active() || r.Gathers {
		return
	}
	r.Members = slices.DeleteFunc(r.Members, func(m Member) bool {
		p := n.pools[m.ID]
		return m.Granted == 0 && p != nil && p.Hash == m.Hash && p.Still != "" && n.stopped(*p)
	})
	if len(r.Members) == 0 {
		*r = r.idle()
	}
}

// advance checks the running share, permits due pools, and continues with the next share or wave.
func (n *next) advance(r *Run, all []Pool) {
	for _, m := range r.Members {
		if p := n.pools[m.ID]; p != nil && p.Hash == m.Hash && p.Failed != "" && m.Granted > 0 && !slices.Contains(r.Failed, m.ID) {
			r.Failed = append(r.Failed, m.ID)
		}
	}
	defer func() {
		if r.Active() {
			n.out.Asks = append(n.out.Asks, r.questions()...)
		}
	}()
	for r.Active() {
		n.storeAnswers(r)
		if why := badReason(n.pools, r); why != "" {
			n.stop(r, Decision{By: "weir", Why: why, At: n.in.Now})
			return
		}
		n.grant(r, all)
		r.Gated = false
		if r.Wait = n.waits(r); r.Wait != "" {
			return
		}
		if _, last := r.Spec.share(r.Wave, r.Share); last {
			n.nextWave(r)
		} else {
			r.Share, r.Since, r.Baked = r.Share+1, n.in.Now, time.Time{}
		}
	}
}

// storeAnswers stores the answers of gates, except answers that were read before the share began. An
// unchanged unknown answer keeps its first time, so that repeated reads do not change the record.
func (n *next) storeAnswers(r *Run) {
	before := r.Gates
	r.Gates = nil
	for _, a := range r.questions() {
		answer, is := n.in.Answers[a.Key()]
		if !is || answer.At.Before(r.Since) {
			answer = Answer{Verdict: Unknown, What: "it has not answered since the share started"}
		}
		answer.At = answer.At.UTC().Round(0) // the form after a record is written and read
		for _, g := range before {
			if same := g.Name == a.Gate.Name && g.Verdict == answer.Verdict && g.What == answer.What; same && g.Verdict == Unknown {
				answer.At = g.At
			}
		}
		r.Gates = append(r.Gates, Gate{Name: a.Gate.Name, Answer: answer})
	}
}

// badReason explains why the change is bad. It is empty if nothing shows that.
func badReason(pools map[ID]*Pool, r *Run) string {
	if len(r.Failed) > int(r.Spec.FailureBudget) {
		first := pools[r.Failed[len(r.Failed)-1]]
		why := r.Failed[len(r.Failed)-1].String()
		if first != nil {
			why += ": " + first.Failed
		}
		return count(len(r.Failed), "pool") + " failed, failureBudget is " + itoa(int(r.Spec.FailureBudget)) + ": " + why
	}
	if !r.started() {
		return "" // before the change has any effect, a failed gate is no evidence against it
	}
	for _, g := range r.Gates {
		if g.Verdict == Fail {
			return "gate " + g.Name + ": " + g.What
		}
	}
	return ""
}

// started reports whether any pool of the run was ever permitted to roll.
func (r *Run) started() bool {
	return slices.ContainsFunc(r.Members, func(m Member) bool { return m.Granted > 0 })
}

// stop marks the change as bad for all pools of the run.
func (n *next) stop(r *Run, w Decision) {
	r.Stopped, r.Wait, r.Gated = &w, "", false
	for _, m := range r.Members {
		n.out.Record.mark(r, m)
	}
	by := ""
	if w.By != "weir" {
		by = " by " + w.By
	}
	n.addEvent(Stopped, r, "is stopped"+by+": "+w.Why)
}

// badKept is the number of bad hashes that the record keeps for a pool.
const badKept = 20

// mark records that a member's version is bad because its rollout was stopped. It keeps the last
// badKept versions of a pool.
func (r *Record) mark(run *Run, m Member) {
	if r.BadOf(m.ID, m.Hash) != nil {
		return
	}
	r.Bad = append(r.Bad, Bad{ID: m.ID, Hash: m.Hash, Rollout: run.Name, Why: run.Stopped.Why, At: run.Stopped.At, Earlier: m.Earlier, Rollback: run.Spec.Rollback, Fields: m.Change})
	of := 0
	for _, b := range r.Bad {
		if b.ID == m.ID {
			of++
		}
	}
	if of > badKept {
		first := slices.IndexFunc(r.Bad, func(b Bad) bool { return b.ID == m.ID })
		r.Bad = slices.Delete(r.Bad, first, first+1)
	}
}

// nextWave starts the next wave that has members, or ends the run.
func (n *next) nextWave(r *Run) {
	before := r.Wave
	r.Share, r.Since, r.Baked = 0, n.in.Now, time.Time{}
	for r.Wave++; r.Wave <= len(r.Spec.Waves)+1; r.Wave++ {
		if slices.ContainsFunc(r.Members, func(m Member) bool { return m.Wave == r.Wave }) {
			if before >= 0 {
				n.addEvent(Advanced, r, "continues with "+r.Spec.WaveName(r.Wave))
			}
			return
		}
	}
	r.Ended, r.Wait, r.Unproven = n.in.Now, "", nil
	for target := range n.in.Missing {
		if r.Unheard == nil {
			r.Unheard = map[string]string{}
		}
		r.Unheard[target] = ""
	}
	for _, p := range n.in.Pools {
		if _, unheard := r.Unheard[p.Target]; unheard {
			r.Unheard[p.Target] = p.Revision
		}
	}
	if len(r.Failed) > 0 {
		n.addEvent(Finished, r, "has ended: "+count(len(r.Failed), "pool")+" of "+itoa(len(r.Members))+" failed")
		return
	}
	n.addEvent(Finished, r, "has ended: "+count(len(r.Members), "pool")+" rolled")
}

func (r *Run) member(id ID) (int, bool) {
	return slices.BinarySearchFunc(r.Members, id, func(m Member, id ID) int { return compare(m.ID, id) })
}

// waves returns the number of waves that have members.
func (r *Run) waves() int {
	seen := map[int]bool{}
	for _, m := range r.Members {
		seen[m.Wave] = true
	}
	return len(seen)
}

func (n *next) addEvent(k Kind, r *Run, text string) {
	n.out.Events = append(n.out.Events, Event{Kind: k, Rollout: r.Name, Text: "rollout " + r.Name + " " + text})
}

func (n *next) planAgainAt(at time.Time) {
	if n.out.Again.IsZero() || at.Before(n.out.Again) {
		n.out.Again = at
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return itoa(n) + " " + what + "s"
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return " and " + count(n, "more target")
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

func clock(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05 MST") }

// ShortRevision returns the first seven digits of a commit, as people read them.
func ShortRevision(revision string) string {
	return strings.TrimSpace(revision[:min(7, len(revision))])
}

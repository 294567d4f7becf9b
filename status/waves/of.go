package waves

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// Of returns the state of a run in a record. The caller may change the lists of the result. pools contains
// the pools of the run's source as last reported by their owners.
func Of(source string, record *rollout.Record, run *rollout.Run, pools map[rollout.ID]rollout.Pool, now time.Time) Rollout {
	o := &builder{run: run, now: now, Rollout: Rollout{
		Source: source, Name: run.Name, Revision: run.Revision, Began: run.Began, Ended: run.Ended, Waits: run.Wait,
		Paused: wordOf(run.Paused), Stopped: wordOf(run.Stopped), Failed: len(run.Failed), FailureBudget: run.Spec.FailureBudget,
		MaxMachines: run.Spec.MaxMachines, Waves: []Wave{}, Pools: []Pool{}, Gates: []GateAnswer{}, Bad: []BadHash{},
	}}
	o.pools(record, pools)
	o.setPhase()
	o.markIncomplete(record, pools)
	for i, g := range run.Gates {
		a := GateAnswer{Name: g.Name, Verdict: string(g.Verdict), What: g.What, At: g.At}
		if i < len(run.Spec.Gates) {
			a.Asks = asks(run.Spec.Gates[i])
		}
		o.Gates = append(o.Gates, a)
	}
	for _, b := range record.Bad {
		if b.Rollout == run.Name {
			o.Bad = append(o.Bad, badHash(&b))
		}
	}
	o.Do = o.advice()
	return o.Rollout
}

// AddPools adds the reported pools of a target to the map by ID that Of takes, and returns the map. It creates
// the map if it is nil.
func AddPools(to map[rollout.ID]rollout.Pool, list []rollout.Pool) map[rollout.ID]rollout.Pool {
	if to == nil {
		to = make(map[rollout.ID]rollout.Pool, len(list))
	}
	for _, p := range list {
		to[p.ID] = p
	}
	return to
}

// builder builds the state of a run for Of.
type builder struct {
	Rollout
	run *rollout.Run
	now time.Time
	// whole reports, for each wave, whether all of its pools are nodegroups. Nodegroups have no shares.
	whole []bool
}

func wordOf(w *rollout.Decision) *Word {
	if w == nil {
		return nil
	}
	return &Word{w.By, w.Why, w.At}
}

// pools assigns members to their waves, and counts machines.
func (o *builder) pools(record *rollout.Record, pools map[rollout.ID]rollout.Pool) {
	run := o.run
	var numbers []int
	for _, m := range run.Members {
		numbers = append(numbers, m.Wave)
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for _, n := range numbers {
		o.Waves = append(o.Waves, Wave{Name: run.Spec.WaveName(n), State: o.state(n), Shares: run.Spec.Shares(n)})
		o.whole = append(o.whole, true)
	}
	for n := range run.Spec.Waves {
		if len(numbers) > 0 && !slices.Contains(numbers, n) {
			o.Empty = append(o.Empty, run.Spec.WaveName(n))
		}
	}
	for _, m := range run.Members {
		n, _ := slices.BinarySearch(numbers, m.Wave)
		p := Pool{Target: m.Target, Pool: m.Pool, Wave: o.Waves[n].Name, Share: m.Granted, Moves: m.Reserved, wave: n}
		report, seen := pools[m.ID]
		// For a pool with errors, the owner reports nothing except its place.
		seen = seen && (report.Hash != "" || report.Machines > 0)
		counts := Machines{All: m.Machines, Old: m.Machines}
		if m.Granted == 100 && m.Reserved == 0 {
			counts = Machines{All: m.Machines, New: m.Machines}
		}
		if seen {
			counts = count(report, m.Hash, run.Stopped != nil)
			if p.Nodegroup = report.Whole; report.Moving != nil {
				p.Rolls, p.Left = true, report.Moving.Left
			}
			if report.Hash == m.Hash {
				p.Failed = report.Failed
			}
		}
		p.Unseen = !seen
		p.Machines, p.Old, p.New, p.Starting, p.Broken = counts.All, counts.Old, counts.New, counts.Starting, counts.Failed
		if permit, known := record.PermitOf(m.ID); known {
			p.Waits = permit.Wait
		}
		w := &o.Waves[n]
		w.Pools++
		w.Machines.add(counts)
		o.whole[n] = o.whole[n] && p.Nodegroup
		o.Machines.add(counts)
		o.Moves += m.Reserved
		o.Pools = append(o.Pools, p)
	}
	slices.SortStableFunc(o.Pools, func(a, b Pool) int { return a.wave - b.wave })
}

// count counts the machines of a pool by version.
func count(p rollout.Pool, hash string, stopped bool) Machines {
	c := Machines{All: p.Machines}
	if p.Hash == hash {
		c.New = min(p.New, p.Machines)
		if c.Starting = max(0, c.New-p.Facts.Ready); p.Failed != "" || stopped {
			c.Starting, c.Failed = 0, c.Starting
		}
	}
	c.Old = c.All - c.New
	return c
}

func (o *builder) state(wave int) string {
	switch run := o.run; {
	case !run.Ended.IsZero(), wave < run.Wave:
		return WaveDone
	case wave > run.Wave:
		return WaveAhead
	case run.Stopped != nil:
		return WaveStopped
	}
	return WaveNow
}

// markIncomplete marks an ended or idle run as incomplete if pools have not received its change. It lists
// these pools with the reasons: the rollout failed or was stopped, or the target cannot be rendered or
// planned.
func (o *builder) markIncomplete(record *rollout.Record, pools map[rollout.ID]rollout.Pool) {
	if o.Phase != Done && o.Phase != Idle {
		return
	}
	var all []string
	for _, permit := range record.Permits {
		p := pools[permit.ID]
		why := ""
		switch {
		case !slices.Contains(permit.Rollouts, o.Name):
		case permit.Stopped:
			why = permit.Wait
		case o.Phase == Idle:
		case slices.Contains(o.run.Failed, permit.ID):
			why = "failed: " + p.Failed
		case o.unheard(p, permit.Target):
			why = "its target had not reported on the revision"
		case p.Revision != o.Revision: // another change has arrived since
		case p.Hash == "":
			why = cmp.Or(p.Fault, "it cannot be planned")
		case p.Pending && p.Moving == nil:
			why = cmp.Or(permit.Wait, p.Held, "some of its machines run another version")
		}
		if why != "" {
			all = append(all, permit.String()+" ("+why+")")
		}
	}
	if len(all) == 0 {
		return
	}
	o.Phase = Incomplete
	o.Waits = itoa(len(all)) + " pools have not received the change: "
	if len(all) == 1 {
		o.Waits = "1 pool has not received the change: "
	}
	o.Waits += strings.Join(all[:min(mostNamed, len(all))], "; ")
	if more := len(all) - mostNamed; more > 0 {
		o.Waits += "; and " + itoa(more) + " more"
	}
}

// unheard reports whether the target of a pool has not yet reported the effect of the run's revision.
func (o *builder) unheard(p rollout.Pool, target string) bool {
	last, is := o.run.Unheard[target]
	return is && (p.Revision == "" || p.Revision == last) && p.Revision != o.Revision
}

// setPhase sets the run's phase, wave and share, and the remaining bake time.
func (o *builder) setPhase() {
	run := o.run
	switch o.Phase = phaseOf(run); o.Phase {
	case Stopped:
		o.Waits = run.Stopped.Why
	case Paused:
		o.Waits = run.PauseText()
	}
	if run.Gathers || len(run.Members) == 0 || !run.Ended.IsZero() {
		return
	}
	if o.Wave = run.Spec.WaveName(run.Wave); run.Stopped != nil {
		return
	}
	o.Share = 100
	if shares := run.Spec.Shares(run.Wave); run.Share < len(shares) {
		o.Share = shares[run.Share]
	}
	left := o.laterBakes()
	if bake := run.Spec.Bake(run.Wave); !run.Baked.IsZero() && o.now.Before(run.Baked.Add(bake)) {
		o.BakesFrom, o.BakesUntil = run.Baked, run.Baked.Add(bake)
		left += o.BakesUntil.Sub(o.now)
		if o.Phase == Running {
			o.Phase = Baking
		}
	} else if run.Baked.IsZero() {
		left += bake
	}
	o.BakeAhead = int64(left.Round(time.Second) / time.Second)
}

// phaseOf returns the phase of a run, without the phase Baking.
func phaseOf(run *rollout.Run) string {
	switch {
	case run.Stopped != nil:
		return Stopped
	case run.Paused != nil:
		return Paused
	case run.Began.IsZero():
		return Idle
	case !run.Ended.IsZero():
		return Done
	case run.Gathers:
		return Gathering
	}
	return Running
}

// laterBakes adds up the bake times after the current one, of later shares and waves.
func (o *builder) laterBakes() (left time.Duration) {
	run := o.run
	waves := map[int]bool{}
	for _, m := range run.Members {
		waves[m.Wave] = true
	}
	for i, n := 0, 0; n <= len(run.Spec.Waves)+1; n++ {
		if !waves[n] {
			continue
		}
		shares := max(1, len(run.Spec.Shares(n)))
		if o.whole[i] {
			shares = 1
		}
		switch i++; {
		case n > run.Wave:
			left += time.Duration(shares) * run.Spec.Bake(n)
		case n == run.Wave:
			left += time.Duration(max(0, shares-1-run.Share)) * run.Spec.Bake(n)
		}
	}
	return left
}

// advice lists possible actions of users.
func (o *builder) advice() (out []string) {
	goes := o.goesOn()
	if o.run.Paused != nil {
		out = append(out, "To continue, run weir rollout resume "+o.Name+".")
	}
	if o.run.Stopped == nil {
		return append(out, goes...)
	}
	switch rest := "the remaining pools do not change."; {
	case o.run.Spec.Rollback:
		out = append(out, "Replaced machines return to their earlier version, as onFailure requires.")
	default:
		if len(goes) > 0 {
			rest = "the remaining pools do not change, except the pools on the next line."
		}
		out = append(out, "Replaced machines keep the new version, as onFailure requires; "+rest)
	}
	out = append(out, goes...)
	var targets []string
	for _, b := range o.Bad {
		targets = append(targets, b.Target)
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	if len(targets) == 0 {
		return append(out, "No target is stopped. The rollout restarts at its first wave.")
	}
	retry := "weir reconcile " + strings.Join(targets[:min(3, len(targets))], " ") + " --retry"
	if len(targets) > 3 {
		retry = "weir reconcile TARGET --retry, for each of its " + itoa(len(targets)) + " targets,"
	}
	return append(out, "A commit that changes the stopped fields"+o.stoppedFields()+" restarts the rollout at the first wave. Other commits do not.", retry+" tries the same change again.")
}

// stoppedFields names the fields that the stopped change set, if they are the same for all of its pools.
func (o *builder) stoppedFields() string {
	fields := ""
	for _, b := range o.Bad {
		if b.Fields == "" || fields != "" && b.Fields != fields {
			return ""
		}
		fields = b.Fields
	}
	return " (" + fields + ")"
}

// mostNamed is the maximum number of pools that a line of advice names.
const mostNamed = 3

// goesOn describes the rollouts that AWS continues although the run is paused or stopped. During a pause,
// these are all started rollouts, up to their shares. After a stop, these are the updates of nodegroups,
// which cannot be cancelled.
func (o *builder) goesOn() []string {
	if o.run.Paused == nil && o.run.Stopped == nil {
		return nil
	}
	var pools []string
	left, whole := int32(0), true
	for _, p := range o.Pools {
		if !p.Rolls || o.run.Stopped != nil && !p.Nodegroup {
			continue
		}
		whole = whole && p.Nodegroup
		left += p.Left
		pools = append(pools, p.Target+" "+p.Pool+" ("+itoa(int(p.Left))+")")
	}
	if len(pools) == 0 {
		return nil
	}
	named := strings.Join(pools[:min(mostNamed, len(pools))], ", ")
	if more := len(pools) - mostNamed; more > 0 {
		named += " and " + itoa(more) + " more"
	}
	text := "AWS continues the rollouts that it has started, up to their shares: "
	if whole {
		text = "EKS finishes the updates that it has started, as they cannot be cancelled: "
	}
	return []string{text + "up to " + itoa(int(left)) + " machines are still replaced, of " + named + "."}
}

// asks describes the condition of a gate in a few words.
func asks(g intent.RolloutGate) string {
	switch {
	case g.NodesReady != nil:
		text := "new nodes are Ready within " + duration(g.NodesReady.Within)
		if g.NodesReady.Required {
			text += ", as the cluster reports"
		}
		return text
	case g.FailedActivities != nil:
		return "at most " + itoa(int(g.FailedActivities.Max)) + " launches failed"
	case g.CloudWatchAlarms != nil:
		return "no alarm of " + strings.Join(g.CloudWatchAlarms.Alarms, ", ")
	case g.Prometheus != nil:
		var bounds []string
		if p := g.Prometheus; p.Min != nil {
			bounds = append(bounds, "at least "+strconv.FormatFloat(*p.Min, 'g', -1, 64))
		}
		if p := g.Prometheus; p.Max != nil {
			bounds = append(bounds, "at most "+strconv.FormatFloat(*p.Max, 'g', -1, 64))
		}
		return g.Prometheus.Provider + ": " + g.Prometheus.Query + " is " + strings.Join(bounds, " and ")
	}
	return ""
}

// duration formats 10m0s as 10m.
func duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func itoa(n int) string { return strconv.Itoa(n) }

// badHash describes a stopped change.
func badHash(b *rollout.Bad) BadHash {
	bad := BadHash{Target: b.Target, Pool: b.Pool, Why: b.Why, At: b.At, Fields: b.Names()}
	if bad.Fields == "" {
		bad.Hash = b.Hash
	}
	return bad
}

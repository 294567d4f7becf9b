package awsemu

import (
	"time"
)

// The states of an instance refresh.
const (
	refreshPending        = "Pending"
	refreshInProgress     = "InProgress"
	refreshBaking         = "Baking"
	refreshSuccessful     = "Successful"
	refreshFailed         = "Failed"
	refreshCancelling     = "Cancelling"
	refreshCancelled      = "Cancelled"
	refreshRollingBack    = "RollbackInProgress"
	refreshRolledBack     = "RollbackSuccessful"
	refreshRollbackFailed = "RollbackFailed"
)

// maxRefreshes is how many refreshes of a group are remembered; AWS keeps those of
// six weeks.
const maxRefreshes = 100

// refresh is an instance refresh. Warm-up times are not waited for: a batch takes
// the timings' RefreshBatch. Checkpoint delays and the bake time are.
type refresh struct {
	ID       string
	Seq      uint64 // in its group
	Status   string
	Reason   string
	Start    time.Time
	End      time.Time    // zero: active
	Desired  *groupConfig // nil: the group's own configuration
	Prefs    refreshPrefs
	Total    int64 // members that it set out to replace
	Left     int64 // members still to be replaced
	Percent  int64
	Rollback *rollbackDetails

	FirstSeq     int64     // members up to this one were there before
	Batch        []string  // members that end once the surge is in service
	Checkpoint   int       // index of the next checkpoint
	ResumeAt     time.Time // a checkpoint's delay ends
	Progress     time.Time // when something was last achieved
	FailuresSeen int64     // the group's failed launches before
	Tick         int64     // the timer that counts; older ones do not
	Hurry        bool      // a cancellation does not wait for instances in transition
}

// refreshPrefs are the preferences of a refresh.
type refreshPrefs struct {
	MinHealthy      int64
	MaxHealthy      *int64
	Warmup          *int64
	Checkpoints     []int64 // percentages
	CheckpointDelay *int64  // seconds
	SkipMatching    bool
	AutoRollback    bool
	Protected       string
	Standby         string
	BakeTime        *int64 // seconds
}

// rollbackDetails say how far a refresh was when it was rolled back.
type rollbackDetails struct {
	Reason  string
	Start   time.Time
	Percent int64
	Left    int64
	LastSeq int64 // members up to this one may have to go back
	Total   int64 // members to go back
}

// activeRefresh is the group's refresh that is under way, nil for none.
func (g *asgGroup) activeRefresh() *refresh {
	if n := len(g.Refreshes); n > 0 && g.Refreshes[n-1].End.IsZero() {
		return g.Refreshes[n-1]
	}
	return nil
}

type startRefreshInput struct {
	name     string
	template *ltSpec
	mixed    *mixedInput
	desired  bool
	min      *int64
	prefs    refreshPrefs
}

func parseStartRefresh(p *params) startRefreshInput {
	in := startRefreshInput{name: nameOf(p)}
	if p.text("Strategy") == "ReplaceRootVolume" {
		p.reject(fail("ValidationError", "The strategy ReplaceRootVolume is not supported by the emulator"))
	}
	if d := p.sub("DesiredConfiguration"); d != nil {
		in.desired = true
		in.template, in.mixed = parseLTSpec(d.sub("LaunchTemplate")), parseMixed(d.sub("MixedInstancesPolicy"))
		if (in.template == nil) == (in.mixed == nil) {
			p.reject(fail("ValidationError", "DesiredConfiguration must contain either LaunchTemplate or MixedInstancesPolicy."))
		}
	}
	in.prefs = refreshPrefs{Protected: "Wait", Standby: "Wait"}
	if sub := p.sub("Preferences"); sub != nil {
		in.parsePrefs(sub)
	}
	return in
}

func (in *startRefreshInput) parsePrefs(p *params) {
	f := &in.prefs
	in.min = p.optionalInt("MinHealthyPercentage")
	f.MaxHealthy = p.optionalInt("MaxHealthyPercentage")
	f.Warmup = p.optionalInt("InstanceWarmup")
	f.CheckpointDelay = p.optionalInt("CheckpointDelay")
	f.BakeTime = p.optionalInt("BakeTime")
	f.SkipMatching, f.AutoRollback = p.boolean("SkipMatching"), p.boolean("AutoRollback")
	f.Protected = first(p.text("ScaleInProtectedInstances"), "Wait")
	f.Standby = first(p.text("StandbyInstances"), "Wait")
	if p.has("AlarmSpecification") {
		p.sub("AlarmSpecification").sub("Alarms")
		for _, name := range p.sub("AlarmSpecification").strings("Alarms") {
			p.reject(fail("ValidationError", "The alarm %s does not exist: the emulator has no CloudWatch alarms", name))
		}
	}
	for _, text := range p.strings("CheckpointPercentages") {
		n := ltData{"n": text}.integer("n")
		if k := len(f.Checkpoints); k > 0 && f.Checkpoints[k-1] >= n {
			p.reject(fail("ValidationError", "CheckpointPercentages must be unique and in ascending order."))
		}
		f.Checkpoints = append(f.Checkpoints, n)
	}
	switch {
	case f.CheckpointDelay != nil && len(f.Checkpoints) == 0:
		p.reject(fail("ValidationError", "CheckpointDelay requires CheckpointPercentages."))
	case f.MaxHealthy != nil && in.min == nil:
		p.reject(fail("ValidationError", "MaxHealthyPercentage requires MinHealthyPercentage."))
	case f.MaxHealthy != nil && *f.MaxHealthy-*in.min > 100:
		p.reject(fail("ValidationError", "The difference between MaxHealthyPercentage and MinHealthyPercentage must not be greater than 100."))
	case f.AutoRollback && !in.desired:
		p.reject(fail("ValidationError", "AutoRollback requires a desired configuration: specify DesiredConfiguration."))
	}
}

// between reads a number within bounds.
func between(p *params, name string, low, high int64) *int64 {
	n := p.optionalInt(name)
	if n != nil && (*n < low || *n > high) {
		p.bad(name, decimal(*n), "Member must have value between "+decimal(low)+" and "+decimal(high))
	}
	return n
}

// startInstanceRefresh starts a refresh. Whether EC2 can launch what is desired is
// not tried here: a missing image makes the refresh fail.
func startInstanceRefresh(rq *request, in startRefreshInput) error {
	r := rq.region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	if g.activeRefresh() != nil {
		return fail("InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.")
	}
	f := &refresh{Status: refreshPending, Start: r.now(), Progress: r.now(), Prefs: in.prefs, FirstSeq: g.Launched, FailuresSeen: g.FailuresTotal}
	if failed := in.configure(r, g, f); failed != nil {
		return failed
	}
	f.ID = r.newUUID("refresh")
	if n := len(g.Refreshes); n > 0 {
		f.Seq = g.Refreshes[n-1].Seq + 1
	}
	f.Left = int64(len(r.staleMembers(g, f)))
	g.Refreshes = append(g.Refreshes, f)
	if n := len(g.Refreshes); n > maxRefreshes {
		g.Refreshes = append([]*refresh(nil), g.Refreshes[n-maxRefreshes:]...)
	}
	r.tickRefresh(g, f, r.timings().RefreshBatch/2)
	rq.xml.text("InstanceRefreshId", f.ID)
	return nil
}

// configure settles the desired configuration and the preferences' defaults.
func (in *startRefreshInput) configure(r *region, g *asgGroup, f *refresh) *apiError {
	if in.desired {
		c := groupConfig{Template: in.template}
		if in.mixed != nil {
			m, err := in.mixed.apply(g.Config.Mixed)
			if err != nil {
				return err
			}
			c.Mixed = m
		}
		if err := r.checkConfig(c, false, nil); err != nil {
			return err
		}
		f.Desired = &c
	}
	if f.Prefs.AutoRollback && (!g.Config.pinned(r) || !f.Desired.pinned(r)) {
		return fail("ValidationError", "AutoRollback cannot be used with a launch template version of $Latest or $Default or with an AMI ID from a Systems Manager parameter.")
	}
	f.Prefs.MinHealthy = 90
	if g.Maintenance != nil {
		f.Prefs.MinHealthy = g.Maintenance.integer("MinHealthyPercentage")
		if high := g.Maintenance.integer("MaxHealthyPercentage"); in.min == nil {
			f.Prefs.MaxHealthy = &high
		}
	}
	set(&f.Prefs.MinHealthy, in.min)
	return nil
}

type cancelRefreshInput struct {
	name string
	wait bool
}

func parseCancelRefresh(p *params) cancelRefreshInput {
	in := cancelRefreshInput{name: nameOf(p), wait: true}
	if b := p.optionalBool("WaitForTransitioningInstances"); b != nil {
		in.wait = *b
	}
	return in
}

func cancelInstanceRefresh(rq *request, in cancelRefreshInput) error {
	r := rq.region
	g, err := r.findGroup(in.name)
	if err != nil {
		return err
	}
	f := g.activeRefresh()
	if f == nil || f.Status == refreshCancelling {
		return noActiveRefresh(in.name)
	}
	f.Status, f.Hurry, f.Reason = refreshCancelling, !in.wait, "Cancelled by user request."
	g.Surge, f.Batch = 0, nil
	r.retryNow(g)
	r.tickRefresh(g, f, r.timings().RefreshBatch/2)
	rq.xml.text("InstanceRefreshId", f.ID)
	return nil
}

func noActiveRefresh(name string) *apiError {
	return fail("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group %s", name)
}

func rollbackInstanceRefresh(rq *request, name string) error {
	r := rq.region
	g, err := r.findGroup(name)
	if err != nil {
		return err
	}
	f := g.activeRefresh()
	switch {
	case f == nil:
		return noActiveRefresh(name)
	case f.Status == refreshCancelling || f.Status == refreshRollingBack:
		return fail("IrreversibleInstanceRefresh", "The instance refresh %s is in status %s and cannot be rolled back.", f.ID, f.Status)
	case f.Desired == nil:
		return fail("IrreversibleInstanceRefresh", "The instance refresh %s cannot be rolled back because it has no desired configuration.", f.ID)
	case !g.Config.pinned(r) || !f.Desired.pinned(r):
		return fail("IrreversibleInstanceRefresh", "The instance refresh %s cannot be rolled back because a launch template version of $Latest or $Default or a Systems Manager parameter is in use.", f.ID)
	}
	r.beginRollback(g, f, "Rollback requested by user.")
	rq.xml.text("InstanceRefreshId", f.ID)
	return nil
}

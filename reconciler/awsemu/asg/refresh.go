package asg

import (
	"cmp"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
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
	Desired  *GroupConfig // nil: the group's own configuration
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
func (g *Group) activeRefresh() *refresh {
	if n := len(g.Refreshes); n > 0 && g.Refreshes[n-1].End.IsZero() {
		return g.Refreshes[n-1]
	}
	return nil
}

type startRefreshInput struct {
	name     string
	template *TemplateSpec
	mixed    *MixedInput
	desired  bool
	min      *int64
	prefs    refreshPrefs
}

func parseStartRefresh(p *wire.Params) startRefreshInput {
	in := startRefreshInput{name: nameOf(p)}
	if p.Text("Strategy") == "ReplaceRootVolume" {
		p.Reject(wire.Fail("ValidationError", "The strategy ReplaceRootVolume is not supported by the emulator"))
	}
	if d := p.Sub("DesiredConfiguration"); d != nil {
		in.desired = true
		in.template, in.mixed = parseLTSpec(d.Sub("LaunchTemplate")), parseMixed(d.Sub("MixedInstancesPolicy"))
		if (in.template == nil) == (in.mixed == nil) {
			p.Reject(wire.Fail("ValidationError", "DesiredConfiguration must contain either LaunchTemplate or MixedInstancesPolicy."))
		}
	}
	in.prefs = refreshPrefs{Protected: "Wait", Standby: "Wait"}
	if sub := p.Sub("Preferences"); sub != nil {
		in.parsePrefs(sub)
	}
	return in
}

func (in *startRefreshInput) parsePrefs(p *wire.Params) {
	f := &in.prefs
	in.min = p.OptionalInt("MinHealthyPercentage")
	f.MaxHealthy = p.OptionalInt("MaxHealthyPercentage")
	f.Warmup = p.OptionalInt("InstanceWarmup")
	f.CheckpointDelay = p.OptionalInt("CheckpointDelay")
	f.BakeTime = p.OptionalInt("BakeTime")
	f.SkipMatching, f.AutoRollback = p.Boolean("SkipMatching"), p.Boolean("AutoRollback")
	f.Protected = cmp.Or(p.Text("ScaleInProtectedInstances"), "Wait")
	f.Standby = cmp.Or(p.Text("StandbyInstances"), "Wait")
	if p.Has("AlarmSpecification") {
		p.Sub("AlarmSpecification").Sub("Alarms")
		for _, name := range p.Sub("AlarmSpecification").Strings("Alarms") {
			p.Reject(wire.Fail("ValidationError", "The alarm %s does not exist: the emulator has no CloudWatch alarms", name))
		}
	}
	for _, text := range p.Strings("CheckpointPercentages") {
		n := wire.Data{"n": text}.Integer("n")
		if k := len(f.Checkpoints); k > 0 && f.Checkpoints[k-1] >= n {
			p.Reject(wire.Fail("ValidationError", "CheckpointPercentages must be unique and in ascending order."))
		}
		f.Checkpoints = append(f.Checkpoints, n)
	}
	switch {
	case f.CheckpointDelay != nil && len(f.Checkpoints) == 0:
		p.Reject(wire.Fail("ValidationError", "CheckpointDelay requires CheckpointPercentages."))
	case f.MaxHealthy != nil && in.min == nil:
		p.Reject(wire.Fail("ValidationError", "MaxHealthyPercentage requires MinHealthyPercentage."))
	case f.MaxHealthy != nil && *f.MaxHealthy-*in.min > 100:
		p.Reject(wire.Fail("ValidationError", "The difference between MaxHealthyPercentage and MinHealthyPercentage must not be greater than 100."))
	case f.AutoRollback && !in.desired:
		p.Reject(wire.Fail("ValidationError", "AutoRollback requires a desired configuration: specify DesiredConfiguration."))
	}
}

// between reads a number within bounds.
func between(p *wire.Params, name string, low, high int64) *int64 {
	n := p.OptionalInt(name)
	if n != nil && (*n < low || *n > high) {
		p.Bad(name, wire.Decimal(*n), "Member must have value between "+wire.Decimal(low)+" and "+wire.Decimal(high))
	}
	return n
}

// startInstanceRefresh starts a refresh. Whether EC2 can launch what is desired is
// not tried here: a missing image makes the refresh fail.
func startInstanceRefresh(rq *request, in startRefreshInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	if g.activeRefresh() != nil {
		return wire.Fail("InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.")
	}
	f := &refresh{Status: refreshPending, Start: r.Now(), Progress: r.Now(), Prefs: in.prefs, FirstSeq: g.Launched, FailuresSeen: g.FailuresTotal}
	if failed := in.configure(r, g, f); failed != nil {
		return failed
	}
	f.ID = r.NewUUID("refresh")
	if n := len(g.Refreshes); n > 0 {
		f.Seq = g.Refreshes[n-1].Seq + 1
	}
	f.Left = int64(len(r.staleMembers(g, f)))
	g.Refreshes = append(g.Refreshes, f)
	if n := len(g.Refreshes); n > maxRefreshes {
		g.Refreshes = append([]*refresh(nil), g.Refreshes[n-maxRefreshes:]...)
	}
	r.tickRefresh(g, f, r.Timings().RefreshBatch/2)
	rq.XML.Text("InstanceRefreshId", f.ID)
	return nil
}

// configure settles the desired configuration and the preferences' defaults.
func (in *startRefreshInput) configure(r *Region, g *Group, f *refresh) *wire.Error {
	if in.desired {
		c := GroupConfig{Template: in.template}
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
		return wire.Fail("ValidationError", "AutoRollback cannot be used with a launch template version of $Latest or $Default or with an AMI ID from a Systems Manager parameter.")
	}
	f.Prefs.MinHealthy = 90
	if g.Maintenance != nil {
		f.Prefs.MinHealthy = g.Maintenance.Integer("MinHealthyPercentage")
		if high := g.Maintenance.Integer("MaxHealthyPercentage"); in.min == nil {
			f.Prefs.MaxHealthy = &high
		}
	}
	Set(&f.Prefs.MinHealthy, in.min)
	return nil
}

type cancelRefreshInput struct {
	name string
	wait bool
}

func parseCancelRefresh(p *wire.Params) cancelRefreshInput {
	in := cancelRefreshInput{name: nameOf(p), wait: true}
	if b := p.OptionalBool("WaitForTransitioningInstances"); b != nil {
		in.wait = *b
	}
	return in
}

func cancelInstanceRefresh(rq *request, in cancelRefreshInput) error {
	r := rq.Region
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
	r.RetryNow(g)
	r.tickRefresh(g, f, r.Timings().RefreshBatch/2)
	rq.XML.Text("InstanceRefreshId", f.ID)
	return nil
}

func noActiveRefresh(name string) *wire.Error {
	return wire.Fail("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group %s", name)
}

func rollbackInstanceRefresh(rq *request, name string) error {
	r := rq.Region
	g, err := r.findGroup(name)
	if err != nil {
		return err
	}
	f := g.activeRefresh()
	switch {
	case f == nil:
		return noActiveRefresh(name)
	case f.Status == refreshCancelling || f.Status == refreshRollingBack:
		return wire.Fail("IrreversibleInstanceRefresh", "The instance refresh %s is in status %s and cannot be rolled back.", f.ID, f.Status)
	case f.Desired == nil:
		return wire.Fail("IrreversibleInstanceRefresh", "The instance refresh %s cannot be rolled back because it has no desired configuration.", f.ID)
	case !g.Config.pinned(r) || !f.Desired.pinned(r):
		return wire.Fail("IrreversibleInstanceRefresh", "The instance refresh %s cannot be rolled back because a launch template version of $Latest or $Default or a Systems Manager parameter is in use.", f.ID)
	}
	r.beginRollback(g, f, "Rollback requested by user.")
	rq.XML.Text("InstanceRefreshId", f.ID)
	return nil
}

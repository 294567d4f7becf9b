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

// maxRefreshes bounds the stored refreshes of a group. AWS stores refreshes for six weeks.
const maxRefreshes = 100

// refresh is an instance refresh. It waits for checkpoint delays and the bake time, but not for warm-up
// times: a batch takes the timings' RefreshBatch.
type refresh struct {
	ID       string
	Seq      uint64 // in its group
	Status   string
	Reason   string
	Start    time.Time
	End      time.Time    // zero: active
	Desired  *GroupConfig // nil: the group's own configuration
	Strategy string       `json:",omitempty"` // "": Rolling
	Prefs    refreshPrefs
	Total    int64 // members to replace at the start
	Left     int64 // members still to be replaced
	Percent  int64
	Rollback *rollbackDetails

	FirstSeq     int64     // members up to this one existed before
	Batch        []string  // members that end after the surge is in service
	Checkpoint   int       // index of the next checkpoint
	ResumeAt     time.Time // end of a checkpoint's delay
	BakedAt      time.Time // end of the bake time
	Progress     time.Time // time of the last progress
	FailuresSeen int64     // the group's failed launches at the start
	Tick         int64     // the valid timer; older ones are void
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
	Alarms          []string
}

// rollbackDetails is the progress of a refresh at its rollback.
type rollbackDetails struct {
	Reason  string
	Start   time.Time
	Percent int64
	Left    int64
	LastSeq int64 // members up to this one may have to go back
	Total   int64 // members to go back
}

// activeRefresh returns the group's refresh in progress, or nil.
func (g *Group) activeRefresh() *refresh {
	if n := len(g.Refreshes); n > 0 && g.Refreshes[n-1].End.IsZero() {
		return g.Refreshes[n-1]
	}
	return nil
}

type startRefreshInput struct {
	groupName
	Strategy             string
	DesiredConfiguration *struct {
		LaunchTemplate       *SpecInput
		MixedInstancesPolicy *PolicyInput
	}
	Preferences struct {
		MinHealthyPercentage, MaxHealthyPercentage  *int64
		InstanceWarmup, CheckpointDelay, BakeTime   *int64
		CheckpointPercentages                       []int64
		SkipMatching, AutoRollback                  bool
		ScaleInProtectedInstances, StandbyInstances string
		AlarmSpecification                          struct{ Alarms []string }
	}
}

func (in *startRefreshInput) Check() error {
	if in.Strategy != "" && in.Strategy != rolling && in.Strategy != replaceRootVolume {
		return invalid("Strategy must be Rolling or ReplaceRootVolume.")
	}
	if d := in.DesiredConfiguration; d != nil {
		if err := cmp.Or(d.LaunchTemplate.check(), d.MixedInstancesPolicy.check()); err != nil {
			return err
		}
		if (d.LaunchTemplate == nil) == (d.MixedInstancesPolicy == nil) {
			return invalid("DesiredConfiguration must contain either LaunchTemplate or MixedInstancesPolicy.")
		}
	}
	p := &in.Preferences
	for k, n := range p.CheckpointPercentages {
		if k > 0 && p.CheckpointPercentages[k-1] >= n {
			return invalid("CheckpointPercentages must be unique and in ascending order.")
		}
	}
	switch {
	case p.CheckpointDelay != nil && len(p.CheckpointPercentages) == 0:
		return invalid("CheckpointDelay requires CheckpointPercentages.")
	case p.MaxHealthyPercentage != nil && p.MinHealthyPercentage == nil:
		return invalid("MaxHealthyPercentage requires MinHealthyPercentage.")
	case p.MaxHealthyPercentage != nil && *p.MaxHealthyPercentage-*p.MinHealthyPercentage > 100:
		return invalid("The difference between MaxHealthyPercentage and MinHealthyPercentage must not be greater than 100.")
	case p.AutoRollback && in.DesiredConfiguration == nil:
		return invalid("AutoRollback requires a desired configuration: specify DesiredConfiguration.")
	}
	return nil
}

// prefs returns the preferences that do not depend on the group.
func (in *startRefreshInput) prefs() refreshPrefs {
	p := &in.Preferences
	return refreshPrefs{
		MaxHealthy: p.MaxHealthyPercentage, Warmup: p.InstanceWarmup, Checkpoints: p.CheckpointPercentages, CheckpointDelay: p.CheckpointDelay,
		SkipMatching: p.SkipMatching, AutoRollback: p.AutoRollback, BakeTime: p.BakeTime, Alarms: p.AlarmSpecification.Alarms,
		Protected: cmp.Or(p.ScaleInProtectedInstances, "Wait"), Standby: cmp.Or(p.StandbyInstances, "Wait"),
	}
}

// startInstanceRefresh starts a refresh. It does not try whether EC2 can launch the desired configuration. A
// missing image makes the refresh fail.
func startInstanceRefresh(rq *request, in startRefreshInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	if g.activeRefresh() != nil {
		return wire.Fail("InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.")
	}
	f := &refresh{Status: refreshPending, Start: r.Now(), Progress: r.Now(), Strategy: in.Strategy, Prefs: in.prefs(), FirstSeq: g.Launched, FailuresSeen: g.FailuresTotal}
	for _, name := range f.Prefs.Alarms {
		if !r.Trusting && r.alarms.StateOf(name) == "" {
			return invalid("The alarm %s does not exist.", name)
		}
	}
	if failed := in.configure(r, g, f); failed != nil {
		return failed
	}
	if f.Strategy == replaceRootVolume {
		if failed := r.checkRootVolumes(g, f.Desired); failed != nil {
			return failed
		}
	}
	f.ID = r.NewUUID("refresh")
	if n := len(g.Refreshes); n > 0 {
		f.Seq = g.Refreshes[n-1].Seq + 1
	}
	f.Left = int64(len((&replacement{r, g, f}).staleMembers()))
	g.Refreshes = append(g.Refreshes, f)
	if n := len(g.Refreshes); n > maxRefreshes {
		g.Refreshes = append([]*refresh(nil), g.Refreshes[n-maxRefreshes:]...)
	}
	(&replacement{r, g, f}).tick(r.Timings().RefreshBatch / 2)
	rq.XML.Text("InstanceRefreshId", f.ID)
	return nil
}

// configure sets the desired configuration and the preferences' defaults.
func (in *startRefreshInput) configure(r *Region, g *Group, f *refresh) *wire.Error {
	if d := in.DesiredConfiguration; d != nil {
		c := GroupConfig{Template: d.LaunchTemplate.spec()}
		if d.MixedInstancesPolicy != nil {
			m, err := d.MixedInstancesPolicy.apply(g.Config.Mixed)
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
	if p := f.Prefs.Checkpoints; len(p) > 0 && p[len(p)-1] < int64(r.Quota("last-checkpoint")) {
		return invalid("The last value of CheckpointPercentages must be at least %d.", r.Quota("last-checkpoint"))
	}
	if f.Prefs.AutoRollback && (!g.Config.pinned(r) || !f.Desired.pinned(r)) {
		return invalid("AutoRollback cannot be used with a launch template version of $Latest or $Default or with an AMI ID from a Systems Manager parameter.")
	}
	f.Prefs.MinHealthy = 90
	if g.Maintenance != nil {
		f.Prefs.MinHealthy = g.Maintenance.Integer("MinHealthyPercentage")
		if high := g.Maintenance.Integer("MaxHealthyPercentage"); in.Preferences.MinHealthyPercentage == nil {
			f.Prefs.MaxHealthy = &high
		}
	}
	Set(&f.Prefs.MinHealthy, in.Preferences.MinHealthyPercentage)
	return nil
}

type cancelRefreshInput struct {
	groupName
	WaitForTransitioningInstances *bool
}

func cancelInstanceRefresh(rq *request, in cancelRefreshInput) error {
	r := rq.Region
	g, err := r.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	f := g.activeRefresh()
	if f == nil || f.Status == refreshCancelling {
		return noActiveRefresh(in.AutoScalingGroupName)
	}
	f.Status, f.Hurry, f.Reason = refreshCancelling, in.WaitForTransitioningInstances != nil && !*in.WaitForTransitioningInstances, "Cancelled by user request."
	(&replacement{r, g, f}).exchange()
	g.Surge, f.Batch = 0, nil
	r.RetryNow(g)
	(&replacement{r, g, f}).tick(r.Timings().RefreshBatch / 2)
	rq.XML.Text("InstanceRefreshId", f.ID)
	return nil
}

func noActiveRefresh(name string) *wire.Error {
	return wire.Fail("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group %s", name)
}

func rollbackInstanceRefresh(rq *request, in groupName) error {
	r := rq.Region
	g, err := r.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	f := g.activeRefresh()
	switch {
	case f == nil:
		return noActiveRefresh(in.AutoScalingGroupName)
	case f.Status == refreshCancelling || f.Status == refreshRollingBack:
		return wire.Fail("IrreversibleInstanceRefresh", "The instance refresh %s is in status %s and cannot be rolled back.", f.ID, f.Status)
	case f.Desired == nil:
		return wire.Fail("IrreversibleInstanceRefresh", "The instance refresh %s cannot be rolled back because it has no desired configuration.", f.ID)
	case !g.Config.pinned(r) || !f.Desired.pinned(r):
		return wire.Fail("IrreversibleInstanceRefresh", "The instance refresh %s cannot be rolled back because a launch template version of $Latest or $Default or a Systems Manager parameter is in use.", f.ID)
	}
	(&replacement{r, g, f}).rollBack("Rollback requested by user.")
	rq.XML.Text("InstanceRefreshId", f.ID)
	return nil
}

package asg

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

type describeRefreshesInput struct {
	paging
	groupName
	InstanceRefreshIDs []string
}

func (in *describeRefreshesInput) Check() error { return in.bound(50, 100) }

// describeInstanceRefreshes writes a group's refreshes, the newest first.
func describeInstanceRefreshes(rq *request, in describeRefreshesInput) error {
	g, err := rq.Region.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	rows := map[string]*refresh{}
	for _, f := range g.Refreshes {
		if len(in.InstanceRefreshIDs) == 0 || slices.Contains(in.InstanceRefreshIDs, f.ID) {
			rows[wire.NewestFirst(f.Seq)] = f
		}
	}
	w := &rq.XML
	w.Open("InstanceRefreshes")
	next, err := rq.Page(slices.Sorted(maps.Keys(rows)), in.NextToken, in.limit, func(key string) bool {
		w.Open("member")
		writeRefresh(w, g, rows[key])
		w.Close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("InstanceRefreshes")
	w.Optional("NextToken", next)
	return nil
}

func writeRefresh(w *wire.XML, g *Group, f *refresh) {
	w.Text("InstanceRefreshId", f.ID)
	w.Text("AutoScalingGroupName", g.Name)
	w.Text("Status", f.Status)
	w.Optional("StatusReason", f.Reason)
	w.Time("StartTime", f.Start)
	w.OptionalTime("EndTime", f.End)
	if f.Status != refreshPending {
		w.Integer("PercentageComplete", f.Percent)
	}
	w.Integer("InstancesToUpdate", f.Left)
	w.Open("ProgressDetails")
	writeProgress(w, f.Percent, f.Left)
	w.Close("ProgressDetails")
	w.Open("Preferences")
	writePreferences(w, &f.Prefs)
	w.Close("Preferences")
	if f.Desired != nil {
		w.Open("DesiredConfiguration")
		writeConfig(w, *f.Desired)
		w.Close("DesiredConfiguration")
	}
	if d := f.Rollback; d != nil {
		w.Open("RollbackDetails")
		w.Text("RollbackReason", d.Reason)
		w.Time("RollbackStartTime", d.Start)
		w.Integer("PercentageCompleteOnRollback", d.Percent)
		w.Integer("InstancesToUpdateOnRollback", d.Left)
		w.Open("ProgressDetailsOnRollback")
		writeProgress(w, d.Percent, d.Left)
		w.Close("ProgressDetailsOnRollback")
		w.Close("RollbackDetails")
	}
	w.Text("Strategy", cmp.Or(f.Strategy, rolling))
}

func writeProgress(w *wire.XML, percent, left int64) {
	w.Open("LivePoolProgress")
	w.Integer("PercentageComplete", percent)
	w.Integer("InstancesToUpdate", left)
	w.Close("LivePoolProgress")
}

func writePreferences(w *wire.XML, f *refreshPrefs) {
	w.Integer("MinHealthyPercentage", f.MinHealthy)
	w.OptionalInt("MaxHealthyPercentage", f.MaxHealthy)
	w.OptionalInt("InstanceWarmup", f.Warmup)
	if len(f.Checkpoints) > 0 {
		w.Open("CheckpointPercentages")
		for _, n := range f.Checkpoints {
			w.Integer("member", n)
		}
		w.Close("CheckpointPercentages")
		delay := int64(3600)
		Set(&delay, f.CheckpointDelay)
		w.Integer("CheckpointDelay", delay)
	}
	w.Boolean("SkipMatching", f.SkipMatching)
	w.Boolean("AutoRollback", f.AutoRollback)
	w.Text("ScaleInProtectedInstances", f.Protected)
	w.Text("StandbyInstances", f.Standby)
	w.OptionalInt("BakeTime", f.BakeTime)
	if len(f.Alarms) > 0 {
		w.Open("AlarmSpecification")
		w.Texts("Alarms", "member", f.Alarms)
		w.Close("AlarmSpecification")
	}
}

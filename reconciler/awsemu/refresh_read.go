package awsemu

type describeRefreshesInput struct {
	name  string
	ids   []string
	token string
	limit int
}

func parseDescribeRefreshes(p *params) describeRefreshesInput {
	return describeRefreshesInput{
		name: nameOf(p), ids: p.strings("InstanceRefreshIds"), token: p.text("NextToken"), limit: pageLimit(p, 50, 100),
	}
}

// describeInstanceRefreshes writes a group's refreshes, newest first.
func describeInstanceRefreshes(rq *request, in describeRefreshesInput) error {
	g, err := rq.region.findGroup(in.name)
	if err != nil {
		return err
	}
	rows := map[string]*refresh{}
	for _, f := range g.Refreshes {
		if len(in.ids) == 0 || contains(in.ids, f.ID) {
			rows[newestFirst(f.Seq)] = f
		}
	}
	w := &rq.xml
	w.open("InstanceRefreshes")
	next, err := rq.page(sortedKeys(rows), in.token, in.limit, func(key string) bool {
		w.open("member")
		w.writeRefresh(g, rows[key])
		w.close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.close("InstanceRefreshes")
	w.optional("NextToken", next)
	return nil
}

func (w *xmlWriter) writeRefresh(g *asgGroup, f *refresh) {
	w.text("InstanceRefreshId", f.ID)
	w.text("AutoScalingGroupName", g.Name)
	w.text("Status", f.Status)
	w.optional("StatusReason", f.Reason)
	w.time("StartTime", f.Start)
	if !f.End.IsZero() {
		w.time("EndTime", f.End)
	}
	if f.Status != refreshPending {
		w.integer("PercentageComplete", f.Percent)
	}
	w.integer("InstancesToUpdate", f.Left)
	w.open("ProgressDetails")
	w.writeProgress(f.Percent, f.Left)
	w.close("ProgressDetails")
	w.open("Preferences")
	w.writePreferences(&f.Prefs)
	w.close("Preferences")
	if f.Desired != nil {
		w.open("DesiredConfiguration")
		w.writeConfig(*f.Desired)
		w.close("DesiredConfiguration")
	}
	if d := f.Rollback; d != nil {
		w.open("RollbackDetails")
		w.text("RollbackReason", d.Reason)
		w.time("RollbackStartTime", d.Start)
		w.integer("PercentageCompleteOnRollback", d.Percent)
		w.integer("InstancesToUpdateOnRollback", d.Left)
		w.open("ProgressDetailsOnRollback")
		w.writeProgress(d.Percent, d.Left)
		w.close("ProgressDetailsOnRollback")
		w.close("RollbackDetails")
	}
	w.text("Strategy", "Rolling")
}

func (w *xmlWriter) writeProgress(percent, left int64) {
	w.open("LivePoolProgress")
	w.integer("PercentageComplete", percent)
	w.integer("InstancesToUpdate", left)
	w.close("LivePoolProgress")
}

func (w *xmlWriter) writePreferences(f *refreshPrefs) {
	w.integer("MinHealthyPercentage", f.MinHealthy)
	w.optionalInt("MaxHealthyPercentage", f.MaxHealthy)
	w.optionalInt("InstanceWarmup", f.Warmup)
	if len(f.Checkpoints) > 0 {
		w.open("CheckpointPercentages")
		for _, n := range f.Checkpoints {
			w.integer("member", n)
		}
		w.close("CheckpointPercentages")
		delay := int64(3600)
		set(&delay, f.CheckpointDelay)
		w.integer("CheckpointDelay", delay)
	}
	w.boolean("SkipMatching", f.SkipMatching)
	w.boolean("AutoRollback", f.AutoRollback)
	w.text("ScaleInProtectedInstances", f.Protected)
	w.text("StandbyInstances", f.Standby)
	w.optionalInt("BakeTime", f.BakeTime)
}

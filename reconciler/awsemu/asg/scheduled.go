package asg

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg/schedule"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

type putScheduledInput struct {
	groupName
	schedule.Input
	Time string // no longer used
}

func putScheduledAction(rq *request, in putScheduledInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	if err := rq.Region.schedule(g, &in.Input); err != nil {
		return err
	}
	return nil
}

// schedule adds an action to a group or changes it.
func (r *Region) schedule(g *Group, in *schedule.Input) *wire.Error {
	a, err := in.Action(r.Now())
	if err != nil {
		return err
	}
	before := g.Schedule.Get(a.Name)
	if before == nil && g.Schedule.Len() >= schedule.MaxActions {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of scheduled actions: %d", schedule.MaxActions)
	}
	for _, name := range g.Schedule.Sorted() {
		if other := g.Schedule.Get(name); in.StartTime != "" && name != a.Name && other.Next.Equal(a.Next) {
			return wire.Fail("AlreadyExists", "A scheduled action with this start time already exists: %s", a.Next.Format(time.RFC3339))
		}
	}
	a.ID = r.NewUUID("schedule")
	if a.ARN = r.ARN("autoscaling", "scheduledUpdateGroupAction:"+a.ID+":autoScalingGroupName/"+g.Name+":scheduledActionName/"+a.Name); before != nil {
		a.ARN = before.ARN
	}
	g.Schedule.Put(a.Name, a)
	r.await(g, a)
	return nil
}

// await schedules an action.
func (r *Region) await(g *Group, a *schedule.Action) {
	r.After(max(a.Next.Sub(r.Now()), 0), timerSchedule, g.key()+"\x00"+a.Name+"\x00"+a.ID)
}

// runSchedule runs an action of a group. An action that is due while scheduled actions are suspended is
// skipped.
func runSchedule(r *Region, key string) {
	parts := strings.Split(key, "\x00")
	g := r.groupByKey(parts[0])
	if g == nil {
		return
	}
	a := g.Schedule.Get(parts[1])
	if a == nil || a.ID != parts[2] {
		return
	}
	if !g.Deleting && !g.suspended("ScheduledActions") {
		r.perform(g, a)
	}
	if a.Advance(r.Now()) {
		r.await(g, a)
		return
	}
	g.Schedule.Remove(a.Name)
}

// perform changes a group's bounds and desired capacity according to an action.
func (r *Region) perform(g *Group, a *schedule.Action) {
	n := *g
	if err := (&GroupInput{MinSize: a.Min, MaxSize: a.Max, DesiredCapacity: a.Desired}).applySizes(&n, false); err != nil {
		failed := r.newActivity(g, "Executing scheduled action "+a.Name, "a scheduled action failed to update the AutoScalingGroup.")
		failed.Status, failed.Progress, failed.End, failed.Message = "Failed", 100, r.Now(), err.Message
		return
	}
	if n.Min != g.Min || n.Max != g.Max || n.Desired != g.Desired {
		g.Cause = fmt.Sprintf("a scheduled action update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d changing the desired capacity from %d to %d.", n.Min, n.Max, n.Desired, g.Desired, n.Desired)
	}
	g.Min, g.Max, g.Desired = n.Min, n.Max, n.Desired
	r.RetryNow(g)
}

type batchPutInput struct {
	groupName
	ScheduledUpdateGroupActions []schedule.Input
}

func (in *batchPutInput) Check() error { return checkBatch(len(in.ScheduledUpdateGroupActions)) }

func checkBatch(n int) error {
	if n > schedule.MaxBatch {
		return invalid("The number of scheduled actions (%d) must not exceed %d", n, schedule.MaxBatch)
	}
	return nil
}

// batchPutScheduledActions makes several actions. A refused action does not prevent the others.
func batchPutScheduledActions(rq *request, in batchPutInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	rq.XML.Open("FailedScheduledUpdateGroupActions")
	for i := range in.ScheduledUpdateGroupActions {
		one := &in.ScheduledUpdateGroupActions[i]
		if failed := rq.Region.schedule(g, one); failed != nil {
			writeFailedAction(&rq.XML, one.ScheduledActionName, failed)
		}
	}
	rq.XML.Close("FailedScheduledUpdateGroupActions")
	return nil
}

func writeFailedAction(w *wire.XML, name string, err *wire.Error) {
	w.Open("member")
	w.Text("ScheduledActionName", name)
	w.Text("ErrorCode", err.Code)
	w.Text("ErrorMessage", err.Message)
	w.Close("member")
}

type deleteScheduledInput struct {
	groupName
	ScheduledActionName string
}

func deleteScheduledAction(rq *request, in deleteScheduledInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	switch {
	case err != nil:
		return err
	case !g.Schedule.Has(in.ScheduledActionName):
		return noScheduledAction()
	}
	g.Schedule.Remove(in.ScheduledActionName)
	return nil
}

func noScheduledAction() *wire.Error { return invalid("Scheduled action name not found") }

type batchDeleteInput struct {
	groupName
	ScheduledActionNames []string
}

func (in *batchDeleteInput) Check() error { return checkBatch(len(in.ScheduledActionNames)) }

func batchDeleteScheduledActions(rq *request, in batchDeleteInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	rq.XML.Open("FailedScheduledActions")
	for _, name := range in.ScheduledActionNames {
		if !g.Schedule.Has(name) {
			writeFailedAction(&rq.XML, name, noScheduledAction())
		}
		g.Schedule.Remove(name)
	}
	rq.XML.Close("FailedScheduledActions")
	return nil
}

type describeScheduledInput struct {
	paging
	groupName
	ScheduledActionNames []string
	StartTime, EndTime   string
}

func (in *describeScheduledInput) Check() error {
	if err := checkBatch(len(in.ScheduledActionNames)); err != nil {
		return err
	}
	return in.bound(50, 100)
}

// accepts reports whether an action matches the request. If names are given, times are ignored.
func (in *describeScheduledInput) accepts(a *schedule.Action) bool {
	if len(in.ScheduledActionNames) > 0 {
		return slices.Contains(in.ScheduledActionNames, a.Name)
	}
	return (in.StartTime == "" || !a.Next.Before(schedule.Time(in.StartTime))) && (in.EndTime == "" || !a.Next.After(schedule.Time(in.EndTime)))
}

func describeScheduledActions(rq *request, in describeScheduledInput) error {
	groups, err := rq.Region.groupsNamed(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	var keys []string
	rows := map[string]*schedule.Action{}
	for _, g := range groups {
		for _, name := range g.Schedule.Sorted() {
			if a := g.Schedule.Get(name); in.accepts(a) {
				key := g.Name + "\x00" + name
				keys, rows[key] = append(keys, key), a
			}
		}
	}
	return writePage(rq, "ScheduledUpdateGroupActions", keys, in.paging, func(key string) {
		group, _, _ := strings.Cut(key, "\x00")
		rows[key].Write(&rq.XML, group)
	})
}

// groupsNamed returns the group of a name, or all groups for "", by name.
func (r *Region) groupsNamed(name string) ([]*Group, error) {
	if name != "" {
		g, err := r.findGroup(name)
		return []*Group{g}, err
	}
	var all []*Group
	for _, name := range r.Groups.Sorted() {
		all = append(all, r.Groups.Get(name))
	}
	return all, nil
}

package asg

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// maxActivities bounds the stored activities of a group.
const maxActivities = 100

// activity is a scaling activity.
type activity struct {
	ID          string
	Seq         uint64 // increases with each activity of the region
	Group, ARN  string
	GroupGone   bool
	InstanceID  string
	Description string
	Cause       string
	Start       time.Time
	End         time.Time // zero: in progress
	Status      string
	Message     string
	Progress    int64
	Details     string
}

const activityTime = "2006-01-02T15:04:05Z"

// beginActivity records the start or end of a member.
func (r *Region) beginActivity(g *Group, m *Member, description, cause string) *activity {
	a := r.newActivity(g, description, cause)
	a.InstanceID = m.ID
	a.Status, a.Progress = "PreInService", 30
	if strings.HasPrefix(description, memberTerminating) {
		a.Status, a.Progress = "InProgress", 0
	}
	a.Details = `{"Subnet ID":"` + m.SubnetID + `","Availability Zone":"` + m.Zone + `"}`
	return a
}

func (r *Region) newActivity(g *Group, description, cause string) *activity {
	at := r.Now().Format(activityTime)
	text := "At " + at + " " + cause
	if g.Cause != "" {
		text = "At " + at + " " + g.Cause + "  " + text
	}
	r.ActivitySeq++
	a := &activity{ID: r.NewUUID("activity"), Seq: r.ActivitySeq, Group: g.Name, ARN: g.ARN, Description: description, Cause: text, Start: r.Now()}
	g.Activities = append(g.Activities, a)
	if n := len(g.Activities); n > 2*maxActivities {
		g.Activities = append([]*activity(nil), g.Activities[n-maxActivities:]...)
	}
	return a
}

// recordFailedLaunch records a launch that EC2 refused.
func (r *Region) recordFailedLaunch(g *Group, message string) {
	a := r.newActivity(g, "Launching a new EC2 instance", "an instance was started in response to a difference between desired and actual capacity.")
	a.Status, a.Progress, a.End = "Failed", 100, r.Now()
	a.Message = LaunchFailure(message)
	a.Description += ".  Status Reason: " + a.Message
}

// LaunchFailure returns Auto Scaling's message for a failure of EC2.
func LaunchFailure(message string) string {
	return strings.TrimSuffix(message, ".") + ". Launching EC2 instance failed."
}

// openActivity finds the unfinished activity of a member that ends or comes into service. It returns nil if
// that activity has ended or was forgotten.
func (g *Group) openActivity(ends bool, id string) *activity {
	for i := len(g.Activities) - 1; i >= 0; i-- {
		if a := g.Activities[i]; a.InstanceID == id && a.End.IsZero() && strings.HasPrefix(a.Description, memberTerminating) == ends {
			return a
		}
	}
	return nil
}

func (r *Region) finishActivity(g *Group, ends bool, id string) {
	if a := g.openActivity(ends, id); a != nil {
		a.Status, a.Progress, a.End = "Successful", 100, r.Now()
	}
}

// failPending ends the launch of a member that is terminated before it was in service.
func (r *Region) failPending(g *Group, m *Member) {
	message := "Instance " + m.ID + " was terminated before it was in service."
	if in := r.ec2.Instances.Get(m.ID); in != nil && in.Dies != "" && !in.Alive() {
		message = "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: " + in.Dies
		g.LastFailure = message
		r.launchFailed(g)
	}
	r.cancelLaunch(g, m, message)
}

// cancelLaunch ends the launch of a member whose instance had started.
func (r *Region) cancelLaunch(g *Group, m *Member, message string) {
	if a := g.openActivity(false, m.ID); a != nil {
		a.Status, a.Progress, a.End, a.Message = "Cancelled", 100, r.Now(), message
		a.Description += ".  Status Reason: " + message
	}
}

type describeActivitiesInput struct {
	paging
	groupName
	ActivityIDs          []string
	IncludeDeletedGroups bool
	Filters              []groupFilter

	after, before time.Time
}

func (in *describeActivitiesInput) Check() error {
	if err := cmp.Or(in.bound(100, 100), checkFilters(in.Filters, "StartTimeLowerBound", "StartTimeUpperBound", "Status")); err != nil {
		return err
	}
	for _, f := range in.Filters {
		switch {
		case f.Name == "Status" && in.AutoScalingGroupName == "":
			return invalid("The Status filter requires AutoScalingGroupName")
		case f.Name != "Status":
			if err := in.readBound(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *describeActivitiesInput) readBound(f groupFilter) error {
	t, err := time.Time{}, error(nil)
	if len(f.Values) == 1 {
		t, err = time.Parse(time.RFC3339Nano, f.Values[0])
	}
	if len(f.Values) != 1 || err != nil {
		return invalid("The filter %s takes one timestamp in ISO 8601", f.Name)
	}
	if f.Name == "StartTimeLowerBound" {
		in.after = t
	} else {
		in.before = t
	}
	return nil
}

func (in *describeActivitiesInput) accept(a *activity) bool {
	if in.AutoScalingGroupName != "" && a.Group != in.AutoScalingGroupName || len(in.ActivityIDs) > 0 && !slices.Contains(in.ActivityIDs, a.ID) ||
		!in.after.IsZero() && a.Start.Before(in.after) || !in.before.IsZero() && a.Start.After(in.before) {
		return false
	}
	for _, f := range in.Filters {
		if f.Name == "Status" && !slices.Contains(f.Values, a.Status) {
			return false
		}
	}
	return true
}

// describeScalingActivities writes activities, the newest first.
func describeScalingActivities(rq *request, in describeActivitiesInput) error {
	st := rq.Region
	if in.AutoScalingGroupName != "" && !st.Groups.Has(in.AutoScalingGroupName) && !in.IncludeDeletedGroups {
		return invalid("AutoScalingGroup name not found - AutoScalingGroup %s not found", in.AutoScalingGroupName)
	}
	var found []*activity
	collect := func(list []*activity) {
		for i := len(list) - 1; i >= 0; i-- {
			if in.accept(list[i]) {
				found = append(found, list[i])
			}
		}
	}
	if in.AutoScalingGroupName != "" {
		if g := st.Groups.Get(in.AutoScalingGroupName); g != nil {
			collect(g.Activities)
		}
	} else {
		for _, name := range st.Groups.Sorted() {
			collect(st.Groups.Get(name).Activities)
		}
	}
	if in.IncludeDeletedGroups || len(in.ActivityIDs) > 0 {
		collect(st.Gone)
	}
	return writeActivities(rq, found, in.NextToken, in.limit)
}

// writeActivities writes a page of activities, newest first.
func writeActivities(rq *request, found []*activity, token string, limit int) error {
	rows := map[string]*activity{}
	for _, a := range found {
		rows[wire.NewestFirst(a.Seq)] = a
	}
	w := &rq.XML
	w.Open("Activities")
	next, err := rq.Page(slices.Sorted(maps.Keys(rows)), token, limit, func(key string) bool {
		w.Open("member")
		writeActivity(w, rows[key])
		w.Close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("Activities")
	w.Optional("NextToken", next)
	return nil
}

func writeActivity(w *wire.XML, a *activity) {
	w.Text("ActivityId", a.ID)
	w.Text("AutoScalingGroupName", a.Group)
	w.Text("Description", a.Description)
	w.Text("Cause", a.Cause)
	w.Time("StartTime", a.Start)
	w.OptionalTime("EndTime", a.End)
	w.Text("StatusCode", a.Status)
	w.Optional("StatusMessage", a.Message)
	w.Integer("Progress", a.Progress)
	w.Text("Details", a.Details)
	if a.GroupGone {
		w.Text("AutoScalingGroupState", "Deleted")
	}
	w.Text("AutoScalingGroupARN", a.ARN)
}

type terminateMemberInput struct {
	InstanceID                     string
	ShouldDecrementDesiredCapacity bool
}

func terminateInstanceInGroup(rq *request, in terminateMemberInput) error {
	r := rq.Region
	g, m, err := r.memberOf(in.InstanceID)
	if err != nil {
		return err
	}
	if m.ends() {
		return wire.Fail("ScalingActivityInProgress", "The instance %s is already being terminated", in.InstanceID)
	}
	cause := "instance " + m.ID + " was taken out of service in response to a user request."
	if in.ShouldDecrementDesiredCapacity && m.Active() { // a retained member no longer counts
		if g.Desired-m.Units < g.Min {
			return invalid("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", g.Min)
		}
		g.Desired -= m.Units
		cause = "instance " + m.ID + " was taken out of service in response to a user request, shrinking the capacity."
	}
	r.EndMember(g, m, cause)
	r.Touch(g)
	rq.XML.Open("Activity")
	writeActivity(&rq.XML, g.Activities[len(g.Activities)-1])
	rq.XML.Close("Activity")
	return nil
}

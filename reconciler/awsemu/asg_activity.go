package awsemu

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// maxActivities is how many activities of a group are kept.
const maxActivities = 100

// activity is a scaling activity.
type activity struct {
	ID          string
	Seq         uint64 // rises with each activity of the region
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

// beginActivity records that a member starts or ends.
func (r *region) beginActivity(g *asgGroup, m *member, description, cause string) *activity {
	a := r.newActivity(g, description, cause)
	a.InstanceID = m.ID
	a.Status, a.Progress = "PreInService", 30
	if strings.HasPrefix(description, "Terminating") {
		a.Status, a.Progress = "InProgress", 0
	}
	a.Details = `{"Subnet ID":"` + m.SubnetID + `","Availability Zone":"` + m.Zone + `"}`
	return a
}

func (r *region) newActivity(g *asgGroup, description, cause string) *activity {
	at := r.now().Format(activityTime)
	text := "At " + at + " " + cause
	if g.Cause != "" {
		text = "At " + at + " " + g.Cause + "  " + text
	}
	r.AutoScaling.ActivitySeq++
	a := &activity{ID: r.newUUID("activity"), Seq: r.AutoScaling.ActivitySeq, Group: g.Name, ARN: g.ARN, Description: description, Cause: text, Start: r.now()}
	g.Activities = append(g.Activities, a)
	if n := len(g.Activities); n > 2*maxActivities {
		g.Activities = append([]*activity(nil), g.Activities[n-maxActivities:]...)
	}
	return a
}

// recordFailedLaunch records a launch that EC2 refused.
func (r *region) recordFailedLaunch(g *asgGroup, message string) {
	a := r.newActivity(g, "Launching a new EC2 instance", "an instance was started in response to a difference between desired and actual capacity.")
	a.Status, a.Progress, a.End = "Failed", 100, r.now()
	a.Message = launchFailure(message)
	a.Description += ".  Status Reason: " + a.Message
}

// launchFailure is how Auto Scaling tells of what EC2 said.
func launchFailure(message string) string {
	return strings.TrimSuffix(message, ".") + ". Launching EC2 instance failed."
}

// openActivity finds a member's unfinished activity by the start of its
// description, nil where it is over or forgotten.
func (g *asgGroup) openActivity(prefix, id string) *activity {
	for i := len(g.Activities) - 1; i >= 0; i-- {
		if a := g.Activities[i]; a.InstanceID == id && a.End.IsZero() && strings.HasPrefix(a.Description, prefix) {
			return a
		}
	}
	return nil
}

func (r *region) finishActivity(g *asgGroup, prefix, id string) {
	if a := g.openActivity(prefix, id); a != nil {
		a.Status, a.Progress, a.End = "Successful", 100, r.now()
	}
}

// failPending ends the launch of a member that is ended before it was in service.
func (r *region) failPending(g *asgGroup, m *member) {
	message := "Instance " + m.ID + " was terminated before it was in service."
	if in := r.EC2.Instances.get(m.ID); in != nil && in.Dies != "" && !in.alive() {
		message = "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: " + in.Dies
		g.LastFailure = message
		r.launchFailed(g)
	}
	r.cancelLaunch(g, m, message)
}

// cancelLaunch ends the launch of a member whose instance had started.
func (r *region) cancelLaunch(g *asgGroup, m *member, message string) {
	if a := g.openActivity("Launching", m.ID); a != nil {
		a.Status, a.Progress, a.End, a.Message = "Cancelled", 100, r.now(), message
		a.Description += ".  Status Reason: " + message
	}
}

type describeActivitiesInput struct {
	ids     []string
	group   string
	deleted bool
	filters []groupFilter
	token   string
	limit   int
	after   time.Time
	before  time.Time
}

func parseDescribeActivities(p *params) describeActivitiesInput {
	in := describeActivitiesInput{
		ids: p.strings("ActivityIds"), group: p.text("AutoScalingGroupName"), deleted: p.boolean("IncludeDeletedGroups"),
		filters: parseGroupFilters(p, "StartTimeLowerBound", "StartTimeUpperBound", "Status"),
		token:   p.text("NextToken"), limit: pageLimit(p, 100, 100),
	}
	for _, f := range in.filters {
		switch {
		case f.name == "Status" && in.group == "":
			p.reject(fail("ValidationError", "The Status filter requires AutoScalingGroupName"))
		case f.name != "Status":
			in.parseBound(p, f)
		}
	}
	return in
}

func (in *describeActivitiesInput) parseBound(p *params, f groupFilter) {
	t, err := time.Time{}, error(nil)
	if len(f.values) == 1 {
		t, err = time.Parse(time.RFC3339Nano, f.values[0])
	}
	if len(f.values) != 1 || err != nil {
		p.reject(fail("ValidationError", "The filter %s takes one timestamp in ISO 8601", f.name))
		return
	}
	if f.name == "StartTimeLowerBound" {
		in.after = t
	} else {
		in.before = t
	}
}

func (in *describeActivitiesInput) accept(a *activity) bool {
	if in.group != "" && a.Group != in.group || len(in.ids) > 0 && !contains(in.ids, a.ID) ||
		!in.after.IsZero() && a.Start.Before(in.after) || !in.before.IsZero() && a.Start.After(in.before) {
		return false
	}
	for _, f := range in.filters {
		if f.name == "Status" && !contains(f.values, a.Status) {
			return false
		}
	}
	return true
}

// describeScalingActivities writes activities, newest first.
func describeScalingActivities(rq *request, in describeActivitiesInput) error {
	st := &rq.region.AutoScaling
	if in.group != "" && !st.Groups.has(in.group) && !in.deleted {
		return fail("ValidationError", "AutoScalingGroup name not found - AutoScalingGroup %s not found", in.group)
	}
	var found []*activity
	collect := func(list []*activity) {
		for i := len(list) - 1; i >= 0; i-- {
			if in.accept(list[i]) {
				found = append(found, list[i])
			}
		}
	}
	if in.group != "" {
		if g := st.Groups.get(in.group); g != nil {
			collect(g.Activities)
		}
	} else {
		for _, name := range st.Groups.sorted() {
			collect(st.Groups.get(name).Activities)
		}
	}
	if in.deleted || len(in.ids) > 0 {
		collect(st.Gone)
	}
	return writeActivities(rq, found, in.token, in.limit)
}

// newestFirst is a page key that turns a rising number around.
func newestFirst(seq uint64) string { return fmt.Sprintf("%020d", math.MaxUint64-seq) }

// writeActivities writes a page of activities, newest first.
func writeActivities(rq *request, found []*activity, token string, limit int) error {
	rows := map[string]*activity{}
	for _, a := range found {
		rows[newestFirst(a.Seq)] = a
	}
	w := &rq.xml
	w.open("Activities")
	next, err := rq.page(sortedKeys(rows), token, limit, func(key string) bool {
		w.open("member")
		w.writeActivity(rows[key])
		w.close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.close("Activities")
	w.optional("NextToken", next)
	return nil
}

func (w *xmlWriter) writeActivity(a *activity) {
	w.text("ActivityId", a.ID)
	w.text("AutoScalingGroupName", a.Group)
	w.text("Description", a.Description)
	w.text("Cause", a.Cause)
	w.time("StartTime", a.Start)
	if !a.End.IsZero() {
		w.time("EndTime", a.End)
	}
	w.text("StatusCode", a.Status)
	w.optional("StatusMessage", a.Message)
	w.integer("Progress", a.Progress)
	w.text("Details", a.Details)
	if a.GroupGone {
		w.text("AutoScalingGroupState", "Deleted")
	}
	w.text("AutoScalingGroupARN", a.ARN)
}

type terminateMemberInput struct {
	id     string
	shrink bool
}

func parseTerminateMember(p *params) terminateMemberInput {
	return terminateMemberInput{id: p.text("InstanceId"), shrink: p.boolean("ShouldDecrementDesiredCapacity")}
}

func terminateInstanceInGroup(rq *request, in terminateMemberInput) error {
	r := rq.region
	var g *asgGroup
	var m *member
	if inst := r.EC2.Instances.get(in.id); inst != nil {
		if g = r.AutoScaling.Groups.get(strings.TrimPrefix(inst.Owner, "asg:")); g != nil {
			m = g.member(in.id)
		}
	}
	if m == nil {
		return fail("ValidationError", "Instance Id not found - No managed instance found for instance ID %s", in.id)
	}
	if m.Lifecycle == memberTerminating {
		return fail("ScalingActivityInProgress", "The instance %s is already being terminated", in.id)
	}
	cause := "instance " + m.ID + " was taken out of service in response to a user request."
	if in.shrink && m.active() { // one that is retained counts no more
		if g.Desired-m.Units < g.Min {
			return fail("ValidationError", "Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", g.Min)
		}
		g.Desired -= m.Units
		cause = "instance " + m.ID + " was taken out of service in response to a user request, shrinking the capacity."
	}
	r.endMember(g, m, cause)
	r.touch(g)
	rq.xml.open("Activity")
	rq.xml.writeActivity(g.Activities[len(g.Activities)-1])
	rq.xml.close("Activity")
	return nil
}

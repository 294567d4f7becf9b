package plan

import (
	"regexp"
	"slices"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// failureLaunch is the failure of a pool whose machines AWS cannot launch.
const failureLaunch = "launch-failed"

// LaunchFailure is why AWS last failed to launch a machine of a group, in its words.
type LaunchFailure struct {
	Message string
	At      time.Time
}

// Lacking are the groups of the target's pools that have fewer machines, in whatever
// state, than they want: AWS then says why none comes.
func Lacking(in Input) []string {
	var out []string
	for i := range in.Set.Pools {
		for _, name := range in.groupsOf(&in.Set.Pools[i]) {
			g, found := in.State.Groups[name]
			if found && !g.Deleting && g.Tags[TagOwner].Value == in.Policy.Instance && g.lacks() {
				out = append(out, name)
			}
		}
	}
	return out
}

func (g Group) lacks() bool {
	n := int32(0)
	for _, i := range g.Instances {
		if !i.Leaving() {
			n++
		}
	}
	return n < g.desiredInstances()
}

// groupsOf are the names of a pool's groups.
func (in Input) groupsOf(pool *intent.Pool) []string {
	if pool.Group != nil {
		return []string{pool.Group.Name}
	}
	var out []string
	for _, n := range in.nodegroupsOf(pool) {
		out = append(out, n.GroupNames...)
	}
	return out
}

// awsID is what differs between two launches that fail for one cause.
var awsID = regexp.MustCompile(`\b(i|eni|vol)-[0-9a-f]{8,}\b`)

// launchFailure says why machines of a pool do not come, "" where AWS says nothing.
func (in Input) launchFailure(pool *intent.Pool) string {
	for _, name := range in.groupsOf(pool) {
		f, failed := in.State.LaunchFailures[name]
		if g := in.State.Groups[name]; !failed || !g.lacks() {
			continue
		}
		text := "AWS launches no machine: " + awsID.ReplaceAllString(printable(f.Message), "$1-…")
		if hint := LaunchHint(f.Message); hint != "" {
			text += "; " + hint
		}
		return text
	}
	return ""
}

// Short joins the groups that lack machines of several targets.
func Short(inputs []Input) []string {
	var out []string
	for _, in := range inputs {
		if in.Set != nil && in.State != nil {
			out = append(out, Lacking(in)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

package plan

import (
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
)

// A group and a nodegroup carry the commit that last set them, so that a process at an earlier
// commit leaves them alone (fence.go). A step that writes tags writes the commit with them (stamp).
// A step that writes anything else has a Claim: a separate call, made before the step's call if the
// tag names another commit. After a crash between the two calls, the resource stays claimed, and
// the next pass makes the second call. Once the tag names the commit, no further call is needed.
//
// The start of a rollout needs no claim if the version that it launches was made from the
// same commit: the description of the version names it.

// setClaims sets Claim in the steps that need one.
func setClaims(in model.Input, steps []step.Step) {
	if len(in.Commit.Revision) < 40 || in.Policy.OwnTargetOnly {
		return
	}
	tagged := map[string]bool{}
	for i := range steps {
		if steps[i].Held == "" && len(steps[i].Stamp) > 0 {
			tagged[subject(steps[i].About())] = true
		}
	}
	for i := range steps {
		about := steps[i].About()
		if steps[i].Held != "" || steps[i].Verb == step.Delete || about.EndsRefresh() || tagged[subject(about)] || described(in, about) {
			continue
		}
		steps[i].Claim = claimOf(in, about)
	}
}

// subject names the group or nodegroup that an action is about.
func subject(a step.About) string {
	if a.Group != "" {
		return step.GroupSubject(a.Group)
	}
	return step.NodegroupSubject(a.Nodegroup)
}

// claimOf returns the call that writes the commit to the resource that an action changes. It is nil
// if the resource has that tag already, does not exist yet, or has no room for another tag.
func claimOf(in model.Input, about step.About) step.Action {
	revision := in.Commit.Revision
	put := map[string]string{observed.TagRevision: revision}
	if g, is := in.State.Groups[about.Group]; is {
		have := observed.GroupTagValues(g.Tags)
		if have[observed.TagRevision] == revision || !roomFor(0, have, put) {
			return nil
		}
		return step.TagGroup{Group: about.Group, Put: observed.GroupTags(put)}
	}
	n, is := in.State.Nodegroups[about.Nodegroup]
	if !is || n.Tags[observed.TagRevision] == revision || !roomFor(0, n.Tags, put) {
		return nil
	}
	return step.TagNodegroup{NodegroupName: about.Nodegroup, ARN: n.ARN, Put: put}
}

// described reports whether the template version that an action launches was made from the
// commit, or is made by this plan.
func described(in model.Input, about step.About) bool {
	ref := about.Launches
	if ref == nil {
		return false
	}
	if ref.Version == "" {
		return true
	}
	t, found := in.State.Templates[ref.Name]
	number, err := strconv.ParseInt(ref.Version, 10, 64)
	return found && err == nil && fromHere(in, t.Tags) && describedCommit(t.Versions[number].Description) == rollout.ShortRevision(in.Commit.Revision)
}

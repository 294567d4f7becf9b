package template

import (
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// versionsInDelete is the number of versions that one DeleteLaunchTemplateVersions accepts.
const versionsInDelete = 200

// keepVersions returns the number of earlier versions of the pool's template to keep.
func keepVersions(p model.Policy, pool *intent.Pool) int32 {
	switch {
	case pool.KeepVersions > 0:
		return pool.KeepVersions
	case p.KeepVersions > 0:
		return p.KeepVersions
	}
	return model.DefaultKeepVersions
}

// keptBefore returns the number of earlier versions that the template's last pruning kept.
func keptBefore(tags map[string]string) int64 {
	n, err := strconv.ParseInt(tags[observed.TagKeep], 10, 32)
	if err != nil || n < 1 {
		return model.DefaultKeepVersions
	}
	return n
}

// pruning contains the facts that decide which versions are deleted: the wanted versions, whether
// another version is about to be made, and the versions that pools have in AWS.
type pruning struct {
	wanted []int64
	makes  bool
	inUse  []observed.TemplateRef
}

// prune plans the deletion of versions beyond the number to keep, oldest first. It does so if a
// version is about to be made, or if the number to keep is lower than the number in the template's
// tag. So an idle fleet costs no read. weir reads which versions are in use before it deletes any.
// prune requests both reads as needs, and the plan is computed again with their answers.
func (c Planner) prune(pool *intent.Pool, want *Want, t observed.Template, p pruning) {
	keep := int64(want.keep)
	if most := t.LatestVersion - int64(len(p.wanted)); most <= keep || !p.makes && keep >= keptBefore(t.Tags) {
		return
	}
	if err := c.In.State.Unread.VersionUsers[t.Name]; err != nil {
		c.Note(diag.Warning, pool, nil, "versions-kept",
			"AWS does not let weir read who uses the versions of the launch template "+t.Name+", so none is deleted: "+err.Message, "")
		return
	}
	if t.Numbers == nil {
		c.Needs.Numbers = append(c.Needs.Numbers, t.Name)
		return
	}
	used := map[int64]bool{t.DefaultVersion: true, t.LatestVersion: true}
	for _, ref := range p.inUse {
		used[model.VersionOf(t, ref)] = true
	}
	surplus := surplusVersions(t.Numbers, p.wanted, int(keep), used)
	if len(surplus) == 0 {
		return
	}
	users, read := c.In.State.VersionUsers[t.Name]
	if !read && c.Hold == "" {
		c.Needs.VersionUsers = append(c.Needs.VersionUsers, t.Name)
		return
	}
	for _, u := range users {
		used[model.VersionOf(t, observed.TemplateRef{ID: t.ID, Version: u.Version})] = true
	}
	for batch := range slices.Chunk(surplusVersions(t.Numbers, p.wanted, int(keep), used), versionsInDelete) {
		c.Step(pool, step.Step{
			Verb: step.PruneVersion, Resource: step.LaunchTemplate, Name: t.Name,
			Reason: "versions " + ranges(batch) + " are beyond the " + strconv.Itoa(int(want.keep)) + " earlier versions to keep, and nothing uses them",
			Changes: []step.Change{{Field: "versions", From: ranges(batch), Object: pool.Infrastructure,
				Path: intent.Path{"metadata", "annotations", observed.TagKeep}}},
			Seen: step.SeenTemplate(t), Do: step.DeleteLaunchTemplateVersions{Template: observed.TemplateRef{ID: t.ID, Name: t.Name}, Versions: batch},
		})
	}
}

// surplusVersions returns, ascending, the versions that are not wanted, not among the newest keep
// other versions, and not in use.
func surplusVersions(numbers, wanted []int64, keep int, used map[int64]bool) []int64 {
	others := slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool { return slices.Contains(wanted, n) })
	if len(others) <= keep {
		return nil
	}
	return slices.DeleteFunc(others[:len(others)-keep], func(n int64) bool { return used[n] })
}

// ranges writes ascending numbers in short: 1-4, 7.
func ranges(numbers []int64) string {
	out := ""
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		if out != "" {
			out += ", "
		}
		out += strconv.FormatInt(numbers[i], 10)
		if last > i {
			out += "-" + strconv.FormatInt(numbers[last], 10)
		}
		i = last + 1
	}
	return out
}

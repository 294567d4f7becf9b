package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// cause is a commit that a resource in AWS names. what describes the resource.
type cause struct{ commit, what string }

// fence finds the steps that would undo the work of a newer commit.
type fence struct {
	in     model.Input
	shared map[string]*template.Shared
	// ahead is the set of commits that stop steps. around contains the commits behind all resources
	// of the target, nil until targetCauses computes it.
	ahead  map[string]bool
	around []cause
	model.Result
}

// holdUndoingNewer holds the steps of pools whose resources come from a newer commit, and returns
// these commits.
func (c *computation) holdUndoingNewer() []string {
	f := &fence{in: c.in, shared: c.shared, ahead: map[string]bool{}}
	f.holdNewer(c.Steps)
	c.Take(f.Result)
	return slices.Sorted(maps.Keys(f.ahead))
}

// holdNewer holds the steps of an owner, a pool or a launch configuration, if one of its resources comes from
// a newer commit, or from one whose relation is unknown.
func (c *fence) holdNewer(steps []step.Step) {
	if !c.in.Fenced || c.in.Commit.Revision == "" {
		return
	}
	byOwner := map[string][]cause{}
	var order []string
	for _, s := range steps {
		if s.Held != "" {
			continue
		}
		if _, known := byOwner[s.Owner()]; !known {
			order = append(order, s.Owner())
		}
		byOwner[s.Owner()] = append(byOwner[s.Owner()], c.causes(s)...)
	}
	for _, owner := range order {
		byOwner[owner] = append(byOwner[owner], c.poolCauses(owner)...)
		worst, found := model.RelationOlder, cause{}
		for _, cause := range byOwner[owner] {
			switch relation := c.relation(cause.commit); {
			case relation == model.RelationNewer || relation == model.RelationUnknown:
				c.ahead[cause.commit] = true
				if worst == model.RelationOlder || worst == model.RelationAsked {
					worst, found = relation, cause
				}
			case relation == model.RelationAsked && worst == model.RelationOlder:
				worst, found = relation, cause
			}
		}
		if worst != model.RelationOlder {
			c.holdOwner(steps, owner, worst, found)
		}
	}
}

// relation returns the relation of a commit to the followed commit. If it is unknown, relation adds
// the commit to Needs and treats it as older until the plan is computed again.
func (c *fence) relation(commit string) model.Relation {
	if strings.HasPrefix(c.in.Commit.Revision, commit) {
		return model.RelationOlder
	}
	relation, known := c.in.Relations[commit]
	if !known {
		c.Needs.Commits = append(c.Needs.Commits, commit)
		return model.RelationOlder
	}
	return relation
}

// holdOwner reports why an owner is fenced, and holds its steps. If the commit is not in the repository yet,
// the steps wait until Git has been asked for it.
func (c *fence) holdOwner(steps []step.Step, owner string, relation model.Relation, from cause) {
	d := diag.Diagnostic{Severity: diag.Error, Code: "commit-ahead", Object: c.objectOf(owner)}
	own := rollout.ShortRevision(c.in.Commit.Revision)
	hold, why, ends := step.HeldStopped, "another weir follows a newer commit: "+rollout.ShortRevision(from.commit), "this weir, once it follows that commit or a later one; weir reconcile "+c.in.Policy.Target+" --retry writes anyway"
	switch relation {
	case model.RelationNewer:
		d.Summary = from.what + " was made from the commit " + rollout.ShortRevision(from.commit) + ", which descends from " + own + ", the commit that this weir follows; nothing of " + ownerWords(owner) + " is written"
	case model.RelationUnknown:
		d.Summary = from.what + " was made from the commit " + rollout.ShortRevision(from.commit) + ", which the repository does not have (this weir has just read it, at " + own + "); nothing of " + ownerWords(owner) + " is written"
		ends += ", and weir also does after six hours without that commit in the repository"
	default:
		hold, ends, why = step.HeldWaiting, "", "weir fetches the commit "+rollout.ShortRevision(from.commit)+", from which "+from.what+" was made"
		d.Severity, d.Code = diag.Info, "commit-asked"
		d.Summary = from.what + " was made from the commit " + rollout.ShortRevision(from.commit) + ", which weir does not have yet; weir fetches it from Git before " + ownerWords(owner) + " is written"
	}
	d.Detail = diag.Hint(d.Code)
	c.Diags = append(c.Diags, d)
	for i := range steps {
		if s := &steps[i]; s.Owner() == owner && s.Held == "" {
			s.Held, s.HeldReason, s.HeldEnds = hold, why, ends
		}
	}
}

func ownerWords(owner string) string {
	if config, is := strings.CutPrefix(owner, step.OwnerOfConfig); is {
		return "the AWSLaunchConfig " + config
	}
	return "the pool " + owner
}

// objectOf returns the manifest object of an owner, "" if it is no longer in Git.
func (c *fence) objectOf(owner string) string {
	if config, is := strings.CutPrefix(owner, step.OwnerOfConfig); is {
		if s := c.shared[config]; s != nil {
			return s.Config.Source.String()
		}
		return ""
	}
	if p := c.in.Pool(owner); p != nil {
		return p.Infrastructure.String()
	}
	return ""
}

// causes returns the commits behind the resource of a step, and behind the launch templates that
// the step uses. If a step creates or deletes a resource, nothing of it may name a commit. So
// causes then adds the commits behind the target's other resources.
func (c *fence) causes(s step.Step) []cause {
	var out []cause
	switch s.Resource {
	case step.LaunchTemplate:
		out = c.templateCauses(out, s.Name)
	case step.AutoScalingGroup:
		g := c.in.State.Groups[s.Name]
		out = c.tagCauses(out, observed.GroupTagValues(g.Tags), "the group "+s.Name)
		out = c.templateCauses(out, g.Template.Name)
	case step.ManagedNodegroup:
		n := c.in.State.Nodegroups[observed.NodegroupName{Cluster: s.About().EksCluster(), Name: s.Name}]
		out = c.tagCauses(out, n.Tags, "the nodegroup "+s.Name)
		out = c.templateCauses(out, n.Template.Name)
	}
	if ref := s.About().Launches; ref != nil {
		out = c.templateCauses(out, ref.Name)
	}
	if s.Verb == step.Create || s.Verb == step.Delete {
		out = append(out, c.targetCauses()...)
	}
	return out
}

// poolCauses returns the commits that a pool's group and nodegroups name, even if no step changes
// these resources.
func (c *fence) poolCauses(owner string) (out []cause) {
	p := c.in.Pool(owner)
	switch {
	case p == nil:
	case p.Group != nil:
		out = c.tagCauses(out, observed.GroupTagValues(c.in.State.Groups[p.Group.Name].Tags), "the group "+p.Group.Name)
	case p.Nodegroup != nil:
		for _, n := range c.in.NodegroupsOf(p) {
			out = c.tagCauses(out, n.Tags, "the nodegroup "+n.Name)
		}
	}
	return out
}

// tagCauses adds the commit in a resource's tags if weir wrote it for this source. It ignores a
// value that is no full commit hash, because weir never writes one.
func (c *fence) tagCauses(out []cause, tags map[string]string, what string) []cause {
	if commit := tags[observed.TagRevision]; len(commit) >= 40 && hexDigits(commit) && fromHere(c.in, tags) {
		out = append(out, cause{commit, what})
	}
	return out
}

// fromHere reports whether, according to the tags, the instance made a resource from the source's
// commits.
func fromHere(in model.Input, tags map[string]string) bool {
	return tags[observed.TagOwner] == in.Policy.Instance && tags[observed.TagSource] == in.Policy.Source
}

// templateCauses adds the commits behind a launch template: from its tags and from its newest
// version.
func (c *fence) templateCauses(out []cause, name string) []cause {
	t, found := c.in.State.Templates[name]
	if !found || !fromHere(c.in, t.Tags) {
		return out
	}
	out = c.tagCauses(out, t.Tags, "the launch template "+name)
	if newest, read := t.Versions[t.LatestVersion]; read {
		return versionCause(out, t, newest)
	}
	if c.in.State.Unread.Versions[name] == nil {
		c.Version(t, t.LatestVersion)
	}
	return out
}

// versionCause adds the commit in a version's description, unless it may come from another
// repository.
func versionCause(out []cause, t observed.Template, v observed.TemplateVersion) []cause {
	if since, err := strconv.ParseInt(t.Tags[observed.TagSince], 10, 64); err == nil && v.Number <= since {
		return out
	}
	if commit := describedCommit(v.Description); commit != "" {
		out = append(out, cause{commit, "version " + strconv.FormatInt(v.Number, 10) + " of the launch template " + t.Name})
	}
	return out
}

// targetCauses returns the commits behind all resources of the target, as far as the state contains
// them.
func (c *fence) targetCauses() []cause {
	if c.around != nil {
		return c.around
	}
	var all []cause
	mine := c.in.Mine()
	for _, name := range mine.Groups {
		all = c.tagCauses(all, observed.GroupTagValues(c.in.State.Groups[name].Tags), "the group "+name)
	}
	for _, name := range mine.Nodegroups {
		all = c.tagCauses(all, c.in.State.Nodegroups[name].Tags, "the nodegroup "+name.Name)
	}
	for _, name := range mine.Templates {
		t := c.in.State.Templates[name]
		all = c.tagCauses(all, t.Tags, "the launch template "+name)
		if newest, read := t.Versions[t.LatestVersion]; read {
			all = versionCause(all, t, newest)
		}
	}
	c.around = []cause{}
	seen := map[string]bool{}
	for _, one := range all {
		if !seen[one.commit] {
			seen[one.commit] = true
			c.around = append(c.around, one)
		}
	}
	return c.around
}

// describedCommit returns the short hash of the commit in a version's description, "" if weir did
// not write the description or it names no commit.
func describedCommit(description string) string {
	if _, ours := content.DescriptionHashes(description); !ours {
		return ""
	}
	_, rest, _ := strings.Cut(description, " ")
	commit, _, _ := strings.Cut(rest, " ")
	if len(commit) != 7 || !hexDigits(commit) {
		return ""
	}
	return commit
}

func hexDigits(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// mostTags is the number of tags that EC2, Auto Scaling and EKS allow on a resource, not counting
// AWS's own tags. A stamp must not take the place of another tag.
const mostTags = 50

// roomFor reports whether a resource with the tags have and more has room for n further tags.
func roomFor(n int, have, more map[string]string) bool {
	for k := range have {
		if _, again := more[k]; !again && k != observed.TagRevision && k != observed.TagSince && !strings.HasPrefix(k, "aws:") {
			n++
		}
	}
	return n+len(more) <= mostTags
}

// setStamps adds the commit to steps that write tags. If a launch template becomes this source's, it
// also adds the number of the version after which that is so. Neither tag is worth a write of its
// own, so neither is part of the plan.
func setStamps(in model.Input, steps []step.Step) {
	if in.Commit.Revision == "" {
		return
	}
	usual := map[string]string{observed.TagRevision: in.Commit.Revision}
	for i := range steps {
		steps[i].Stamp = stampOf(in, steps[i].Do, usual)
	}
}

// stampOf returns the tags to add to an action, nearly always usual.
func stampOf(in model.Input, do step.Action, usual map[string]string) map[string]string {
	if _, tags := do.(step.Tagging); !tags {
		return nil
	}
	about, stamp := do.About(), usual
	var have map[string]string
	switch {
	case about.Group != "":
		have = observed.GroupTagValues(in.State.Groups[about.Group].Tags)
	case about.Nodegroup != (observed.NodegroupName{}):
		have = in.State.Nodegroups[about.Nodegroup].Tags
	case about.Template != (observed.TemplateRef{}):
		t := in.State.Templates[about.Template.Name]
		if have = t.Tags; !fromHere(in, have) {
			stamp = observed.WithTags(usual, map[string]string{observed.TagSince: strconv.FormatInt(t.LatestVersion, 10)})
		}
	}
	if len(about.Put) == 0 || !roomFor(len(stamp), have, about.Put) {
		return nil
	}
	return stamp
}

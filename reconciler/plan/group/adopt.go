package group

import (
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// adoptGroup plans the adoption of a group. g gets the tags after the adoption.
func (c Planner) adoptGroup(pool *intent.Pool, g *observed.Group, o *model.Ownership) bool {
	have, want := observed.GroupTagValues(g.Tags), groupTags(*c.In, pool)
	if g.Deleting || !c.In.MayAdopt(pool, have, want, o) {
		return false
	}
	want = takingProcesses(RecordingHooks(want, have, pool.Group.LifecycleHooks), *g, pool)
	want = observed.WithTags(want, map[string]string{observed.TagAdopted: model.AdoptedFor(pool)})
	put, remove := model.MissingTags(want, have)
	t := step.TagGroup{Group: g.Name, Put: observed.GroupTags(put), Remove: remove}
	c.Adopt(pool, step.AutoScalingGroup, g.Name, have, t)
	g.Tags = t.Tags(g.Tags)
	return true
}

// adoption decides which machines stay in a group that somebody else made.
type adoption struct {
	planner template.Planner
	want    *template.Want
	have    observed.Group
}

// keepMachines finds the machines that an adoption must not replace, and marks their versions in w.
// Cluster API Provider AWS makes a version for each join token and replaces no machine for it. So a
// pool's machines run many versions that differ only in user data, and some of these versions are
// already deleted. keepMachines keeps all these machines as long as weir did not make the wanted
// version. It also keeps them for weir's first version after such a version, if the two differ only
// in the user data of a KubeadmConfig. The next change in Git is rolled out to all of them.
func (a adoption) keepMachines(pool *intent.Pool, w *template.Version) {
	if !w.Found || a.want == nil || !w.Foreign && !a.firstOfWeir(pool, *w) {
		return
	}
	w.TakenOver = w.TakenOver || !w.Foreign
	w.Kept = map[int64]bool{}
	n := 0
	for _, i := range a.have.Instances {
		number := model.VersionOf(w.Template, i.Template)
		if !i.Leaving() && !w.Resolves(i.Template) && number != 0 && a.stays(*w, number) {
			w.Kept[number] = true
			n++
		}
	}
	if n > 0 {
		a.planner.Note(diag.Info, pool, nil, "adopted-instances",
			strconv.Itoa(n)+" instances of "+a.have.Name+" run versions from before weir adopted the group, which differ from version "+w.Version()+" only in user data; weir does not replace them",
			"they are replaced when the pool's launch configuration changes in Git")
	}
}

// firstOfWeir reports whether the wanted version is weir's first one after a version of somebody
// else, differs from that only in the user data of a KubeadmConfig, and is not rolled out.
func (a adoption) firstOfWeir(pool *intent.Pool, w template.Version) bool {
	stale := slices.ContainsFunc(a.have.Instances, func(i observed.Instance) bool { return !i.Leaving() && !w.Resolves(i.Template) })
	if pool.Bootstrap.Kind != "KubeadmConfig" || !w.Made() && !stale && w.Template.DefaultVersion == w.Number {
		return false
	}
	before, read := a.planner.Version(w.Template, w.Number-1)
	return read && !template.MadeByWeir(before) && template.SameMachines(before, w.Content(a.want), false)
}

// stays reports whether machines of another version of the template stay: somebody else made it,
// and it differs at most in user data. A deleted version counts too, if weir cannot have made it.
func (a adoption) stays(w template.Version, number int64) bool {
	v, known := a.planner.Version(w.Template, number)
	if !known {
		return w.Template.Missing[number] && !w.OwnBefore()
	}
	return !template.MadeByWeir(v) && template.SameMachines(v, w.Content(a.want), false)
}

// keepAlike finds machines of an adopted, undecided group that run the wanted configuration
// although another launch template or a launch configuration started them. The group then launches
// from weir's template, and these machines stay.
func (a adoption) keepAlike(w *template.Version) {
	data := w.Content(a.want)
	for _, i := range a.have.Instances {
		if i.Leaving() || w.Runs(i.Template) {
			continue
		}
		if v, known := a.startedBy(i, w); known && !template.MadeByWeir(v) && template.SameButTags(v, data) {
			if w.Alike == nil {
				w.Alike = map[string]bool{}
			}
			w.Alike[i.ID] = true
		}
	}
}

// startedBy returns the version or launch configuration that started an instance. It requests it if
// it is not read yet.
func (a adoption) startedBy(i observed.Instance, w *template.Version) (v observed.TemplateVersion, known bool) {
	if name := i.LaunchConfiguration; name != "" {
		if v, known = a.planner.In.State.LaunchConfigurations[name]; !known {
			a.planner.Needs.LaunchConfigurations = append(a.planner.Needs.LaunchConfigurations, name)
		}
		return v, known
	}
	t := w.Template
	if !w.Found || i.Template.ID != t.ID {
		if t, known = a.planner.In.State.Templates[i.Template.Name]; !known && i.Template.Name != "" && !a.planner.In.State.Absent.Templates[i.Template.Name] {
			a.planner.Needs.TemplateNames = append(a.planner.Needs.TemplateNames, i.Template.Name)
		}
		if !known || t.ID != i.Template.ID {
			return v, false
		}
	}
	return a.planner.Version(t, model.VersionOf(t, i.Template))
}

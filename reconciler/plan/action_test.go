package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// An action that launches machines takes a version that is yet to be made, one that writes tags takes other tags, and one that ends something waits
// to see nothing.
func TestAnActionKeepsWhatItSaysOfItself(t *testing.T) {
	there, ref, tags := observed.TemplateRef{ID: "lt-1", Name: "web"}, observed.TemplateRef{Name: "web", Content: "c"}, map[string]string{"k": "v"}
	group, name := map[string]observed.GroupTag{"k": {Value: "v"}}, observed.NodegroupName{Cluster: "c", Name: "n"}
	for _, a := range []step.Action{
		step.CreateLaunchTemplate{Tags: tags}, step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{Name: "web"}}, step.TagLaunchTemplate{Template: there, Put: tags},
		step.SetDefaultVersion{Template: there}, step.DeleteLaunchTemplate{Template: there}, step.DeleteLaunchTemplateVersions{Template: there},
		step.CreateGroup{Group: observed.Group{Template: ref, Tags: group}}, step.UpdateGroup{Name: "g", Template: &ref}, step.UpdateGroup{Name: "g"},
		step.StartRefresh{Group: "g", Template: ref}, step.CancelRefresh{Group: "g"}, step.RollbackRefresh{Group: "g"}, step.TagGroup{Group: "g", Put: group}, step.DeleteGroup{Name: "g"},
		step.SetProcesses{Group: "g"}, step.SetTrafficSources{Group: "g"}, step.PutWarmPool{Group: "g"}, step.DeleteWarmPool{Group: "g"}, step.SetMetrics{Group: "g"},
		step.PutHook{Group: "g"}, step.DeleteHook{Group: "g"}, step.HoldMachine{Group: "g"}, step.ReleaseMachine{Group: "g"}, step.CreateNodegroup{Nodegroup: observed.Nodegroup{Template: ref, Tags: tags}},
		step.UpdateNodegroupConfig{NodegroupName: name}, step.UpdateNodegroupVersion{NodegroupName: name, Template: &ref}, step.TagNodegroup{NodegroupName: name, Put: tags},
		step.DeleteNodegroup{NodegroupName: name},
	} {
		made := step.Made{}
		made[step.MadeKey{Name: "web", Content: "c"}] = observed.TemplateRef{ID: "lt-1", Name: "web", Version: "3"}
		made[step.MadeKey{Name: "web"}] = observed.TemplateRef{ID: "lt-1", Name: "web", Version: "3"}
		if waits := a.About().Launches != nil || a.About().Template.Name != "" && a.About().Template.ID == ""; waits != step.Unmade(a) || step.Unmade(step.WithTemplate(a, made)) {
			t.Errorf("%T: waits for a version %v, with it %v", a, step.Unmade(a), step.Unmade(step.WithTemplate(a, made)))
		}
		if w, writes := a.(step.Tagging); writes != (a.About().Put != nil) {
			t.Errorf("%T writes tags: %v", a, writes)
		} else if writes {
			if d := cmp.Diff(map[string]string{"k": "v", "l": "w"}, w.Tagged(map[string]string{"l": "w"}).About().Put); d != "" || len(tags)+len(group) != 2 {
				t.Errorf("%T (-want +got):\n%s", a, d)
			}
		}
		if a.About().Ends && len(a.About().Subjects()) > 0 {
			t.Errorf("%T waits for %v", a, a.About().Subjects())
		}
	}
}

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What launches machines from a version takes one that is yet to be made, what writes
// tags takes another, and what ends something waits for nothing to be seen.
func TestAnActionKeepsWhatItSaysOfItself(t *testing.T) {
	there, ref, tags := TemplateRef{ID: "lt-1", Name: "web"}, TemplateRef{Name: "web", Content: "c"}, map[string]string{"k": "v"}
	group, name := map[string]GroupTag{"k": {Value: "v"}}, NodegroupName{"c", "n"}
	for _, a := range []Action{
		CreateLaunchTemplate{Tags: tags}, CreateLaunchTemplateVersion{Template: TemplateRef{Name: "web"}}, TagLaunchTemplate{Template: there, Put: tags},
		SetDefaultVersion{Template: there}, DeleteLaunchTemplate{Template: there}, DeleteLaunchTemplateVersions{Template: there},
		CreateGroup{Group: Group{Template: ref, Tags: group}}, UpdateGroup{Name: "g", Template: &ref}, UpdateGroup{Name: "g"},
		StartRefresh{Group: "g", Template: ref}, CancelRefresh{Group: "g"}, TagGroup{Group: "g", Put: group}, DeleteGroup{Name: "g"},
		SetProcesses{Group: "g"}, SetTrafficSources{Group: "g"}, PutWarmPool{Group: "g"}, DeleteWarmPool{Group: "g"}, SetMetrics{Group: "g"},
		PutHook{Group: "g"}, DeleteHook{Group: "g"}, CreateNodegroup{Nodegroup: Nodegroup{Template: ref, Tags: tags}},
		UpdateNodegroupConfig{NodegroupName: name}, UpdateNodegroupVersion{NodegroupName: name, Template: &ref}, TagNodegroup{NodegroupName: name, Put: tags},
		DeleteNodegroup{NodegroupName: name},
	} {
		made := Made{}
		made[madeKey{name: "web", content: "c"}] = TemplateRef{ID: "lt-1", Name: "web", Version: "3"}
		made[madeKey{name: "web"}] = TemplateRef{ID: "lt-1", Name: "web", Version: "3"}
		if waits := a.About().Launches != nil || a.About().Template.Name != "" && a.About().Template.ID == ""; waits != Unmade(a) || Unmade(WithTemplate(a, made)) {
			t.Errorf("%T: waits for a version %v, with it %v", a, Unmade(a), Unmade(WithTemplate(a, made)))
		}
		if w, writes := a.(tagging); writes != (a.About().Put != nil) {
			t.Errorf("%T writes tags: %v", a, writes)
		} else if writes {
			if d := cmp.Diff(map[string]string{"k": "v", "l": "w"}, w.tagged(map[string]string{"l": "w"}).About().Put); d != "" || len(tags)+len(group) != 2 {
				t.Errorf("%T (-want +got):\n%s", a, d)
			}
		}
		if a.About().Ends && len(a.About().Subjects()) > 0 {
			t.Errorf("%T waits for %v", a, a.About().Subjects())
		}
	}
}

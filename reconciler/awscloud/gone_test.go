package awscloud_test

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// TestADeniedWriteToWhatIsGone: under a policy that limits writes by tags AWS denies a write
// to a resource that does not exist. A deletion is then done, a change finds nothing, and a
// denied write to what exists stays one.
func TestADeniedWriteToWhatIsGone(t *testing.T) {
	e := start(t)
	there := e.do(createTemplate(e, "there")).Template
	e.do(createGroup(e, "there", there, 0))
	gone := e.do(createTemplate(e, "gone")).Template
	e.do(step.DeleteLaunchTemplate{Template: observed.TemplateRef{ID: gone.ID, Name: gone.Name}})
	for _, f := range []struct{ service, code string }{{"ec2", "UnauthorizedOperation"}, {"autoscaling", "AccessDenied"}, {"eks", "AccessDeniedException"}} {
		for _, operation := range []string{"DeleteLaunchTemplate", "DeleteLaunchTemplateVersions", "ModifyLaunchTemplate", "DeleteAutoScalingGroup", "UpdateAutoScalingGroup", "CreateOrUpdateTags", "CancelInstanceRefresh", "DeleteNodegroup", "UpdateNodegroupConfig"} {
			e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: f.service, Operation: operation, Times: -1, Code: f.code, Message: "not authorized"})
		}
	}
	noNodegroup := observed.NodegroupName{Cluster: "demo", Name: "gone"}
	for name, tt := range map[string]struct {
		do   step.Action
		want observed.ErrorKind
	}{
		"delete a template":             {step.DeleteLaunchTemplate{Template: observed.TemplateRef{ID: gone.ID, Name: "gone"}}, ""},
		"delete versions of a template": {step.DeleteLaunchTemplateVersions{Template: observed.TemplateRef{ID: gone.ID, Name: "gone"}, Versions: []int64{1}}, ""},
		"set the default of a template": {step.SetDefaultVersion{Template: observed.TemplateRef{ID: gone.ID, Name: "gone", Version: "1"}}, observed.NotFound},
		"delete a group":                {step.DeleteGroup{Name: "gone"}, ""},
		"cancel a refresh":              {step.CancelRefresh{Group: "gone"}, ""},
		"update a group":                {step.UpdateGroup{Name: "gone", MinSize: ptr[int32](0)}, observed.NotFound},
		"tag a group":                   {step.TagGroup{Group: "gone", Put: map[string]observed.GroupTag{"a": {Value: "b"}}}, observed.NotFound},
		"delete a nodegroup":            {step.DeleteNodegroup{NodegroupName: noNodegroup}, ""},
		"update a nodegroup":            {step.UpdateNodegroupConfig{NodegroupName: noNodegroup, MinSize: ptr[int32](0)}, observed.NotFound},
		"delete a template that exists": {step.DeleteLaunchTemplate{Template: observed.TemplateRef{ID: there.ID, Name: "there"}}, observed.Denied},
		"delete a group that exists":    {step.DeleteGroup{Name: "there"}, observed.Denied},
		"update a group that exists":    {step.UpdateGroup{Name: "there", MinSize: ptr[int32](0)}, observed.Denied},
	} {
		_, err := e.cloud.Execute(t.Context(), tt.do)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (err == nil || kind(t, err) != tt.want):
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

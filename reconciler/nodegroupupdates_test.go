package reconciler

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// An update is forgotten once AWS says that its nodegroup is gone.
func TestUpdatesOfGoneNodegroupsAreForgotten(t *testing.T) {
	name := observed.NodegroupName{Cluster: "demo", Name: "ng"}
	listed := map[string]bool{"demo": true}
	for what, tc := range map[string]struct {
		state observed.State
		kept  bool
	}{
		"the nodegroup is gone":      {observed.State{Clusters: listed}, false},
		"it exists":                  {observed.State{Clusters: listed, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{name: {}}}, true},
		"the cluster was not listed": {observed.State{}, true},
		"the cluster cannot be read": {observed.State{Clusters: listed, Unread: observed.Unread{Clusters: map[string]*observed.Error{"demo": {}}}}, true},
	} {
		var u nodegroupUpdates
		u.recordStarted(name, model.StartedUpdate{UpdateID: "u-1"})
		u.forget(&tc.state)
		if _, kept := u.view()[name]; kept != tc.kept {
			t.Errorf("%s: kept: %t", what, kept)
		}
	}
}

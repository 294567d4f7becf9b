package reconciler

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// ofCluster is a target with a nodegroup in a cluster.
func ofCluster(name string) Desired {
	return Desired{Policy: model.Policy{Target: name}, Set: &intent.Set{Pools: []intent.Pool{{Nodegroup: &intent.Nodegroup{ClusterName: name}}}}}
}

func TestClustersAreListedForAWhile(t *testing.T) {
	owned := func(by string) map[observed.NodegroupName]observed.Nodegroup {
		return map[observed.NodegroupName]observed.Nodegroup{{Cluster: "old", Name: "ng"}: {Tags: map[string]string{observed.TagOwner: by}}}
	}
	exists, gone := map[string]bool{"old": true}, map[string]bool{"old": false}
	unread := observed.Unread{Clusters: map[string]*observed.Error{"old": {}}}
	for name, tc := range map[string]struct {
		state observed.State
		after time.Duration
		kept  bool
	}{
		"it exists":                           {observed.State{Clusters: exists}, time.Minute, true},
		"it exists, for long":                 {observed.State{Clusters: exists}, time.Minute + 1, false},
		"it has a nodegroup of ours":          {observed.State{Clusters: exists, Nodegroups: owned("prod")}, time.Hour, true},
		"it has a nodegroup of somebody else": {observed.State{Clusters: exists, Nodegroups: owned("other")}, time.Hour, false},
		"it is gone":                          {observed.State{Clusters: gone}, 1, false},
		"it is gone, but was just named":      {observed.State{Clusters: gone}, 0, true},
		"it was not listed":                   {observed.State{}, time.Hour, true},
		"it cannot be read":                   {observed.State{Clusters: exists, Unread: unread}, time.Hour, true},
		"it cannot be read, for long":         {observed.State{Clusters: exists, Unread: unread}, time.Hour + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			var c clusterNames
			if got := c.query([]Desired{ofCluster("old")}, noon); !slices.Equal([]string{"old"}, got) {
				t.Fatalf("listed: %v", got)
			}
			now := noon.Add(tc.after)
			if got := c.query([]Desired{ofCluster("new")}, now); !slices.Equal([]string{"new", "old"}, got) {
				t.Fatalf("listed: %v", got)
			}
			c.forget(&tc.state, "prod", now, now)
			if got := slices.Contains(c.query(nil, now), "old"); got != tc.kept {
				t.Errorf("kept: %t", got)
			}
		})
	}
}

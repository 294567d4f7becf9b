package plan

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// The nodegroup that serves comes first, then the older one.
func TestNodegroupsInOrder(t *testing.T) {
	pool := nodegroupPool("web", 1)
	s := &observed.State{Nodegroups: map[observed.NodegroupName]observed.Nodegroup{}}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	in := model.Input{State: s, Policy: model.Policy{Instance: "i"}}
	add := func(name, status, owner string, age time.Duration) {
		n := observed.NodegroupName{Cluster: pool.Nodegroup.ClusterName, Name: name}
		s.Nodegroups[n] = observed.Nodegroup{NodegroupName: n, Status: status, CreatedAt: at.Add(-age), Tags: map[string]string{observed.TagOwner: owner, observed.TagPool: pool.Key.String()}}
	}
	add("web-aaaaaa", "CREATING", "i", 5*time.Hour)
	add("web-bbbbbb", "ACTIVE", "i", time.Hour)
	add("web-cccccc", "UPDATING", "i", 2*time.Hour)
	add("web-dddddd", "ACTIVE", "somebody", 3*time.Hour)
	add("web-eeeeee", "DELETING", "i", 4*time.Hour)
	add("web-ffffff", "CREATE_FAILED", "i", 6*time.Hour)
	add("other", "ACTIVE", "i", 6*time.Hour)
	var got []string
	for _, n := range in.NodegroupsOf(&pool) {
		got = append(got, strings.TrimPrefix(n.Name, "web-"))
	}
	if want := []string{"cccccc", "bbbbbb", "aaaaaa", "ffffff", "eeeeee"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := RolloutsMoving(s, "i"); n != 3 {
		t.Errorf("%d rollouts are moving, want the update, the replacement and the one whose nodes are drained", n)
	}
}

package awscloud_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	eksCluster = "demo" // the cluster that every region of the emulator has
	nodeRole   = "nodes.cluster-api-provider-aws.sigs.k8s.io"
)

func (e *env) role() string {
	e.t.Helper()
	role, found, err := e.cloud.Role(context.Background(), nodeRole)
	if err != nil || !found {
		e.t.Fatalf("role: %v %v", found, err)
	}
	return role.ARN
}

func createNodegroup(e *env, name string) step.CreateNodegroup {
	return step.CreateNodegroup{Nodegroup: observed.Nodegroup{
		NodegroupName: observed.NodegroupName{Cluster: eksCluster, Name: name}, NodeRole: e.role(), SubnetIDs: e.subnets(), MinSize: 0, MaxSize: 3, DesiredSize: 1,
		NodegroupSettings: intent.NodegroupSettings{AMIType: "AL2023_x86_64_STANDARD", CapacityType: "ON_DEMAND", InstanceTypes: []string{"m5.large"}, DiskSize: 30,
			Labels: map[string]string{"a": "1", "b": "2"}, Taints: []intent.Taint{{Key: "k", Value: "v", Effect: "NO_SCHEDULE"}},
			UpdateConfig: intent.UpdateConfig{MaxUnavailable: 1}, NodeRepair: ptr(true)}, Tags: tags(name),
	}}
}

func TestNodegroupLife(t *testing.T) {
	e := start(t)
	create := createNodegroup(e, "web")
	name := create.Nodegroup.NodegroupName
	e.do(create)
	e.do(create) // the same again
	other := create
	other.Nodegroup.Tags = map[string]string{observed.TagOwner: "dev"}
	if _, err := e.cloud.Execute(t.Context(), other); kind(t, err) != observed.AlreadyThere {
		t.Errorf("another owner's nodegroup: %v", err)
	}
	q := query()
	q.EKSClusters = []string{eksCluster, "none"}
	s := e.observe(q)
	if d := cmp.Diff(map[string]bool{eksCluster: true, "none": false}, s.Clusters); d != "" {
		t.Errorf("clusters (-want +got):\n%s", d)
	}
	if got := s.Nodegroups[name].Status; got != "CREATING" {
		t.Errorf("status %s", got)
	}
	e.clock.Advance(time.Minute)
	s = e.observe(q)
	got := s.Nodegroups[name]
	if len(got.GroupNames) != 1 || got.ARN == "" || got.CreatedAt.IsZero() || got.Status != "ACTIVE" || got.ReleaseVersion == "" || got.Version == "" {
		t.Errorf("nodegroup %+v", got)
	}
	behind := got.GroupNames[0]
	got.GroupNames, got.ARN, got.CreatedAt, got.Status, got.ReleaseVersion, got.Version = nil, "", time.Time{}, "", "", ""
	want := create.Nodegroup
	want.SubnetIDs, want.DescribedAtPass = e.subnets(), true
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("nodegroup (-want +got):\n%s", d)
	}

	res := e.do(step.UpdateNodegroupConfig{NodegroupName: name, MinSize: ptr[int32](1), MaxSize: ptr[int32](4), DesiredSize: ptr[int32](2),
		PutLabels: map[string]string{"a": "9"}, RemoveLabels: []string{"b"}, PutTaints: []intent.Taint{{Key: "x", Effect: "NO_EXECUTE"}},
		RemoveTaints: []intent.Taint{{Key: "k", Value: "v", Effect: "NO_SCHEDULE"}},
		Settings:     intent.NodegroupSettings{UpdateConfig: intent.UpdateConfig{MaxUnavailablePercentage: 50}, NodeRepair: ptr(false)}})
	if _, err := e.cloud.Execute(t.Context(), step.UpdateNodegroupVersion{NodegroupName: name, Version: "1.34"}); kind(t, err) != observed.Busy {
		t.Errorf("a second update meanwhile: %v", err)
	}
	e.clock.Advance(time.Minute)
	s = e.fill(e.observe(q), observed.Needs{Updates: []observed.NodegroupName{name}})
	if u := s.Updates[name]; u.ID != res.UpdateID || u.Type != "ConfigUpdate" || u.Status != "Successful" || u.CreatedAt.IsZero() {
		t.Errorf("update %+v, want %s", u, res.UpdateID)
	}
	n := s.Nodegroups[name]
	if n.MinSize != 1 || n.MaxSize != 4 || n.DesiredSize != 2 || *n.NodeRepair || n.UpdateConfig != (intent.UpdateConfig{MaxUnavailablePercentage: 50}) {
		t.Errorf("after the update: %+v", n)
	}
	if d := cmp.Diff(map[string]string{"a": "9"}, n.Labels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]intent.Taint{{Key: "x", Effect: "NO_EXECUTE"}}, n.Taints); d != "" {
		t.Errorf("taints (-want +got):\n%s", d)
	}

	e.do(step.TagNodegroup{NodegroupName: name, ARN: n.ARN, Put: map[string]string{"k": "v"}, Remove: []string{observed.TagPool}})
	e.do(step.TagGroup{Group: behind, Put: groupTags("web")})
	q.EKSClusters = nil // the group behind names the cluster now
	s = e.observe(q)
	if n := s.Nodegroups[name]; n.Tags["k"] != "v" || n.Tags[observed.TagPool] != "" {
		t.Errorf("tags %v", n.Tags)
	}
	if g, ok := s.Groups[behind]; !ok || len(g.Instances) == 0 {
		t.Errorf("the group behind is %+v", g)
	}
	e.do(step.DeleteNodegroup{NodegroupName: name})
	if n := e.observe(q).Nodegroups[name]; n.Status != "DELETING" {
		t.Errorf("the deleted nodegroup is %s", n.Status)
	}
	e.clock.Advance(time.Minute)
	e.do(step.DeleteNodegroup{NodegroupName: name})
	q.EKSClusters = []string{eksCluster}
	s = e.observe(q)
	calls := e.counted(func() { s = e.fill(s, observed.Needs{Nodegroups: []observed.NodegroupName{name}}) })
	if !s.Absent.Nodegroups[name] || len(s.Nodegroups) != 0 || len(calls) != 0 {
		t.Errorf("after the deletion: %+v with the calls %v", s, calls)
	}
}

func TestNodegroupVersionByTemplate(t *testing.T) {
	e := start(t)
	data := intent.TemplateData{InstanceType: "m5.large"}
	ref := e.do(step.CreateLaunchTemplate{Name: "web", Data: data, Tags: tags("web")}).Template
	create := createNodegroup(e, "web")
	create.Nodegroup.Template, create.Nodegroup.DiskSize, create.Nodegroup.InstanceTypes = ref, 0, nil
	e.do(create)
	name := create.Nodegroup.NodegroupName
	e.clock.Advance(time.Minute)
	data.InstanceType = "m5.xlarge"
	next := e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: ref.ID, Name: "web"}, Data: data}).Template
	res := e.do(step.UpdateNodegroupVersion{NodegroupName: name, Template: &next})
	for range 20 {
		e.clock.Advance(5 * time.Second)
		e.observe(query())
	}
	s := e.fill(e.observe(query()), observed.Needs{Nodegroups: []observed.NodegroupName{name}, Updates: []observed.NodegroupName{name}})
	if u := s.Updates[name]; u.ID != res.UpdateID || u.Status != "Successful" || u.Type != "VersionUpdate" {
		t.Errorf("update %+v", u)
	}
	if n := s.Nodegroups[name]; n.Template != next || n.Status != "ACTIVE" {
		t.Errorf("nodegroup %+v", n)
	}
}

func TestLostAnswersOfNodegroups(t *testing.T) {
	e := start(t)
	for _, op := range []string{"CreateNodegroup", "UpdateNodegroupConfig", "TagResource", "UntagResource", "DeleteNodegroup"} {
		e.srv.Faults().Add(awsemu.Fault{Kind: awsemu.LoseAnswer, Operation: op})
	}
	create := createNodegroup(e, "web")
	name := create.Nodegroup.NodegroupName
	e.do(create)
	e.clock.Advance(time.Minute)
	res := e.do(step.UpdateNodegroupConfig{NodegroupName: name, MaxSize: ptr[int32](4)})
	e.clock.Advance(time.Minute)
	q := query()
	q.EKSClusters = []string{eksCluster}
	s := e.fill(e.observe(q), observed.Needs{Updates: []observed.NodegroupName{name}})
	if s.Updates[name].ID != res.UpdateID || s.Nodegroups[name].MaxSize != 4 {
		t.Errorf("update %+v of %+v, want %s", s.Updates[name], s.Nodegroups[name], res.UpdateID)
	}
	e.do(step.TagNodegroup{NodegroupName: name, ARN: s.Nodegroups[name].ARN, Put: map[string]string{"k": "v"}, Remove: []string{observed.TagPool}})
	e.do(step.DeleteNodegroup{NodegroupName: name})
	e.clock.Advance(time.Minute)
	if s := e.observe(q); len(s.Nodegroups) != 0 {
		t.Errorf("left %+v", s.Nodegroups)
	}
}

// TestNodegroupsAreDescribedInRounds checks which nodegroups of resting ones a
// daemon's pass describes.
func TestNodegroupsAreDescribedInRounds(t *testing.T) {
	const count, round = 12, 5 * time.Minute
	e := start(t)
	for i := range count {
		e.do(createNodegroup(e, fmt.Sprintf("ng-%02d", i)))
	}
	q := query()
	q.EKSClusters, q.Round = []string{eksCluster}, round
	described := func() map[observed.NodegroupName]bool {
		out := map[observed.NodegroupName]bool{}
		for name, n := range e.observe(q).Nodegroups {
			if n.DescribedAtPass {
				out[name] = true
			}
		}
		return out
	}
	calls := func(want int) {
		t.Helper()
		var got map[observed.NodegroupName]bool
		n := e.counted(func() { got = described() })
		if len(got) != want || n["eks:DescribeNodegroup"] != want || n["eks:ListNodegroups"] != 1 {
			t.Errorf("described %d with the calls %v, want %d", len(got), n, want)
		}
	}
	calls(count) // none is known
	calls(count) // none is ACTIVE
	e.clock.Advance(time.Minute)
	calls(count)
	seen, most := map[observed.NodegroupName]int{}, 0
	for range 20 {
		e.clock.Advance(round / 20)
		n := described()
		most = max(most, len(n))
		for name := range n {
			seen[name]++
		}
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is described %d times in a round", name, n)
		}
	}
	if len(seen) != count || most > count/2 {
		t.Errorf("in a round %d of %d are described, up to %d at a time", len(seen), count, most)
	}
	var resting observed.NodegroupName // one that is not due now
	due := described()
	for name := range seen {
		if !due[name] {
			resting = name
			break
		}
	}
	e.do(step.UpdateNodegroupConfig{NodegroupName: resting, MaxSize: ptr[int32](9)})
	if !described()[resting] {
		t.Error("a nodegroup that was changed is not described")
	}
	q.Round = 1000 * time.Hour
	e.clock.Advance(time.Minute)
	described()
	s := e.observe(q)
	if s.Nodegroups[resting].DescribedAtPass || s.Nodegroups[resting].MaxSize != 9 {
		t.Errorf("the resting nodegroup is %+v", s.Nodegroups[resting])
	}
	group := s.Nodegroups[resting].GroupNames[0]
	e.do(step.TagGroup{Group: group, Put: groupTags(resting.Name)})
	if !described()[resting] {
		t.Error("a nodegroup whose group came into view is not described")
	}
	if described()[resting] {
		t.Error("it is described although nothing changed since")
	}
	e.do(step.UpdateGroup{Name: group, DesiredCapacity: ptr[int32](3)}) // as an autoscaler does
	if !described()[resting] {
		t.Error("a nodegroup whose group changed is not described")
	}
}

// One that is on its way is described as often as it may be done: often in its first
// seconds, once a minute while it takes many of them.
func TestNodegroupsOnTheirWayAreDescribedLessAndLess(t *testing.T) {
	e := limited(t)
	e.do(createNodegroup(e, "ng"))
	name := observed.NodegroupName{Cluster: eksCluster, Name: "ng"}
	q := query()
	q.EKSClusters, q.Round = []string{eksCluster}, 5*time.Minute
	e.observe(q)
	e.clock.Advance(time.Minute)
	if s := e.observe(q).Nodegroups[name]; s.Status != "ACTIVE" {
		t.Fatalf("it is %s", s.Status)
	}
	remove := e.srv.Faults().Nodegroups.Add(eks.NodegroupFault{Issue: "InsufficientFreeAddresses"})
	e.clock.Advance(5 * time.Minute) // once in a round, it is found out
	e.observe(q)
	minutes := make([]int, 5)
	for i := range minutes {
		for range 12 {
			e.clock.Advance(5 * time.Second)
			minutes[i] += e.counted(func() { e.observe(q) })["eks:DescribeNodegroup"]
		}
	}
	if minutes[0] < 3 || minutes[0] > 5 || minutes[3] != 1 || minutes[4] != 1 {
		t.Errorf("it is described %v times, minute by minute", minutes)
	}
	remove()
	e.clock.Advance(time.Minute)
	if s := e.observe(q).Nodegroups[name]; s.Status != "ACTIVE" {
		t.Errorf("it is %s", s.Status)
	}
}

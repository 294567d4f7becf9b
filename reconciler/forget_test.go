package reconciler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// inCluster is a nodegroup pool of a cluster.
func inCluster(cluster, name string) intent.Pool {
	p := nodegroupPool(name, 1)
	ng := *p.Nodegroup
	ng.ClusterName, ng.Cluster.Name = cluster, cluster
	p.Nodegroup = &ng
	return p
}

// passes makes a pass each five seconds, and returns what of an operation was called.
func (w *world) passes(n int, operation string, targets ...reconciler.Desired) int {
	w.t.Helper()
	w.srv.ResetCalls()
	for range n {
		w.must(reconciler.Apply, targets...)
		w.clock.Advance(5 * time.Second)
	}
	return w.srv.CallCounts()[operation]
}

// Clusters that Git named once cost no call once nobody names them.
func TestClustersThatNobodyNamesAreForgotten(t *testing.T) {
	w := newWorld(t)
	var pools []intent.Pool
	for i := range 40 {
		pools = append(pools, inCluster(fmt.Sprint("gone-", i), fmt.Sprint("ng-", i)))
	}
	web := groupPool("web", "m5.large", 1)
	w.must(reconciler.Apply, target("blue", append(pools, web)...))
	w.clock.Advance(5 * time.Second)
	w.must(reconciler.Apply, target("blue", web))
	if n := w.passes(6, "eks:ListNodegroups", target("blue", web)); n > 0 {
		t.Errorf("%d calls in 30 s for clusters that are gone", n)
	}
	if n := w.scope.Remembered()["clusters"]; n > 0 {
		t.Errorf("%d clusters are remembered", n)
	}
}

// Those that AWS does not let weir read are asked for an hour longer: nobody knows what
// is in them.
func TestClustersThatMayNotBeReadAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "ListNodegroups", Code: "AccessDeniedException", Status: 403, Times: -1})
	web := groupPool("web", "m5.large", 1)
	w.must(reconciler.Apply, target("blue", inCluster("demo", "ng"), web))
	w.clock.Advance(5 * time.Minute)
	if n := w.passes(6, "eks:ListNodegroups", target("blue", web)); n != 6 {
		t.Errorf("%d calls after some minutes", n)
	}
	w.clock.Advance(time.Hour)
	w.must(reconciler.Apply, target("blue", web))
	if n := w.passes(6, "eks:ListNodegroups", target("blue", web)); n > 0 {
		t.Errorf("%d calls after an hour", n)
	}
}

// Nor do launch templates that nobody removes, each pass, where their clusters are gone.
func TestClustersThatTemplatesNameAreAskedForRarely(t *testing.T) {
	w := newWorld(t)
	d := target("blue", groupPool("web", "m5.large", 1))
	d.Policy.Prune.Enabled = false
	for i := range 40 {
		name := fmt.Sprint("left-", i)
		w.check(w.ec2().CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: &name, LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "m5.large"},
			TagSpecifications: []ec2types.TagSpecification{{ResourceType: "launch-template", Tags: []ec2types.Tag{
				{Key: aws.String(observed.TagOwner), Value: aws.String(testInstance)}, {Key: aws.String(observed.TagSource), Value: aws.String(testSource)},
				{Key: aws.String(observed.TagTarget), Value: aws.String("blue")}, {Key: aws.String(observed.TagPool), Value: aws.String("default/" + name)},
				{Key: aws.String(observed.TagCluster), Value: aws.String(fmt.Sprint("gone-", i))},
			}}},
		}))
	}
	w.settle(d)
	w.clock.Advance(2 * time.Minute)
	if n := w.passes(6, "eks:ListNodegroups", d); n != 40 {
		t.Errorf("%d calls in 30 s for 40 clusters that are gone", n)
	}
	d.Policy.Prune.Enabled, d.Policy.Prune.Count = true, 50
	w.settle(d)
	w.clock.Advance(2 * time.Minute)
	w.settle(d)
	if left := w.templates(); len(left) != 1 {
		t.Errorf("%d templates are left", len(left))
	}
	if n := w.passes(6, "eks:ListNodegroups", d); n > 0 {
		t.Errorf("%d calls for clusters that nothing names", n)
	}
}

// One that still has a nodegroup of weir's is listed until that has gone, however it
// came to be: also one that was being made as its pool left Git.
func TestAClusterIsListedWhileItHasNodegroups(t *testing.T) {
	for name, kept := range map[string]bool{"pruned": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := target("blue", inCluster("demo", "ng"), groupPool("web", "m5.large", 1))
			w.must(reconciler.Apply, d) // it is being made
			after := target("blue", groupPool("web", "m5.large", 1))
			after.Policy.Prune.Enabled = !kept
			w.must(reconciler.Apply, after)
			w.settle(after)
			w.clock.Advance(2 * time.Minute)
			w.must(reconciler.Apply, after)
			calls := w.passes(6, "eks:ListNodegroups", after)
			if n := w.scope.Remembered()["clusters"]; kept != (calls == 6) || !kept && calls > 0 || kept != (n == 1) {
				t.Errorf("%d calls, %d clusters are remembered", calls, n)
			}
			if left := w.nodegroups(); kept != (len(left) == 1) {
				t.Errorf("the nodegroups: got %v", left)
			}
		})
	}
}

// Targets with tokens, refused pools, updated nodegroups and rollouts come and go, and
// leave nothing behind.
func TestAScopeForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	stay := target("stay", groupPool("stay", "m5.large", 1))
	w.settle(stay)
	w.must(reconciler.Apply, stay)
	before := w.scope.Remembered()
	for round := range 3 {
		var all []reconciler.Desired
		for i := range 4 {
			name := fmt.Sprintf("t%d-%d", round, i)
			d := w.target(joining(t, name, ""), inCluster("demo", "ng-"+name))
			d.Policy.Target = name
			all = append(all, d)
		}
		w.settle(append(all, stay)...)
		for i := range all { // each is rolled and updated
			for j := range all[i].Set.Pools {
				all[i].Set.Pools[j] = keyed(all[i].Set.Pools[j])
			}
		}
		w.settle(append(all, stay)...)
		now := w.scope.Remembered()
		for _, what := range []string{"keepers", "started", "converged", "rollouts", "in service"} {
			if what != "in service" && now[what] < before[what]+4 {
				t.Errorf("round %d: %d %s are remembered of what there is", round, now[what], what)
			}
		}
		// Something is refused of each.
		w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateOrUpdateTags", Code: "AccessDenied", Status: 403, Times: -1})
		for i := range all {
			for j := range all[i].Set.Pools {
				if g := all[i].Set.Pools[j].Group; g != nil {
					changed := *g
					changed.Tags = map[string]string{"Name": "another"}
					all[i].Set.Pools[j].Group = &changed
				}
			}
		}
		w.must(reconciler.Apply, append(all, stay)...)
		if n := w.scope.Remembered()["parked"]; n < 4 {
			t.Errorf("%d pools are parked", n)
		}
		w.srv.Faults().Clear()
		for i := range all { // the pools go, then the targets
			set := *all[i].Set
			set.Pools = nil
			all[i].Set = &set
			all[i].Policy.Prune.Allowed = map[string]bool{"default/" + all[i].Policy.Target: true, "default/ng-" + all[i].Policy.Target: true}
		}
		w.settle(append(all, stay)...)
		w.settle(stay)
	}
	w.clock.Advance(7 * time.Hour)
	w.must(reconciler.Apply, stay)
	after := w.scope.Remembered()
	for what, n := range after {
		if n > before[what] && what != "rollouts" || what == "rollouts" && n > 0 {
			t.Errorf("%s: %d are remembered, before it were %d", what, n, before[what])
		}
	}
}

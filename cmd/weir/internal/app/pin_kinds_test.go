package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/status/waves"
)

const allAtOnce = "apiVersion: weir.dev/v1alpha1\nkind: FleetRollout\nmetadata: {name: nodes}\nspec:\n  waves:\n  - {name: all, percent: 100}\n"

const followingNodegroup = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: ng}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSManagedMachinePool, name: ng}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSManagedMachinePool
metadata: {name: ng, annotations: {weir.dev/ami-policy: follow}}
spec:
  eksNodegroupName: ng
  scaling: {minSize: 1, maxSize: 3}
  awsLaunchTemplate: {instanceType: m5.large, imageLookupFormat: "ours-*", imageLookupOrg: "000000000000"}
`

// stoppedAndPinned brings a fleet to a bad answer of AWS that no commit made, waits for the
// one pull request that pins what ran before, and merges it.
func stoppedAndPinned(t *testing.T, w *world, files map[string]string, bad func(), title, text, diff string) {
	t.Helper()
	all := w.servePushes()
	w.repo.Write(files)
	first := w.repo.Commit("first")
	a, stop := w.start()
	targetConverged(t, a, "prod", first)
	stop()
	bad()
	a, stop = w.start() // without what was cached
	defer stop()
	var p proposed
	eventually(t, "a pull request", func() string {
		list := w.forge.proposals(all)
		if len(list) != 1 {
			_, why := w.forge.last(first, "fleet/revert")
			return fmt.Sprint(list, why)
		}
		p = list[0]
		return ""
	})
	list, err := a.rollouts.List()
	if err != nil || len(list.Rollouts) != 1 || list.Rollouts[0].Phase != waves.Stopped || list.Rollouts[0].Machines.Old == 0 || list.Rollouts[0].Machines.New != 0 {
		t.Errorf("rollouts: %+v, %v", list, err)
	}
	if !strings.HasPrefix(p.Head, "weir/pin-") || p.Title != title || !strings.Contains(p.Body, text) {
		t.Errorf("want %q and %q in\n%+v", title, text, p)
	}
	if got := w.repo.Git("diff", "--unified=0", first, p.Head); !strings.HasSuffix(got, diff) {
		t.Errorf("the branch changes\n%s", got)
	}
	w.forge.change(100, func(p *fakePull) { p.state, p.merged = "closed", w.repo.Tip(p.branch) })
	w.repo.Git("update-ref", "refs/heads/main", p.Head)
	targetConverged(t, a, "prod", w.repo.Tip("main"))
}

// A nodegroup whose template follows an image goes back to the earlier one by the same field
// as a group's: EKS says of the update that its machines do not come up.
func TestABadImageOfANodegroupIsPinned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	good := w.newImage(1)
	files := overlay(map[string]string{"ng": followingNodegroup, "nodes": allAtOnce})
	stoppedAndPinned(t, w, files, func() { w.aws.Faults().Launches.Add(ec2.LaunchFault{ImageID: w.newImage(2)}) },
		"Pin "+good+", which 1 pool ran before", "`spec.awsLaunchTemplate.ami.id` is `"+good+"`, at `overlays/prod/ng.yaml:",
		"+  awsLaunchTemplate: {ami: {id: "+good+`}, instanceType: m5.large, imageLookupFormat: "ours-*", imageLookupOrg: "000000000000"}`)
}

// Pools that share a declaration are pinned there, at once.
func TestABadImageOfASharedTemplateIsPinned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	good := w.newImage(1)
	shared := "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSLaunchConfigTemplate\nmetadata: {name: workers, annotations: {weir.dev/ami-policy: follow}}\n" +
		"spec:\n  template:\n    spec:\n      instanceType: m5.large\n      imageLookupFormat: \"ours-*\"\n      imageLookupOrg: \"000000000000\"\n"
	const own = "  awsLaunchTemplate: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}}"
	of := func(name string) string {
		return strings.Replace(pool(name, "m5.large", 3), own, "  launchConfigRef: {kind: AWSLaunchConfigTemplate, name: workers}", 1)
	}
	files := overlay(map[string]string{"workers": shared, "web": of("web"), "db": of("db"), "nodes": allAtOnce})
	stoppedAndPinned(t, w, files, func() { w.aws.Faults().Launches.Add(ec2.LaunchFault{ImageID: w.newImage(2)}) },
		"Pin "+good+", which 2 pools ran before", "`spec.template.spec.ami.id` is `"+good+"`, at `overlays/prod/workers.yaml:", "+      ami:\n+        id: "+good)
}

// A pool that follows somebody's own template stays at the version that it ran.
func TestABadVersionOfAnOwnTemplateIsPinned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	good := w.newImage(1)
	w.query("ec2", "CreateLaunchTemplate&LaunchTemplateName=theirs&LaunchTemplateData.InstanceType=m5.large&LaunchTemplateData.ImageId="+good)
	const own = "  awsLaunchTemplate: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}}\n"
	text := strings.Replace(pool("web", "m5.large", 3), own, "", 1)
	at := strings.Index(text, "kind: AWSMachinePool\n")
	text = text[:at] + strings.Replace(text[at:], "metadata: {name: web}", "metadata:\n  name: web\n  annotations:\n    node.k8s.aws/launch-template-name: theirs", 1)
	stoppedAndPinned(t, w, overlay(map[string]string{"web": text, "nodes": allAtOnce}), func() {
		bad := w.newImage(2)
		w.aws.Faults().Launches.Add(ec2.LaunchFault{ImageID: bad})
		w.query("ec2", "CreateLaunchTemplateVersion&LaunchTemplateName=theirs&SourceVersion=1&LaunchTemplateData.ImageId="+bad)
	}, "Pin 1, which 1 pool ran before", "launch-template-version", `+    node.k8s.aws/launch-template-version: "1"`)
}

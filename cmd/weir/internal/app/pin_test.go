package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/step"
)

// newImageElsewhere publishes the image of newImage in the third target's region, where it has
// another id.
func (w *world) newImageElsewhere(day int) string {
	w.t.Helper()
	id := fmt.Sprintf("ami-9%016d", day)
	image := fmt.Sprintf(`{"id": %q, "name": "ours-%d", "architecture": "x86_64", "created": "2026-01-%02dT00:00:00Z"}`, id, day, day)
	if err := w.aws.Seed(strings.NewReader(`{"regions": {"eu-west-2": {"images": [` + image + `]}}}`)); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// followingInWaves are pools that follow the newest image of ours, the canary first.
func followingInWaves(t *testing.T) map[string]string {
	t.Helper()
	return following(t, "  waves:\n  - name: canary\n    selector: {targets: [third]}\n")
}

// following are pools under a FleetRollout that follow the newest image of ours.
func following(t *testing.T, spec string) map[string]string {
	t.Helper()
	files := inWaves("m5.large", spec)
	for path, text := range files {
		if !strings.HasSuffix(path, "/pool.yaml") {
			continue
		}
		text = strings.Replace(text, "ami: {eksLookupType: AmazonLinux2023}", `imageLookupFormat: "ours-*", imageLookupOrg: "000000000000"`, 1)
		at := strings.Index(text, "kind: AWSMachinePool\nmetadata: {")
		if at < 0 || !strings.Contains(text, "ours-*") {
			t.Fatal(text)
		}
		files[path] = text[:at] + strings.Replace(text[at:], "metadata: {", "metadata: {annotations: {weir.dev/ami-policy: follow}, ", 1)
	}
	return files
}

// TestABadImageIsProposedToBePinned: nobody committed anything, AWS published an image whose
// machines never come up. Only the canary gets it, one pull request pins the one before, also
// over a restart, and merging it puts all right.
func TestABadImageIsProposedToBePinned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = otherTargets
	all := w.servePushes()
	good, goodElsewhere := w.newImage(1), w.newImageElsewhere(1)
	w.repo.Write(followingInWaves(t))
	first := w.repo.Commit("first")
	targets := []string{"prod", "second", "third"}
	a, stop := w.start()
	for _, target := range targets {
		targetConverged(t, a, target, first)
	}
	stop()

	for _, bad := range []string{w.newImage(2), w.newImageElsewhere(2)} {
		w.aws.Faults().Launches.Add(ec2.LaunchFault{ImageID: bad})
	}
	a, stop = w.start() // without what was cached
	heldBy(t, a, "second", first, step.HeldStopped, "weir reconcile second --retry")
	var p proposed
	opened := func() string {
		list := w.forge.proposals(all)
		if len(list) != 1 {
			return fmt.Sprint(list)
		}
		p = list[0]
		return ""
	}
	eventually(t, "a pull request", opened)
	if p.Base != "main" || !strings.HasPrefix(p.Head, "weir/pin-") || p.Title != "Pin what 3 pools ran before" {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{"default/nodes", "third default/", "`spec.awsLaunchTemplate.ami.id` is `" + good + "`, at `overlays/second/pool.yaml:", "`spec.awsLaunchTemplate.ami.id` is `" + goodElsewhere + "`, at `overlays/third/pool.yaml:", "No commit changed"} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("%q is not in the text:\n%s", want, p.Body)
		}
	}
	if got := w.repo.Git("diff", "--numstat", first, p.Head); got != "1\t1\toverlays/prod/pool.yaml\n1\t1\toverlays/second/pool.yaml\n1\t1\toverlays/third/pool.yaml" {
		t.Errorf("the branch changes %s", got)
	}
	eventually(t, "the status of the commit", func() string {
		if state, text := w.forge.last(first, "fleet/revert"); state != "success" || !strings.Contains(text, "#100 proposes the pin") {
			return state + " " + text
		}
		return ""
	})
	stop()

	a, stop = w.start()
	defer func() { stop() }()
	heldBy(t, a, "second", first, step.HeldStopped, "weir reconcile second --retry")
	if wrong := opened(); wrong != "" {
		t.Error(wrong)
	}
	w.forge.change(100, func(p *fakePull) { p.state, p.merged = "closed", w.repo.Tip(p.branch) })
	w.repo.Git("update-ref", "refs/heads/main", p.Head)
	merged := w.repo.Tip("main")
	for _, target := range targets {
		targetConverged(t, a, target, merged)
	}
	for _, group := range targets[:2] {
		if got := w.versions(group + "-web"); len(got) == 0 || got[len(got)-1] != good {
			t.Errorf("%s: versions with %v", group, got)
		}
	}
	if wrong := opened(); wrong != "" {
		t.Error(wrong)
	}
}

// TestABadImageWhileTheOneBeforeIsRolled: all machines have a good image, and AWS has yet to
// end the refreshes that brought it when a bad one is published. What is pinned is the good
// one, and not what AWS has the groups set to.
func TestABadImageWhileTheOneBeforeIsRolled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = strings.ReplaceAll(otherTargets, "eu-west-2", "eu-west-1")
	all := w.servePushes()
	w.newImage(1)
	files := following(t, "  onFailure: hold\n")
	targets := []string{"prod", "second", "third"}
	for _, target := range targets {
		files["overlays/"+target+"/pool.yaml"] += "---\napiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: " + target + "-web}\nspec:\n  poolRef: {kind: AWSMachinePool, name: " + target + "-web}\n  autoScalingGroup: {refreshPreferences: {bakeTime: 3600}}\n"
	}
	w.repo.Write(files)
	first := w.repo.Commit("first")
	a, stop := w.start()
	for _, target := range targets {
		targetConverged(t, a, target, first)
	}
	stop()

	good := w.newImage(2)
	_, stop = w.start() // without what was cached
	for _, target := range targets {
		eventually(t, target+" runs the good image", func() string {
			if text := w.query("autoscaling", "DescribeInstanceRefreshes&AutoScalingGroupName="+target+"-web"); !strings.Contains(text, "<Status>Baking</Status>") {
				return text
			}
			return ""
		})
	}
	stop()

	w.aws.Faults().Launches.Add(ec2.LaunchFault{ImageID: w.newImage(3)})
	a, stop = w.start()
	defer func() { stop() }()
	heldBy(t, a, "second", first, step.HeldStopped, "weir reconcile second --retry")
	var p proposed
	eventually(t, "a pull request", func() string {
		list := w.forge.proposals(all)
		if len(list) != 1 {
			return fmt.Sprint(list)
		}
		p = list[0]
		return ""
	})
	if p.Title != "Pin "+good+", which 3 pools ran before" {
		t.Errorf("%+v", p)
	}
}

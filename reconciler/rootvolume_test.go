package reconciler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/intent"
)

// volumesPool is a mixed pool of an image whose root volumes are replaced.
func volumesPool(image string, overrides ...string) intent.Pool {
	p := mixedPool(overrides...)
	p.LaunchTemplate.Image = intent.Lookup{Kind: intent.ImageByID, Name: image, InstanceType: "m5.large"}
	p.Group.Refresh.Strategy = "ReplaceRootVolume"
	return p
}

func (w *world) idsOf(group string) (ids []string) {
	for _, i := range w.group(group).Instances {
		ids = append(ids, *i.InstanceId)
	}
	slices.Sort(ids)
	return ids
}

// refreshOf is the newest refresh of a group: strategy and status.
func (w *world) refreshOf(group string) string {
	w.t.Helper()
	out, err := w.groups().DescribeInstanceRefreshes(w.t.Context(), &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(group)})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(out.InstanceRefreshes) == 0 {
		return ""
	}
	return fmt.Sprint(out.InstanceRefreshes[0].Strategy, " ", out.InstanceRefreshes[0].Status)
}

// An image that changes alone reaches machines by new root volumes, and nothing is launched,
// whatever becomes of the call; another change launches machines anew, and the plan says why.
func TestRootVolumes(t *testing.T) {
	t.Parallel()
	large := []string{"m5.large", "m5.xlarge"}
	key := func(p intent.Pool) intent.Pool {
		p.LaunchTemplate.Data.EbsOptimized = new(true)
		return p
	}
	governed := func(d reconciler.Desired) reconciler.Desired { return d }
	for name, tt := range map[string]struct {
		from, to intent.Pool
		change   func(reconciler.Desired) reconciler.Desired
		stays    bool
		why      string
	}{
		"image":                {volumesPool(imageOne, large...), volumesPool(imageTwo, large...), governed, true, "they get new root volumes in place"},
		"image and more":       {volumesPool(imageOne, large...), key(volumesPool(imageTwo, large...)), governed, false, "new machines are launched, as the change is not of the image alone"},
		"image and types":      {volumesPool(imageOne, large...), volumesPool(imageTwo, "m5.large", "c5.large"), governed, false, "new machines are launched, as more of the mixed instances policy changes than its images"},
		"the strategy as well": {mixedPool(large...), volumesPool(imageTwo, large...), governed, false, "new machines are launched, as the group's overrides name no images so far"},
		"own images":           {volumesPool(imageOne, "m5.large "+imageOne, "m5.xlarge"), volumesPool(imageOne, "m5.large "+imageTwo, "m5.xlarge"), governed, true, "they get new root volumes in place"},
	} {
		for _, fault := range []awsemu.FaultKind{0, awsemu.LoseAnswer, awsemu.CutBefore} {
			t.Run(fmt.Sprint(name, "/", fault), func(t *testing.T) {
				w := newMixedWorld(t)
				w.settle(target("blue", tt.from))
				w.silent(target("blue", tt.from))
				before := w.idsOf("web")
				d := target("blue", tt.to)
				r := w.must(reconciler.PlanOnly, d)[0]
				said := ""
				for _, s := range r.Plan.Steps {
					said += s.Reason + "\n"
				}
				if !strings.Contains(said, tt.why) {
					t.Errorf("the plan says %s", said)
				}
				if fault != 0 {
					w.srv.Faults().Add(awsemu.Fault{Kind: fault, Operation: "StartInstanceRefresh"})
				}
				for n := range 60 {
					_, _ = w.pass(reconciler.Apply, d)
					if n%5 == 0 {
						w.restart()
					}
					w.clock.Advance(2 * time.Second)
				}
				w.settle(d)
				w.silent(d)
				want := map[bool]string{true: "ReplaceRootVolume Successful", false: "Rolling Successful"}[tt.stays]
				if got := w.refreshOf("web"); got != want || slices.Equal(before, w.idsOf("web")) != tt.stays || !strings.HasPrefix(w.machinesOf("web"), "map[v") || !strings.Contains(w.machinesOf("web"), imageTwo+":10]") {
					t.Errorf("%s: %v became %v: %s", got, before, w.idsOf("web"), w.machinesOf("web"))
				}
			})
		}
	}
}

// A pool that gets the strategy and nothing else rolls nothing: its overrides name the image
// that its machines have.
func TestTheStrategyAloneRollsNothing(t *testing.T) {
	w := newMixedWorld(t)
	p := volumesPool(imageOne, "m5.large", "m5.xlarge")
	p.Group.Refresh.Strategy = "Rolling"
	w.settle(target("blue", p))
	before := w.idsOf("web")
	d := target("blue", volumesPool(imageOne, "m5.large", "m5.xlarge"))
	w.settle(d)
	w.silent(d)
	if got := w.idsOf("web"); !slices.Equal(before, got) {
		t.Errorf("%v became %v", before, got)
	}
	for _, o := range w.group("web").MixedInstancesPolicy.LaunchTemplate.Overrides {
		if aws.ToString(o.ImageId) != imageOne {
			t.Errorf("an override has the image %q", aws.ToString(o.ImageId))
		}
	}
}

// A FleetRollout's shares are of machines that are launched anew; a pool that is rolled whole
// under one gets new root volumes. Either goes back where the change is stopped.
func TestRootVolumesInWaves(t *testing.T) {
	for share, want := range map[int32]string{30: "Rolling", 100: "ReplaceRootVolume"} {
		w := newMixedWorld(t)
		w.settle(target("blue", volumesPool(imageOne, "m5.large", "m5.xlarge")))
		before := w.machinesOf("web")
		web := target("blue", volumesPool(imageTwo, "m5.large", "m5.xlarge"))
		p := w.governed(permitted(web, permitOf("web", "another", 0)))
		w.passesOver(permitted(web, permitOf("web", p.Hash, share)), 60)
		if got := w.refreshOf("web"); got != want+" Successful" {
			t.Errorf("%d %%: %s", share, got)
		}
		if got := w.governed(permitted(web, permitOf("web", p.Hash, share))); got.New != share/10 {
			t.Errorf("%d %%: %d are new: %s", share, got.New, w.machinesOf("web"))
		}
		stop := permitOf("web", p.Hash, 0)
		stop.Stopped, stop.Back, stop.Wait = true, p.Earlier, "was stopped by fleet/waves"
		w.passesOver(permitted(web, stop), 60)
		if got := w.machinesOf("web"); got != before {
			t.Errorf("it was %s and is %s", before, got)
		}
	}
}

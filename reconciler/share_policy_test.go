package reconciler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/intent"
)

// machinesOf says of the machines in service of a group what they are: version, type and image.
func (w *world) machinesOf(group string) string {
	w.t.Helper()
	counts := map[string]int{}
	for _, i := range w.group(group).Instances {
		if i.LifecycleState != types.LifecycleStateInService {
			continue
		}
		out, err := w.ec2().DescribeInstances(w.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{*i.InstanceId}})
		if err != nil {
			w.t.Fatal(err)
		}
		m := out.Reservations[0].Instances[0]
		counts[fmt.Sprintf("v%s %s %s", aws.ToString(i.LaunchTemplate.Version), m.InstanceType, aws.ToString(m.ImageId))]++
	}
	return fmt.Sprint(counts)
}

const (
	imageOne = "ami-0123456789abcdef1"
	imageTwo = "ami-0123456789abcdef2"
)

// newMixedWorld has two images of a team's own.
func newMixedWorld(t *testing.T) *world {
	w := newWorld(t)
	w.seed(fmt.Sprintf(`{"images": [{"id": %q, "name": "one", "architecture": "x86_64", "created": "2025-11-01T00:00:00Z"}, {"id": %q, "name": "two", "architecture": "x86_64", "created": "2025-11-02T00:00:00Z"}]}`, imageOne, imageTwo))
	return w
}

// mixedPool is a pool of ten machines with a mixed instances policy: each override is a type, or
// a type and its image.
func mixedPool(overrides ...string) intent.Pool {
	p := groupPool("web", "m5.large", 10)
	if len(overrides) == 0 {
		return p
	}
	m := &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: 100, SpotAllocationStrategy: "lowest-price"}
	for _, o := range overrides {
		kind, image, _ := strings.Cut(o, " ")
		m.Overrides = append(m.Overrides, intent.Override{InstanceType: kind, ImageID: image})
	}
	p.Group.MixedInstancesPolicy = m
	return p
}

func larger(p intent.Pool) intent.Pool {
	p.LaunchTemplate.Data.BlockDeviceMappings[0].Ebs.VolumeSize = 50
	return p
}

// policyChanges are changes of a group with a mixed instances policy: of the policy alone, of
// the launch template alone, of both, and of whether there is one.
func policyChanges() map[string][2]intent.Pool {
	return map[string][2]intent.Pool{
		"image of an override":           {mixedPool("m5.large "+imageOne, "m5.xlarge "+imageOne), mixedPool("m5.large "+imageTwo, "m5.xlarge "+imageTwo)},
		"first image of an override":     {mixedPool("m5.large", "m5.xlarge"), mixedPool("m5.large "+imageTwo, "m5.xlarge "+imageTwo)},
		"no image of an override more":   {mixedPool("m5.large "+imageOne, "m5.xlarge "+imageOne), mixedPool("m5.large", "m5.xlarge")},
		"types":                          {mixedPool("m5.large", "m5.xlarge"), mixedPool("c5.large", "m5.xlarge")},
		"template":                       {mixedPool("m5.large", "m5.xlarge"), larger(mixedPool("m5.large", "m5.xlarge"))},
		"template and types":             {mixedPool("m5.large", "m5.xlarge"), larger(mixedPool("c5.large", "m5.xlarge"))},
		"template and image of override": {mixedPool("m5.large "+imageOne, "m5.xlarge "+imageOne), larger(mixedPool("m5.large "+imageTwo, "m5.xlarge "+imageTwo))},
		"first policy":                   {mixedPool(), larger(mixedPool("c5.large", "m5.xlarge"))},
		"no policy more":                 {mixedPool("m5.large", "m5.xlarge"), larger(mixedPool())},
	}
}

// A change of a mixed instances policy reaches machines, share by share, and no more than asked.
func TestSharesOfAPolicy(t *testing.T) {
	t.Parallel()
	for name, change := range policyChanges() {
		t.Run(name, func(t *testing.T) {
			w := newMixedWorld(t)
			w.settle(target("blue", change[0]))
			before := w.machinesOf("web")
			web := target("blue", change[1])
			p := w.governed(permitted(web, permitOf("web", "another", 0)))
			if p.New != 0 || !p.Pending || p.Earlier == nil || p.Earlier.Hash == p.Hash {
				t.Fatalf("it begins with %+v", p)
			}
			w.passesOver(permitted(web, permitOf("web", p.Hash, 30)), 40)
			if p = w.governed(permitted(web, permitOf("web", p.Hash, 30))); p.New != 3 || !p.Pending {
				t.Errorf("at 30 %%: %d are new, pending %v: %s", p.New, p.Pending, w.machinesOf("web"))
			}
			w.passesOver(permitted(web, permitOf("web", p.Hash, 100)), 60)
			if p = w.governed(permitted(web, permitOf("web", p.Hash, 100))); p.New != 10 || p.Pending || w.machinesOf("web") == before {
				t.Errorf("at 100 %%: %d are new, pending %v: %s", p.New, p.Pending, w.machinesOf("web"))
			}
			w.silent(permitted(web, permitOf("web", p.Hash, 100)))
		})
	}
}

// A stopped change of a mixed instances policy goes back to the policy that there was before,
// whether AWS has set the group to the bad one by then or not, and stays there.
func TestAStoppedPolicyGoesBack(t *testing.T) {
	t.Parallel()
	changes := policyChanges()
	for i, name := range slices.Sorted(maps.Keys(changes)) {
		change := changes[name]
		for j, after := range []string{"in the first share", "after the first share", "in the second share", "rolled whole"} {
			for k, fault := range []awsemu.FaultKind{0, awsemu.LoseAnswer} {
				if fault != 0 && after != "after the first share" || !sampled(4, i, j, k) {
					continue
				}
				t.Run(fmt.Sprint(name, "/", after, "/", fault), func(t *testing.T) {
					w := newMixedWorld(t)
					w.settle(target("blue", change[0]))
					before := w.machinesOf("web")
					web := target("blue", change[1])
					p := w.governed(permitted(web, permitOf("web", "another", 0)))
					roll := func(share int32, passes int) { w.passesOver(permitted(web, permitOf("web", p.Hash, share)), passes) }
					switch after {
					case "in the first share":
						roll(50, 4)
					case "after the first share":
						roll(30, 60)
					case "in the second share":
						roll(30, 60)
						roll(80, 4)
					case "rolled whole":
						roll(100, 60)
					}
					stop := permitOf("web", p.Hash, 0)
					stop.Stopped, stop.Back, stop.Wait = true, p.Earlier, "was stopped by fleet/waves"
					if fault != 0 {
						for _, operation := range []string{"RollbackInstanceRefresh", "CancelInstanceRefresh", "StartInstanceRefresh"} {
							w.srv.Faults().Add(awsemu.Fault{Kind: fault, Operation: operation})
						}
					}
					for n := range 70 {
						_, _ = w.pass(reconciler.Apply, permitted(web, stop))
						if n%7 == 0 {
							w.restart()
						}
						w.clock.Advance(2 * time.Second)
					}
					if got := w.machinesOf("web"); got != before {
						t.Errorf("it was %s and is %s", before, got)
					}
					g := w.group("web")
					if want := change[0].Group.MixedInstancesPolicy; (g.MixedInstancesPolicy != nil) != (want != nil) {
						t.Errorf("the group has a policy: %v", g.MixedInstancesPolicy != nil)
					} else if want != nil && !slices.EqualFunc(want.Overrides, g.MixedInstancesPolicy.LaunchTemplate.Overrides, func(a intent.Override, b types.LaunchTemplateOverrides) bool {
						return a.InstanceType == aws.ToString(b.InstanceType) && a.ImageID == aws.ToString(b.ImageId)
					}) {
						t.Errorf("the group's overrides: %v", g.MixedInstancesPolicy.LaunchTemplate.Overrides)
					}
					w.srv.ResetCalls()
					r := w.passesOver(permitted(web, stop), 10)
					if len(w.wrote()) > 0 || !strings.HasPrefix(heldFor(r), "stopped: ") {
						t.Errorf("it then wrote %v, held for %q", w.wrote(), heldFor(r))
					}
					// The commit is reverted: nothing is left to roll.
					w.settle(target("blue", change[0]))
					if got := w.machinesOf("web"); got != before {
						t.Errorf("once the commit is reverted: %s", got)
					}
				})
			}
		}
	}
}

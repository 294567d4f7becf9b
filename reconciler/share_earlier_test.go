package reconciler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/intent"
)

// setTo is the version of its launch template that a group is set to.
func (w *world) setTo(group string) string {
	g := w.group(group)
	if p := g.MixedInstancesPolicy; p != nil {
		return aws.ToString(p.LaunchTemplate.LaunchTemplateSpecification.Version)
	}
	return aws.ToString(g.LaunchTemplate.Version)
}

// A change that comes while the refresh of the one before has yet to end goes back to what
// machines run by then, though AWS never set the group to it.
func TestAStoppedChangeGoesBackToWhatMachinesRun(t *testing.T) {
	t.Parallel()
	baking := func(p intent.Pool) intent.Pool {
		p.Group.Refresh.BakeTime = new(int32(3600))
		return p
	}
	simple := func(kind string) intent.Pool { return baking(groupPool("web", kind, 10)) }
	changes := map[string][3]intent.Pool{
		"templates":              {simple("m5.large"), simple("m5.xlarge"), simple("m5.2xlarge")},
		"templates and types":    {baking(mixedPool("m5.large", "m5.xlarge")), baking(larger(mixedPool("c5.large", "m5.xlarge"))), baking(mixedPool("r5.large", "m5.xlarge"))},
		"a first policy":         {simple("m5.large"), baking(larger(mixedPool("c5.large", "m5.xlarge"))), simple("m5.2xlarge")},
		"no policy more":         {baking(mixedPool("m5.large", "m5.xlarge")), simple("m5.2xlarge"), baking(larger(mixedPool("c5.large", "m5.xlarge")))},
		"the template it was at": {simple("m5.large"), simple("m5.xlarge"), simple("m5.large")},
	}
	for i, name := range slices.Sorted(maps.Keys(changes)) {
		change := changes[name]
		for j, after := range []string{"before the first share", "in the first share", "after the first share", "rolled whole"} {
			for k, fault := range []awsemu.FaultKind{0, awsemu.LoseAnswer} {
				if fault != 0 && after != "in the first share" || !sampled(4, i, j, k) {
					continue
				}
				t.Run(fmt.Sprint(name, "/", after, "/", fault), func(t *testing.T) {
					w := newMixedWorld(t)
					w.settle(target("blue", change[0]))
					good := target("blue", change[1])
					p := w.governed(permitted(good, permitOf("web", "another", 0)))
					w.passesOver(permitted(good, permitOf("web", p.Hash, 100)), 60)
					before := w.machinesOf("web")
					if got := w.setTo("web"); got != "1" {
						t.Fatalf("AWS has set the group to version %s while its refresh bakes", got)
					}
					bad := target("blue", change[2])
					p = w.governed(permitted(bad, permitOf("web", "another", 0)))
					if p.Earlier == nil || p.Earlier.Number != 2 || p.New != 0 {
						t.Fatalf("it begins with %+v", p)
					}
					roll := func(share int32, passes int) {
						w.passesOver(permitted(bad, permitOf("web", "another", 0)), 5) // until its turn comes
						w.passesOver(permitted(bad, permitOf("web", p.Hash, share)), passes)
					}
					switch after {
					case "in the first share":
						roll(50, 4)
					case "after the first share":
						roll(30, 60)
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
						_, _ = w.pass(reconciler.Apply, permitted(bad, stop))
						if n%7 == 0 {
							w.restart()
						}
						w.clock.Advance(2 * time.Second)
					}
					if got := w.machinesOf("web"); got != before {
						t.Errorf("it was %s and is %s", before, got)
					}
					w.passesOver(target("blue", change[1]), 30)
					w.clock.Advance(3 * time.Hour) // what bakes is done
					w.settle(target("blue", change[1]))
					if got := w.machinesOf("web"); got != before {
						t.Errorf("once the commit is reverted: %s", got)
					}
				})
			}
		}
	}
}

package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// withText is a pool with user data.
func withText(p intent.Pool, text string) intent.Pool {
	p.LaunchTemplate.UserData = intent.UserData{Text: text, Format: "cloud-config"}
	return p
}

// tagged is a pool whose machines have a tag.
func tagged(p intent.Pool, value string) intent.Pool {
	p.LaunchTemplate.Data.TagSpecifications = []intent.TemplateTagSpecification{{ResourceType: "instance", Tags: []intent.Tag{{Key: "release", Value: value}}}}
	return p
}

const bootText = "#cloud-config\nruncmd:\n- echo one\n- echo two\n"

// TestAStopHoldsWhatWasStopped: a later commit starts a stopped change again only if it changes what the change set.
func TestAStopHoldsWhatWasStopped(t *testing.T) {
	kind := func(name string) intent.Pool { return tagged(withText(groupPool("web", name, 4), bootText), "1") }
	text := func(text string) intent.Pool { return tagged(withText(groupPool("web", "m5.large", 4), text), "1") }
	nodes := func(change func(*intent.Pool)) intent.Pool {
		p := nodegroupPool("web", 3)
		p.AllowReplace = true
		change(&p)
		return p
	}
	volumes := func(kind string, devices ...string) intent.Pool {
		p := text(bootText)
		for _, d := range devices {
			p.LaunchTemplate.Data.BlockDeviceMappings = append(p.LaunchTemplate.Data.BlockDeviceMappings, intent.BlockDeviceMapping{DeviceName: d, Ebs: intent.Ebs{VolumeSize: 10, VolumeType: kind}})
		}
		return p
	}
	types := func(overrides ...intent.Override) intent.Pool {
		p := text(bootText)
		p.Group.MixedInstancesPolicy = &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", OnDemandPercentageAboveBaseCapacity: 100, SpotAllocationStrategy: "lowest-price", Overrides: overrides}
		return p
	}
	large, xlarge, other := intent.Override{InstanceType: "m5.large"}, intent.Override{InstanceType: "m5.xlarge"}, intent.Override{InstanceType: "m5.2xlarge"}
	heavy := intent.Override{InstanceType: "m5.xlarge", WeightedCapacity: "2"}
	light := intent.Override{InstanceType: "m5.large", WeightedCapacity: "1"}
	for name, c := range map[string]struct {
		before, stopped intent.Pool
		fields          string // that the stopped change set
		holds, lifts    map[string]intent.Pool
	}{
		"an instance type": {kind("m5.large"), kind("m5.xlarge"), "instanceType", map[string]intent.Pool{
			"a tag":                     tagged(kind("m5.xlarge"), "2"),
			"a blank in a boot command": withText(kind("m5.xlarge"), strings.Replace(bootText, "echo one", "echo  one", 1)),
			"another boot command":      withText(kind("m5.xlarge"), bootText+"- echo three\n"),
			"the type as an override":   types(xlarge),
			"the type beside the first": types(large, xlarge),
		}, map[string]intent.Pool{"another type": kind("m5.2xlarge"), "the type before": tagged(kind("m5.large"), "2")}},
		"an override": {types(light), types(light, heavy), "mixedInstancesPolicy.overrides", map[string]intent.Pool{
			"another weight": types(light, intent.Override{InstanceType: "m5.xlarge", WeightedCapacity: "3"}),
			"another order":  types(heavy, light),
			"a type beside":  types(light, heavy, intent.Override{InstanceType: "m5.2xlarge", WeightedCapacity: "4"}),
			"the type alone": kind("m5.xlarge"),
		}, map[string]intent.Pool{"another type": types(large, other), "without it": tagged(types(light), "2")}},
		"a type and a tag": {kind("m5.large"), tagged(kind("m5.xlarge"), "2"), "instanceType",
			map[string]intent.Pool{"the tag": tagged(kind("m5.xlarge"), "3"), "the tag before": kind("m5.xlarge")}, map[string]intent.Pool{"the type before": tagged(kind("m5.large"), "2")}},
		"a boot command": {text(bootText), text(bootText + "- reboot now\n"), "userData.runcmd", map[string]intent.Pool{
			"blanks in it":          text(bootText + "- reboot  now \n"),
			"one before it":         text("#cloud-config\nruncmd:\n- echo zero\n- echo one\n- echo two\n- reboot now\n"),
			"one after it":          text(bootText + "- reboot now\n- echo three\n"),
			"a comment":             text(strings.Replace(bootText, "runcmd", "# nothing\nruncmd", 1) + "- reboot now\n"),
			"another instance type": withText(kind("m5.xlarge"), bootText+"- reboot now\n"),
		}, map[string]intent.Pool{"it is another one": text(bootText + "- reboot later\n"), "it goes": tagged(text(bootText), "2")}},
		"a volume": {text(bootText), volumes("gp2", "/dev/xvdb"), "nonRootVolumes", map[string]intent.Pool{"one before it": volumes("gp2", "/dev/xvdc", "/dev/xvdb")},
			map[string]intent.Pool{"its type": volumes("gp3", "/dev/xvdb")}},
		"a tag alone": {kind("m5.large"), tagged(kind("m5.large"), "2"), "additionalTags.release", map[string]intent.Pool{"something else": tagged(kind("m5.xlarge"), "2")},
			map[string]intent.Pool{"the tag": tagged(kind("m5.large"), "3")}},
		"a nodegroup that is replaced": {nodes(func(*intent.Pool) {}), nodes(func(p *intent.Pool) { p.Nodegroup.CapacityType = "SPOT" }), "capacityType",
			map[string]intent.Pool{"another volume": nodes(func(p *intent.Pool) {
				p.Nodegroup.CapacityType = "SPOT"
				p.LaunchTemplate.Data.BlockDeviceMappings = []intent.BlockDeviceMapping{{DeviceName: "/dev/xvdb", Ebs: intent.Ebs{VolumeSize: 10, VolumeType: "gp3"}}}
			})}, map[string]intent.Pool{"the capacity before": nodes(func(p *intent.Pool) { p.LaunchTemplate.Data.InstanceType = "m5.xlarge" })}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(target("blue", c.before))
			p := w.governed(permitted(target("blue", c.stopped), permitOf("web", "another", 0)))
			bad := rollout.Bad{ID: p.ID, Hash: p.Hash, Rollout: "fleet/waves", Why: "gate errors", Fields: p.Change, Earlier: p.Earlier}
			if !p.Pending || !strings.Contains(bad.Names(), c.fields) {
				t.Fatalf("the change set %q of %+v", bad.Names(), p)
			}
			if slices.ContainsFunc(p.Change, func(f rollout.Field) bool { return strings.Contains(f.Key+f.Mark, "reboot") }) {
				t.Errorf("a value is told: %+v", p.Change)
			}
			with := func(later intent.Pool) (rollout.Pool, string) {
				permit := permitOf("web", "of-the-later-commit", 100)
				permit.Stops = []rollout.Bad{bad}
				d := permitted(target("blue", later), permit)
				q := w.governed(d)
				permit.Hash = q.Hash // an older conductor might allow it
				w.srv.ResetCalls()
				r := w.passesOver(permitted(target("blue", later), permit), 2)
				n := w.srv.CallCounts()
				if starts := n["autoscaling:StartInstanceRefresh"] + n["eks:CreateNodegroup"] + n["eks:UpdateNodegroupVersion"]; starts > 0 && q.Still != "" {
					t.Errorf("machines are replaced: %v", n)
				}
				held := heldFor(r)
				for _, s := range r.Plan.Steps {
					if held == "" && s.Held != "" {
						held = string(s.Held) + ": " + s.HeldReason
					}
				}
				return q, held
			}
			for what, later := range c.holds {
				q, held := with(later)
				if q.Still != bad.Hash || q.Hash == bad.Hash || !strings.HasPrefix(held, "stopped: was stopped by fleet/waves") || !strings.Contains(held, "; still in it: "+bad.Names()) {
					t.Errorf("%s: held %q, %+v", what, held, q)
				}
			}
			for what, later := range c.lifts {
				if q, held := with(later); q.Still != "" || strings.HasPrefix(held, "stopped: ") {
					t.Errorf("%s: held %q, still %q", what, held, q.Still)
				}
				w.settle(target("blue", c.before))
			}
		})
	}
}

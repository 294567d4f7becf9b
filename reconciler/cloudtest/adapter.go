package cloudtest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// The cases here use weir's own adapter instead of the SDK.
func adapterContracts() []contract {
	return []contract{
		{"an owner's group and template are observed, others are not", nil, observeOwner},
		{"a template's data comes back as it was sent", []Capability{ReadBackOfTemplate}, readBack},
		{"doing an action twice is doing it once", []Capability{TemplateNames, GroupChecks}, twice},
		{"another owner's things are conflicts", []Capability{GroupChecks}, conflicts},
		{"a pool's whole life", []Capability{InstanceRefresh, GroupDeletion, TemplateNames}, poolLife},
		{"a resting fleet costs one page of groups and one of templates", []Capability{TemplatePages}, restingFleet},
	}
}

func (e *env) owned(owner string) map[string]string {
	return map[string]string{observed.TagOwner: owner, observed.TagTarget: "contract", observed.TagSource: "0123456789ab", observed.TagPool: "default/" + e.mark}
}

func (e *env) run(c *awscloud.Cloud, a step.Action) step.Result {
	e.Helper()
	res, err := c.Execute(e.ctx, a)
	if err != nil {
		e.Fatalf("%T: %v", a, err)
	}
	return res
}

// pool creates an owner's template and group with the same name.
func (e *env) pool(c *awscloud.Cloud, owner, suffix string, size int32) observed.TemplateRef {
	e.Helper()
	name := e.name(suffix)
	ref := e.run(c, e.templateAction(owner, suffix)).Template
	e.Cleanup(func() {
		// The case has deleted some itself. Deleting them again is not an error.
		_, _ = c.Execute(e.background(), step.DeleteGroup{Name: name, Force: true})
		_, _ = c.Execute(e.background(), step.DeleteLaunchTemplate{Template: observed.TemplateRef{ID: ref.ID, Name: ref.Name}})
	})
	e.run(c, e.groupAction(owner, suffix, ref, size))
	return ref
}

func (e *env) templateAction(owner, suffix string) step.CreateLaunchTemplate {
	return step.CreateLaunchTemplate{
		Name: e.name(suffix), Description: "contract", Data: intent.TemplateData{ImageID: e.image(), InstanceType: "m5.large"}, Tags: e.owned(owner),
	}
}

func (e *env) groupAction(owner, suffix string, ref observed.TemplateRef, size int32) step.CreateGroup {
	g := observed.Group{Name: e.name(suffix), MaxSize: 4, DesiredCapacity: size, SubnetIDs: e.subnets(), GroupSettings: intent.GroupSettings{DefaultCooldown: new(int32(300)), DefaultInstanceWarmup: new(int32(10))}, Template: ref, Tags: map[string]observed.GroupTag{}}
	for k, v := range e.owned(owner) {
		g.Tags[k] = observed.GroupTag{Value: v}
	}
	return step.CreateGroup{Group: g}
}

func (e *env) observe(c *awscloud.Cloud, owner string) observed.State {
	e.Helper()
	s, err := c.Observe(e.ctx, observed.Query{Owner: owner, Groups: true, Templates: true})
	e.must(err)
	return s
}

func (e *env) fill(c *awscloud.Cloud, s observed.State, n observed.Needs) observed.State {
	e.Helper()
	s, err := c.Fill(e.ctx, s, n)
	e.must(err)
	return s
}

func observeOwner(e *env) {
	c := e.cloud()
	ref := e.pool(c, e.mark, "a", 1)
	e.pool(c, "other-"+e.mark, "b", 0)
	e.inService(e.name("a"), 1)
	s := e.observe(c, e.mark)
	if len(s.Groups) != 1 || len(s.Templates) != 1 {
		e.Fatalf("observed %d groups and %d templates", len(s.Groups), len(s.Templates))
	}
	g := s.Groups[e.name("a")]
	want := e.groupAction(e.mark, "a", ref, 1).Group
	if r := g.CapacityRebalance; r != nil && *r {
		e.Error("rebalances capacity, which nobody set") // not set: an answer may contain it or not
	}
	opts := []cmp.Option{cmpopts.IgnoreFields(observed.Group{}, "ARN", "CreatedAt", "Instances", "DefaultInstanceWarmup", "CapacityRebalance", "Options")}
	if d := cmp.Diff(want, g, opts...); d != "" {
		e.Errorf("group (-want +got):\n%s", d)
	}
	if len(g.Instances) != 1 || g.Instances[0].ID == "" || g.Instances[0].LifecycleState != "InService" {
		e.Errorf("instances %+v", g.Instances)
	}
	t := s.Templates[e.name("a")]
	e.equal("template", observed.Template{ID: ref.ID, Name: ref.Name, DefaultVersion: 1, LatestVersion: 1, Tags: e.owned(e.mark)}, t)
	s = e.fill(c, s, observed.Needs{
		TemplateNames: []string{e.name("b"), e.name("none")}, GroupNames: []string{e.name("b"), e.name("none")},
	})
	if s.Groups[e.name("b")].Name == "" || s.Templates[e.name("b")].ID == "" || !s.Absent.Groups[e.name("none")] || !s.Absent.Templates[e.name("none")] {
		e.Errorf("by name: %d groups, %d templates, absent %+v", len(s.Groups), len(s.Templates), s.Absent)
	}
}

func readBack(e *env) {
	yes, no := true, false
	data := intent.TemplateData{
		ImageID: e.image(), InstanceType: "m5.large", KeyName: "key", IamInstanceProfile: &intent.InstanceProfile{Name: "nodes.cluster-api-provider-aws.sigs.k8s.io"},
		BlockDeviceMappings: []intent.BlockDeviceMapping{{DeviceName: "/dev/xvda", Ebs: intent.Ebs{VolumeSize: 30, VolumeType: "gp3", Iops: 3000, Throughput: 125, Encrypted: &yes, DeleteOnTermination: &yes}}},
		UserData:            "aGVsbG8=",
		MetadataOptions:     &intent.MetadataOptions{HTTPEndpoint: "enabled", HTTPPutResponseHopLimit: 2, HTTPTokens: "required", InstanceMetadataTags: "enabled"},
		EnclaveOptions:      &intent.EnclaveOptions{Enabled: &no},
		PrivateDNSNameOptions: &intent.PrivateDNSNameOptions{
			HostnameType: "ip-name", EnableResourceNameDNSARecord: &yes, EnableResourceNameDNSAAAARecord: &no,
		},
		InstanceMarketOptions:            &intent.MarketOptions{MarketType: "spot", MaxPrice: "0.1"},
		CapacityReservationSpecification: &intent.CapacityReservation{Preference: "none"},
		TagSpecifications: []intent.TemplateTagSpecification{
			{ResourceType: "instance", Tags: []intent.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}}, {ResourceType: "volume", Tags: []intent.Tag{{Key: "a", Value: "1"}}},
		},
	}
	c := e.cloud()
	a := e.templateAction(e.mark, "a")
	a.Data = data
	ref := e.run(c, a).Template
	e.Cleanup(func() { _, _ = c.Execute(e.background(), step.DeleteLaunchTemplate{Template: ref}) })
	s := e.fill(c, e.observe(c, e.mark), observed.Needs{Versions: []observed.TemplateRef{{Name: ref.Name, Version: "1"}}})
	e.equal("version", observed.TemplateVersion{Number: 1, Description: "contract", Data: data, Body: content.BodyHash(data)}, s.Templates[ref.Name].Versions[1])
}

func twice(e *env) {
	c := e.cloud()
	ref := e.pool(c, e.mark, "a", 0)
	e.equal("the template made again", ref, e.run(c, e.templateAction(e.mark, "a")).Template)
	e.run(c, e.groupAction(e.mark, "a", ref, 0))
	if s := e.observe(c, e.mark); len(s.Groups) != 1 || len(s.Templates) != 1 || s.Templates[ref.Name].LatestVersion != 1 {
		e.Errorf("observed %+v", s)
	}
	for range 2 {
		e.run(c, step.DeleteGroup{Name: e.name("a"), Force: true})
	}
	e.eventually("the group to be gone", func() bool { return e.describe(e.name("a")) == nil })
	e.run(c, step.DeleteGroup{Name: e.name("a"), Force: true})
	for range 2 {
		e.run(c, step.DeleteLaunchTemplate{Template: observed.TemplateRef{ID: ref.ID, Name: ref.Name}})
	}
}

func conflicts(e *env) {
	c := e.cloud()
	ref := e.pool(c, e.mark, "a", 0)
	for _, a := range []step.Action{e.templateAction("thief", "a"), e.groupAction("thief", "a", ref, 0)} {
		_, err := c.Execute(e.ctx, a)
		var refused *observed.Error
		if !errors.As(err, &refused) || refused.Kind != observed.AlreadyThere {
			e.Errorf("%T of another owner: %v", a, err)
		}
	}
}

func poolLife(e *env) {
	c := e.cloud()
	ref := e.pool(c, e.mark, "a", 2)
	name := e.name("a")
	e.inService(name, 2)
	next := e.run(c, step.CreateLaunchTemplateVersion{
		Template: observed.TemplateRef{ID: ref.ID, Name: ref.Name}, Description: "two", Data: intent.TemplateData{ImageID: e.image(), InstanceType: "m5.xlarge"}, Token: e.mark,
	}).Template
	id := e.run(c, step.StartRefresh{Group: name, Template: next, Preferences: intent.Refresh{Strategy: "Rolling"}}).RefreshID
	var r observed.Refresh
	e.eventually("the refresh to end", func() bool {
		r = e.fill(c, e.observe(c, e.mark), observed.Needs{Refreshes: []string{name}}).Refreshes[name]
		return !r.Active()
	})
	if r.ID != id || r.Status != "Successful" || r.Template != next {
		e.Errorf("the refresh %s ended as %+v", id, r)
	}
	e.run(c, step.SetDefaultVersion{Template: next})
	s := e.observe(c, e.mark)
	g := s.Groups[name]
	if g.Template != next || s.Templates[name].DefaultVersion != 2 || slices.ContainsFunc(g.Instances, func(i observed.Instance) bool { return i.Template != next }) {
		e.Errorf("group %+v of the template %+v", g, s.Templates[name])
	}
	e.run(c, step.DeleteGroup{Name: name, Force: true})
	e.eventually("the group to be gone", func() bool { return len(e.observe(c, e.mark).Groups) == 0 })
	e.run(c, step.DeleteLaunchTemplate{Template: observed.TemplateRef{ID: ref.ID, Name: ref.Name}})
	if s := e.observe(c, e.mark); len(s.Groups)+len(s.Templates) != 0 {
		e.Errorf("left %+v", s)
	}
}

func restingFleet(e *env) {
	c := e.cloud()
	for _, s := range []string{"a", "b", "c"} {
		e.pool(c, e.mark, s, 0)
	}
	s := e.observe(c, e.mark)
	var n observed.Needs
	for name := range s.Templates {
		n.Versions = append(n.Versions, observed.TemplateRef{Name: name, Version: "1"})
	}
	e.fill(c, s, n)
	e.pass(time.Second)
	before := c.CallCounts()
	s = e.observe(c, e.mark)
	got := map[string]int{}
	for op, count := range c.CallCounts() {
		if count > before[op] {
			got[op] = count - before[op]
		}
	}
	e.equal("calls", map[string]int{"autoscaling:DescribeAutoScalingGroups": 1, "ec2:DescribeLaunchTemplates": 1}, got)
	if len(s.Groups) != 3 || len(s.Templates) != 3 || len(s.Templates[e.name("a")].Versions) != 1 {
		e.Errorf("observed %d groups and %d templates", len(s.Groups), len(s.Templates))
	}
}

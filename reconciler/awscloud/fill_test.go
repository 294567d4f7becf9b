package awscloud_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// templates makes n templates of two versions each; owner says whose they are.
func (e *env) templates(prefix, owner string, n int) {
	e.t.Helper()
	data := e.data()
	for i := range n {
		name := fmt.Sprintf("%s-%03d", prefix, i)
		t := tags(name)
		t[observed.TagOwner] = owner
		ref := e.do(step.CreateLaunchTemplate{Name: name, Description: "one", Data: data, Tags: t}).Template
		e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: ref.ID, Name: name}, Description: "two", Data: data})
	}
}

// versions asks for version n of each template.
func versions(s observed.State, numbers ...int64) observed.Needs {
	var out observed.Needs
	for name := range s.Templates {
		for _, n := range numbers {
			out.Versions = append(out.Versions, observed.TemplateRef{Name: name, Version: strconv.FormatInt(n, 10)})
		}
	}
	return out
}

// TestColdReadOfVersions checks that a process that knows no version reads them
// in the cheaper way.
func TestColdReadOfVersions(t *testing.T) {
	e := start(t)
	e.templates("ours", "prod", 5)
	tests := []struct {
		name    string
		foreign int // templates of others in the account
		numbers []int64
		atMost  int // calls; it depends on AWS's order where in the list ours are
	}{
		{"newest: one page for all", 0, []int64{2}, 1},
		{"newest and default: one page for all", 0, []int64{1, 2}, 1},
		{"templates of others make it two pages", 120, []int64{1, 2}, 2},
		{"with very many others it is given up", 500, []int64{1, 2}, 4 + 5},
	}
	made := 0
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for ; made < tt.foreign; made += 20 {
				e.templates("theirs-"+strconv.Itoa(made), "someone", 20)
			}
			e.cloud = e.open() // a process that knows nothing
			s := e.observe(query())
			calls := e.counted(func() { s = e.fill(s, versions(s, tt.numbers...)) })
			if got := calls["ec2:DescribeLaunchTemplateVersions"]; got < 1 || got > tt.atMost {
				t.Errorf("%d calls, want %d at most", got, tt.atMost)
			}
			for name, tpl := range s.Templates {
				for _, n := range tt.numbers {
					if tpl.Versions[n].Number != n {
						t.Fatalf("version %d of %s was not read: %+v", n, name, tpl)
					}
				}
			}
			if calls := e.counted(func() { s = e.fill(e.observe(query()), versions(s, tt.numbers...)) }); calls["ec2:DescribeLaunchTemplateVersions"] != 0 {
				t.Errorf("versions were read again: %v", calls)
			}
		})
	}
}

func TestFewVersionsAreReadByTemplate(t *testing.T) {
	e := start(t)
	e.templates("ours", "prod", 3)
	s := e.observe(query())
	calls := e.counted(func() {
		s = e.fill(s, observed.Needs{Versions: []observed.TemplateRef{{Name: "ours-000", Version: "2"}, {Name: "ours-000", Version: "1"}, {Name: "ours-000", Version: "9"}}})
	})
	// The missing one makes EC2 refuse the three together.
	if got := calls["ec2:DescribeLaunchTemplateVersions"]; got != 4 {
		t.Errorf("%d calls, want 4", got)
	}
	tpl := s.Templates["ours-000"]
	if len(tpl.Versions) != 2 || !tpl.Missing[9] || len(tpl.Missing) != 1 {
		t.Errorf("template %+v", tpl)
	}
	_, err := e.cloud.Fill(t.Context(), s, observed.Needs{Versions: []observed.TemplateRef{{Name: "none", Version: "1"}}})
	if kind(t, err) != observed.Invalid {
		t.Errorf("a version of a template that was not read: %v", err)
	}
	_, err = e.cloud.Fill(t.Context(), s, observed.Needs{Versions: []observed.TemplateRef{{Name: "ours-000", Version: "newest"}}})
	if kind(t, err) != observed.Invalid {
		t.Errorf("a version that is not a number: %v", err)
	}
}

func TestATemplateThatGoesAwayMeanwhile(t *testing.T) {
	e := start(t)
	e.templates("ours", "prod", 2)
	s := e.observe(query())
	e.do(step.DeleteLaunchTemplate{Template: observed.TemplateRef{Name: "ours-000"}})
	s = e.fill(s, observed.Needs{Versions: []observed.TemplateRef{{Name: "ours-000", Version: "2"}}})
	if _, there := s.Templates["ours-000"]; there || !s.Absent.Templates["ours-000"] || len(s.Templates) != 1 {
		t.Errorf("state %+v", s)
	}
}

func TestNamesAreReadInBatches(t *testing.T) {
	e := start(t)
	e.templates("ours", "someone", 1)
	ref := e.do(createTemplate(e, "web")).Template
	a := createGroup(e, "group", ref, 0)
	a.Group.Tags = map[string]observed.GroupTag{"k": {Value: "v"}}
	e.do(a)
	needs := observed.Needs{TemplateNames: []string{"ours-000"}, GroupNames: []string{"group"}, Nodegroups: []observed.NodegroupName{{Cluster: eksCluster, Name: "none"}, {Cluster: "nowhere", Name: "none"}}}
	for i := range 200 {
		needs.TemplateNames = append(needs.TemplateNames, fmt.Sprintf("absent-%d", i))
	}
	for i := range 100 {
		needs.GroupNames = append(needs.GroupNames, fmt.Sprintf("absent-%d", i))
	}
	before := e.observe(query())
	var s observed.State
	calls := e.counted(func() { s = e.fill(before, needs) })
	want := map[string]int{"ec2:DescribeLaunchTemplates": 2, "autoscaling:DescribeAutoScalingGroups": 2, "eks:DescribeNodegroup": 2}
	if d := cmp.Diff(want, calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if s.Templates["ours-000"].ID == "" || s.Groups["group"].ARN == "" || len(s.Absent.Templates) != 200 || len(s.Absent.Groups) != 100 || len(s.Absent.Nodegroups) != 2 {
		t.Errorf("templates %d, groups %d, absent %d %d %d", len(s.Templates), len(s.Groups), len(s.Absent.Templates), len(s.Absent.Groups), len(s.Absent.Nodegroups))
	}
	if len(before.Templates) != 1 || len(before.Groups) != 0 || before.Absent.Templates != nil {
		t.Error("Fill changed the state that it was given")
	}
}

// TestFillDoesNotChangeSharedVersions reads versions twice from one state.
func TestFillDoesNotChangeSharedVersions(t *testing.T) {
	e := start(t)
	e.templates("ours", "prod", 1)
	first := e.fill(e.observe(query()), observed.Needs{Versions: []observed.TemplateRef{{Name: "ours-000", Version: "1"}}})
	second := e.fill(first, observed.Needs{Versions: []observed.TemplateRef{{Name: "ours-000", Version: "2"}, {Name: "ours-000", Version: "5"}}})
	if a, b := first.Templates["ours-000"], second.Templates["ours-000"]; len(a.Versions) != 1 || len(a.Missing) != 0 || len(b.Versions) != 2 || len(b.Missing) != 1 {
		t.Errorf("the first state has %d versions, the second %d", len(a.Versions), len(b.Versions))
	}
}

// TestLookups asks the resolver's questions over the wire.
func TestLookups(t *testing.T) {
	e := start(t)
	r := resolve.New(e.cloud, e.clock.Now)
	demo := intent.Cluster{TagName: eksCluster, EKSName: eksCluster}
	requests := []resolve.Request{
		{Lookup: intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "v1.33.1", InstanceType: "m6g.large"}},
		{Lookup: intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023GPU", Version: "1.33", InstanceType: "g5.xlarge"}},
		{Lookup: intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux", Version: "1.31", InstanceType: "m5.large"}},
		{Lookup: intent.Lookup{Kind: intent.ImageByName, Owner: "819546954734", Name: "capa-ami-ubuntu-24.04-?1.33.*", InstanceType: "m5.large"}},
		{Lookup: intent.Lookup{Kind: intent.ImageByID, Name: e.image()}},
		{Lookup: intent.Lookup{Kind: intent.Subnets}, Cluster: demo},
		{Lookup: intent.Lookup{Kind: intent.Subnets, Zones: region + "b"}, Cluster: intent.Cluster{TagName: "x"}},
		{Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Cluster: demo},
		{Lookup: intent.Lookup{Kind: intent.CoreSecurityGroups}, Cluster: intent.Cluster{TagName: "x"}},
		{Lookup: intent.Lookup{Kind: intent.EKSCluster, Name: eksCluster}},
		{Lookup: intent.Lookup{Kind: intent.Role, Name: nodeRole}},
	}
	got, err := r.Answer(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range got {
		if a.Problem != "" {
			t.Errorf("%s: %s: %s", requests[i].Lookup, a.Code, a.Problem)
		}
	}
	if t.Failed() {
		return
	}
	for i, arch := range []string{"arm64", "x86_64", "x86_64", "x86_64", "x86_64"} {
		if im := got[i].Image; im.Architecture != arch || im.RootDevice == "" || im.RootSize == 0 || im.ID == "" {
			t.Errorf("%s: %+v", requests[i].Lookup, im)
		}
	}
	if len(got[5].Subnets) != 3 || len(got[6].Subnets) != 1 || got[6].Code != "default-network" {
		t.Errorf("subnets %+v and %+v", got[5], got[6])
	}
	if len(got[7].SecurityGroups) == 0 || len(got[8].SecurityGroups) != 1 || got[8].Code != "default-network" {
		t.Errorf("security groups %+v and %+v", got[7], got[8])
	}
	if c := got[9].Cluster; c.Endpoint == "" || c.CertificateAuthority == "" || c.ServiceCIDR == "" || c.VPCID == "" || c.Version == "" || c.Status != "ACTIVE" {
		t.Errorf("cluster %+v", c)
	}
	missing, err := r.Answer(t.Context(), []resolve.Request{
		{Lookup: intent.Lookup{Kind: intent.ImageByID, Name: "ami-00000000000000000"}},
		{Lookup: intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.33", InstanceType: "m5.enormous"}},
		{Lookup: intent.Lookup{Kind: intent.EKSCluster, Name: "none"}},
		{Lookup: intent.Lookup{Kind: intent.Role, Name: "none"}},
		{Lookup: intent.Lookup{Kind: intent.Subnets, IDs: "subnet-00000000000000000"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, code := range []string{"image-not-found", "instance-type-unknown", "cluster-not-found", "role-not-found", "subnets-not-found"} {
		if missing[i].Code != code {
			t.Errorf("got %+v, want %s", missing[i], code)
		}
	}
}

package awscloud_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

func TestVersionNumbersAreReadPageByPageAndRemembered(t *testing.T) {
	e := start(t)
	e.templates("web", "prod", 1)
	ref := observed.TemplateRef{Name: "web-000"}
	for range 300 {
		e.do(step.CreateLaunchTemplateVersion{Template: ref, Data: e.data()})
	}
	needs := observed.Needs{Numbers: []string{"web-000"}}
	var s observed.State
	calls := e.counted(func() { s = e.fill(e.observe(query()), needs) })
	if n := s.Templates["web-000"].Numbers; len(n) != 302 || n[0] != 1 || n[301] != 302 || !slices.IsSorted(n) {
		t.Errorf("numbers: got %v", n)
	}
	if calls["ec2:DescribeLaunchTemplateVersions"] != 2 {
		t.Errorf("calls: got %v", calls)
	}
	calls = e.counted(func() { e.fill(e.observe(query()), needs) })
	if calls["ec2:DescribeLaunchTemplateVersions"] != 0 {
		t.Errorf("once more: %v", calls)
	}
	// Two hundred in one call; what is gone already is no error, and afterwards
	// the numbers are read anew.
	template := observed.TemplateRef{ID: s.Templates["web-000"].ID, Name: "web-000"}
	doomed := s.Templates["web-000"].Numbers[1:201]
	for range 2 {
		calls = e.counted(func() { e.do(step.DeleteLaunchTemplateVersions{Template: template, Versions: doomed}) })
		if d := cmp.Diff(map[string]int{"ec2:DeleteLaunchTemplateVersions": 1}, calls); d != "" {
			t.Errorf("calls (-want +got):\n%s", d)
		}
	}
	if n := e.fill(e.observe(query()), needs).Templates["web-000"].Numbers; len(n) != 102 {
		t.Errorf("left: %d versions", len(n))
	}
}

// The list of versions says what weir's hold, and a list that lacks the newest, of
// which the template told, is read again.
func TestVersionsSayWhatTheyHold(t *testing.T) {
	e := start(t)
	e.templates("web", "prod", 1)
	ref := observed.TemplateRef{Name: "web-000"}
	e.do(step.CreateLaunchTemplateVersion{Template: ref, Data: e.data(), Description: content.Describe("0123456789abcdef:fedcba9876543210", content.Commit{Revision: "abcdef0", Subject: "why"})})
	e.do(step.CreateLaunchTemplateVersion{Template: ref, Data: e.data(), Description: "by hand"})
	needs := observed.Needs{Numbers: []string{"web-000"}}
	have := e.fill(e.observe(query()), needs).Templates["web-000"]
	newest := have.LatestVersion
	if have.Contents[newest-1] != "0123456789abcdef:fedcba9876543210" || have.Contents[newest] != "" || len(have.Contents) != len(have.Numbers) {
		t.Errorf("contents: %v of %v", have.Contents, have.Numbers)
	}
	s := e.observe(query())
	ahead := s.Templates["web-000"]
	ahead.LatestVersion++ // as told by a read that is not behind
	s.Templates["web-000"] = ahead
	e.fill(s, needs)
	e.do(step.CreateLaunchTemplateVersion{Template: ref, Data: e.data(), Description: "one more"})
	if n := e.fill(e.observe(query()), needs).Templates["web-000"].Numbers; !slices.Contains(n, newest+1) {
		t.Errorf("after a read that was behind: %v", n)
	}
}

func TestDeletingVersionsTellsWhichStay(t *testing.T) {
	e := start(t)
	e.templates("web", "prod", 1)
	s := e.observe(query())
	template := observed.TemplateRef{ID: s.Templates["web-000"].ID, Name: "web-000"}
	_, err := e.cloud.Execute(t.Context(), step.DeleteLaunchTemplateVersions{Template: template, Versions: []int64{1, 2, 9}})
	if k := kind(t, err); k != observed.Invalid || !strings.Contains(err.Error(), "version 1 stays") {
		t.Errorf("the default version: %q, %v", k, err)
	}
	if n := e.fill(e.observe(query()), observed.Needs{Numbers: []string{"web-000"}}).Templates["web-000"].Numbers; !slices.Equal(n, []int64{1}) {
		t.Errorf("left: %v", n)
	}
	e.do(step.DeleteLaunchTemplate{Template: template})
	e.do(step.DeleteLaunchTemplateVersions{Template: template, Versions: []int64{1}}) // gone is gone
}

func TestWhoUsesWhichVersion(t *testing.T) {
	e := start(t)
	e.templates("web", "prod", 2)
	s := e.observe(query())
	ref := func(name, version string) observed.TemplateRef {
		return observed.TemplateRef{ID: s.Templates[name].ID, Name: name, Version: version}
	}
	group := observed.Group{Name: "theirs", MaxSize: 2, DesiredCapacity: 1, SubnetIDs: e.subnets(), Template: ref("web-000", "1")}
	e.do(step.CreateGroup{Group: group})
	e.clock.Advance(60e9)
	two := ref("web-000", "2")
	e.do(step.UpdateGroup{Name: "theirs", Template: &two})
	var users []observed.VersionUser
	calls := e.counted(func() {
		users = e.fill(s, observed.Needs{VersionUsers: []string{"web-000", "web-001"}}).VersionUsers["web-000"]
	})
	got := map[string]int{}
	for _, u := range users {
		kind, _, _ := strings.Cut(strings.TrimPrefix(u.User, "the "), " ")
		got[kind+" "+u.Version]++
	}
	// The group's instance is known from the group and by its own tags.
	if d := cmp.Diff(map[string]int{"group 2": 1, "group 1": 1, "instance 1": 1}, got); d != "" {
		t.Errorf("users (-want +got):\n%s", d)
	}
	want := map[string]int{"autoscaling:DescribeAutoScalingGroups": 1, "autoscaling:DescribeInstanceRefreshes": 1, "ec2:DescribeInstances": 1,
		"eks:ListClusters": 1, "eks:ListNodegroups": 1}
	if d := cmp.Diff(want, calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

// A nodegroup that somebody has moved to an older version within the round, in which it
// is remembered, uses that version.
func TestARememberedNodegroupUsesTheVersionThatItHasNow(t *testing.T) {
	e := start(t)
	data := intent.TemplateData{InstanceType: "m5.large"}
	ref := e.do(step.CreateLaunchTemplate{Name: "web", Data: data, Tags: tags("web")}).Template
	next := e.do(step.CreateLaunchTemplateVersion{Template: observed.TemplateRef{ID: ref.ID, Name: "web"}, Data: data}).Template
	names := map[string]observed.NodegroupName{}
	for _, name := range []string{"theirs", "other"} {
		create := createNodegroup(e, name)
		create.Nodegroup.Template, create.Nodegroup.DiskSize, create.Nodegroup.InstanceTypes = next, 0, nil
		if name == "other" {
			create.Nodegroup.Template = e.do(step.CreateLaunchTemplate{Name: "other", Data: data}).Template
		}
		create.Nodegroup.Tags = nil
		e.do(create)
		names[name] = create.Nodegroup.NodegroupName
	}
	e.clock.Advance(time.Minute)
	q := query()
	q.Round, q.EKSClusters = 5*time.Minute, []string{eksCluster}
	e.observe(q)
	if _, err := e.open().Execute(t.Context(), step.UpdateNodegroupVersion{NodegroupName: names["theirs"], Template: &ref}); err != nil {
		t.Fatal(err)
	}
	e.clock.Advance(time.Second)
	s := e.observe(q)
	if s.Nodegroups[names["theirs"]].DescribedAtPass {
		t.Fatal("it is not remembered")
	}
	calls := e.counted(func() { s = e.fill(s, observed.Needs{VersionUsers: []string{"web"}}) })
	by := "the nodegroup " + names["theirs"].String()
	if !slices.Contains(s.VersionUsers["web"], observed.VersionUser{User: "the update of " + by, Version: "1"}) {
		t.Errorf("users: %v", s.VersionUsers["web"])
	}
	e.clock.Advance(time.Minute)
	if s = e.fill(s, observed.Needs{VersionUsers: []string{"web"}}); !slices.Contains(s.VersionUsers["web"], observed.VersionUser{User: by, Version: "1"}) {
		t.Errorf("users once it is updated: %v", s.VersionUsers["web"])
	}
	if calls["eks:DescribeNodegroup"] != 1 {
		t.Errorf("described: %v", calls) // the other has another template, which EKS never changes
	}
}

package importer

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// fleet is a state with groups and nodegroups that differ in whose they are.
func fleet() observed.State {
	s := observed.State{Region: "eu-west-1", Groups: map[string]observed.Group{}, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{}, Clusters: map[string]bool{"a": true, "b": true}}
	for name, tags := range map[string]map[string]string{
		"plain": nil, "of-a": {"kubernetes.io/cluster/a": "owned", "team": "x"}, "of-b": {observed.TagClusterPrefix + "b": "owned"},
		"of-both": {"kubernetes.io/cluster/a": "owned", "kubernetes.io/cluster/b": "shared"}, "stack": {"aws:cloudformation:stack-name": "s"},
		"behind": {"eks:cluster-name": "a", "eks:nodegroup-name": "workers"}, "gone": {"eks:cluster-name": "c", "eks:nodegroup-name": "workers"}, "workers": {"kubernetes.io/cluster/a": "owned"},
	} {
		s.Groups[name] = observed.Group{Name: name, Tags: observed.GroupTags(tags), SubnetIDs: []string{"subnet-1"}, Template: observed.TemplateRef{ID: "lt-1", Version: "1"}}
	}
	for _, cluster := range []string{"a", "b"} {
		n := observed.NodegroupName{Cluster: cluster, Name: "workers"}
		s.Nodegroups[n] = observed.Nodegroup{NodegroupName: n, Status: "ACTIVE", Tags: map[string]string{"team": "x"}}
	}
	return s
}

func TestWhatIsChosen(t *testing.T) {
	for want, c := range map[string]Choice{
		"behind gone of-a of-b of-both plain stack workers a/workers b/workers": {},
		"behind of-a of-both workers a/workers":                                 {Cluster: "a"},
		"plain":                                                                 {Groups: []string{"plain"}},
		"plain a/workers":                                                       {Groups: []string{"plain"}, Nodegroups: []string{"a/workers"}},
		"a/workers b/workers":                                                   {Nodegroups: []string{"workers"}},
		"b/workers":                                                             {Cluster: "b", Nodegroups: []string{"workers"}},
		"of-a a/workers b/workers":                                              {Tags: map[string]string{"team": "x"}},
		"missing the group \"x\"":                                               {Groups: []string{"x"}},
		"missing the nodegroup \"c/workers\"":                                   {Nodegroups: []string{"c/workers"}},
		"missing the nodegroup \"a/workers\" b":                                 {Cluster: "b", Nodegroups: []string{"a/workers"}},
	} {
		s := fleet()
		missing := c.Of(&s)
		var got []string
		for name := range s.Groups {
			got = append(got, name)
		}
		slices.Sort(got)
		for _, cluster := range []string{"a", "b"} {
			if _, ok := s.Nodegroups[observed.NodegroupName{Cluster: cluster, Name: "workers"}]; ok {
				got = append(got, cluster+"/workers")
			}
		}
		text := strings.Join(got, " ")
		if len(missing) > 0 {
			text = "missing " + strings.Join(missing, ", ")
		}
		if text != strings.TrimSuffix(want, " b") && text != want {
			t.Errorf("%+v: got %s, want %s", c, text, want)
		}
	}
}

// TestWhatIsRefusedAndCalled: nothing is left out but the groups behind nodegroups that are
// imported, each refusal says why, and no two pools have one name.
func TestWhatIsRefusedAndCalled(t *testing.T) {
	var got []string
	for _, p := range Make(fleet(), Options{}) {
		word, _, _ := strings.Cut(p.Reason, ":")
		got = append(got, p.Name+"="+p.Key+word)
	}
	want := []string{
		`gone=it is behind the EKS nodegroup "workers"`, "of-a=of-a", "of-b=of-b", "of-both=its tags name several clusters",
		"plain=no tag says which cluster its machines join; name the group and its cluster", "stack=it belongs to a CloudFormation stack, as its tag aws",
		"workers=workers", "workers=a-workers", "workers=b-workers",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, p := range Make(fleet(), Options{Cluster: "z"}) {
		if p.Name == "plain" && (p.Cluster != "z" || p.State != Whole) || p.Name == "of-b" && p.Cluster != "b" {
			t.Errorf("%s is of %s: %s", p.Name, p.Cluster, p.Reason)
		}
	}
}

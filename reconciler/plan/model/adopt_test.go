package model

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// weir never adopts a resource of another tool or another cluster, whoever asks for it and however right its other tags are.
func TestNeverAdopted(t *testing.T) {
	const capa = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	want := map[string]string{"Name": "web", capa + "demo": "owned", "kubernetes.io/cluster/demo": "owned"}
	for name, c := range map[string]struct {
		have map[string]string
		why  string
	}{
		"nothing":                 {nil, ""},
		"somebody's own tags":     {map[string]string{"team": "x", "Name": "other"}, ""},
		"the cluster's":           {map[string]string{capa + "demo": "owned", "kubernetes.io/cluster/demo": "owned"}, ""},
		"CloudFormation's":        {map[string]string{"aws:cloudformation:stack-name": "x"}, "CloudFormation"},
		"Karpenter's":             {map[string]string{"karpenter.sh/nodepool": "x"}, "Karpenter"},
		"Karpenter's class":       {map[string]string{"karpenter.k8s.aws/ec2nodeclass": "x"}, "Karpenter"},
		"a nodegroup's":           {map[string]string{"eks:nodegroup-name": "x", capa + "demo": "owned"}, "EKS"},
		"another cluster's":       {map[string]string{capa + "other": "owned"}, "another cluster"},
		"another cluster's nodes": {map[string]string{"kubernetes.io/cluster/other": "owned"}, "another cluster"},
		"shared with another":     {map[string]string{"kubernetes.io/cluster/other": "shared"}, ""},
	} {
		got := neverAdopted(c.have, want)
		if (c.why == "") != (got == "") || !strings.Contains(got, c.why) {
			t.Errorf("%s: got %q, want %q", name, got, c.why)
		}
	}
}

// Who may take over what belongs to whom.
func TestMayAdopt(t *testing.T) {
	pool := intent.Pool{}
	policy := Policy{Instance: "me", Target: "blue", Region: "eu-west-1", Source: "aaa", Sources: []string{"aaa"}}
	tags := func(owner, source, target string) map[string]string {
		return map[string]string{observed.TagOwner: owner, observed.TagSource: source, observed.TagTarget: target}
	}
	path := policy
	path.OwnTargetOnly = true
	for name, c := range map[string]struct {
		policy   Policy
		adoption Adoption
		have     map[string]string
		want     bool
		says     string
	}{
		"nobody asks":                    {policy, Adoption{}, nil, false, "or adopt it: weir adopt --config FILE blue"},
		"CloudFormation's":               {policy, Adoption{}, map[string]string{"aws:cloudformation:stack-name": "s"}, false, ""},
		"the configuration forbids it":   {policy, Adoption{}, nil, false, "allowAdopt"},
		"annotated":                      {policy, Adoption{Annotated: true}, nil, true, ""},
		"annotated, another weir's":      {policy, Adoption{Annotated: true}, tags("you", "aaa", "blue"), false, "--from you"},
		"asked":                          {policy, Adoption{Asked: true}, nil, true, ""},
		"asked, an empty owner":          {policy, Adoption{Asked: true}, tags("", "", ""), true, ""},
		"not asked, another weir's":      {policy, Adoption{}, tags("you", "aaa", "blue"), false, "weir adopt --config FILE blue --from you"},
		"not asked, no instance's name":  {policy, Adoption{}, tags("you; rm", "aaa", "blue"), false, "weir adopt --config FILE blue --from OWNER"},
		"not asked, path mode":           {path, Adoption{}, tags("you", "aaa", "blue"), false, "weir plan --config FILE --path DIR"},
		"asked, another weir's":          {policy, Adoption{Asked: true}, tags("you", "aaa", "blue"), false, "--from you"},
		"asked, from another":            {policy, Adoption{Asked: true, From: "they"}, tags("you", "aaa", "blue"), false, "--from you"},
		"asked, from it":                 {policy, Adoption{Asked: true, From: "you"}, tags("you", "zzz", "red"), true, ""},
		"of another source of ours":      {policy, Adoption{Asked: true, From: "me"}, tags("me", "zzz", "blue"), true, ""},
		"of another target of ours":      {policy, Adoption{Asked: true, From: "me"}, tags("me", "aaa", "red"), false, ""},
		"of another target, path mode":   {path, Adoption{Asked: true, From: "me"}, tags("me", "aaa", "red"), true, ""},
		"of another target, not by name": {path, Adoption{Asked: true}, tags("me", "aaa", "red"), false, "--from me"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool
			p.Adopt = c.adoption.Annotated || strings.Contains(c.says, "allowAdopt")
			c.policy.Adoption = c.adoption
			o := Ownership{Why: "x"}
			comp := Input{Policy: c.policy}
			if got := comp.MayAdopt(&p, c.have, map[string]string{}, &o); got != c.want || !strings.Contains(o.Why+"; "+o.remedy, c.says) {
				t.Errorf("got %v, %q, %q", got, o.Why, o.remedy)
			}
			if c.policy.OwnTargetOnly && !c.adoption.Asked && strings.Contains(o.remedy, "--from") {
				t.Errorf("who plans a directory is told to take what another weir has: %q", o.remedy)
			}
			if never := c.says == "" && !c.want; never && strings.Contains(o.remedy, "weir adopt") {
				t.Errorf("what is never adopted is offered: %q", o.remedy)
			}
		})
	}
}

// weir takes nothing over from a target that it cannot list, and does from a listed one.
func TestUnlistedTargetsKeepWhatTheyHave(t *testing.T) {
	p := Policy{Instance: "me", Target: "blue", Source: "aaa", Unlisted: []string{"c-*", "*-x"}, Listed: map[string]bool{"c-known": true}}
	for target, ours := range map[string]bool{"c-gone": false, "a-x": false, "c-known": true, "red": true, "blue": true} {
		tags := map[string]string{observed.TagOwner: "me", observed.TagSource: "aaa", observed.TagTarget: target}
		if got := p.Owns(tags, "blue", true); got.Ours != ours {
			t.Errorf("%s: %+v", target, got)
		}
	}
}

package model

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// The template of a launch configuration that stands in Git is kept by its tag, also where the
// derived name was cut, and a hash stands for its end.
func TestALaunchConfigurationKeepsItsTemplate(t *testing.T) {
	long := strings.Repeat("long-", 20) + "name"
	cut := func(whole string) string {
		return whole[:min(len(whole), intent.MaxTemplateName-9)] + "-0123abcd"
	}
	for name, tt := range map[string]struct {
		config, tag string
		want        bool
	}{
		"of a group":                 {"web", "default/demo-web-group", true},
		"of a nodegroup":             {"web", "default/demo-web-nodegroup", true},
		"written":                    {"web", "default/web", true},
		"another's":                  {"web", "default/demo-api-group", false},
		"in another namespace":       {"web", "other/demo-web-group", false},
		"cut":                        {long, "default/" + cut("a-cluster-with-a-name-"+long+"-group"), true},
		"cut in its kind":            {long, "default/" + cut("a-cluster-"+long+"-nodegroup"), true},
		"another's that was cut":     {"web", "default/" + cut("a-cluster-with-a-name-"+long+"-group"), false},
		"a hash, but nothing is cut": {"web", "default/demo-we-0123abcd", false},
		"no tag":                     {"web", "", false},
	} {
		u := &intent.Unplanned{LaunchConfigs: []intent.ObjectRef{{Kind: "AWSLaunchConfigTemplate", Namespace: "default", Name: tt.config}}}
		if got := Keeps(u, Claim{Resource: step.LaunchTemplate, Name: "x"}, map[string]string{observed.TagLaunchConfig: tt.tag}); got != tt.want {
			t.Errorf("%s: %t (%d characters)", name, got, len(tt.tag))
		}
	}
}

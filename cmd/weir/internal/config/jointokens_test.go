package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/targetspec"
)

func TestJoinTokens(t *testing.T) {
	const head = "apiVersion: weir.dev/v1alpha1\nkind: Config\ninstance: a\nsources: [{name: s, url: u}]\ntargets:\n- name: t\n  region: eu-west-1\n"
	parse := func(text string) (*targetspec.Target, []string) {
		c, faults := Parse("/etc/weir/w.yaml", []byte(head+text), Env{Getenv: func(string) string { return "/home/u" }})
		var all []string
		for _, f := range faults {
			all = append(all, f.String())
		}
		if c == nil {
			return nil, all
		}
		return &c.Targets[0], all
	}
	if got, faults := parse("  kubeconfigFile: demo.kubeconfig\n"); got == nil || got.KubeconfigFile != "/etc/weir/demo.kubeconfig" || !slices.Equal(got.SSMPrefixes, []string{"/weir"}) {
		t.Errorf("%+v %v", got, faults)
	}
	if got, faults := parse("  kubeconfigFile: /a\n  ssmPrefixes: [/fleet/prod, /old]\n"); got == nil || !slices.Equal(got.SSMPrefixes, []string{"/fleet/prod", "/old"}) {
		t.Errorf("%+v %v", got, faults)
	}
	if got, _ := parse(""); got == nil || got.SSMPrefixes != nil || got.KubeconfigFile != "" {
		t.Errorf("without a kubeconfig: %+v", got)
	}
	got, faults := parse("  path: clusters/*\n  kubeconfigFile: \"kube/{1}.yaml\"\n")
	if got != nil || len(faults) != 1 { // the name needs {1} too
		t.Errorf("%+v %v", got, faults)
	}
	for text, want := range map[string]string{
		"  kubeconfigFile: a\n  ssmPrefixes: [weir]\n":     "is not a valid prefix",
		"  kubeconfigFile: a\n  ssmPrefixes: [/weir/]\n":   "is not a valid prefix",
		"  kubeconfigFile: a\n  ssmPrefixes: ['/we ir']\n": "is not a valid prefix",
		"  kubeconfigFile: a\n  ssmPrefixes: [/AWS/x]\n":   "reserves names that start with aws",
		"  ssmPrefixes: [/ssm-x]\n":                        "reserves names that start with aws",
		"  ssmPrefixes: [/a/b/c/d/e/f/g/h/i]\n":            "is not a valid prefix",
		"  kubeconfigFile: \"{1}\"\n":                      "{1} refers to a wildcard",
		"  kubeconfigFile: [a]\n":                          "kubeconfigFile",
	} {
		if c, faults := parse(text); c != nil || !strings.Contains(strings.Join(faults, "\n"), want) {
			t.Errorf("%q: %v", text, faults)
		}
	}
}

package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// errorsOf are the codes of the errors among faults, each once.
func errorsOf(faults []kinds.Fault) []string {
	var out []string
	for _, f := range faults {
		if f.Severity == diag.Error {
			out = append(out, f.Code)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A reference from or to nothing is an error where a target renders it. What stands there
// is in the set as unplanned, with the names that AWS's resources have.
func TestAPoolWithoutItsOtherHalfIsUnplanned(t *testing.T) {
	mp, pool := machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool("{}")
	for name, tt := range map[string]struct {
		docs []string
		want []string
		keys []string
	}{
		"the reference's kind is misspelled":  {[]string{strings.Replace(mp, "kind: AWSManagedMachinePool", "kind: AWSMangedMachinePool", 1), pool}, []string{"misspelled-kind", "pool-without-machinepool"}, []string{"default/web"}},
		"the reference's kind is not a pool":  {[]string{strings.Replace(mp, "kind: AWSManagedMachinePool", "kind: AWSManagedCluster", 1), pool}, []string{"misspelled-kind", "pool-without-machinepool"}, []string{"default/web"}},
		"the reference's kind is another's":   {[]string{strings.Replace(mp, "kind: AWSManagedMachinePool", "kind: AzureMachinePool", 1), pool}, []string{"pool-without-machinepool"}, []string{"default/web"}},
		"the reference's group is misspelled": {[]string{strings.Replace(mp, "{kind: AWSManagedMachinePool", "{apiVersion: infrastructure.cluster.k8s.io/v1beta2, kind: AWSManagedMachinePool", 1), pool}, []string{"misspelled-kind"}, []string{"default/web"}},
		"the MachinePool's kind":              {[]string{strings.Replace(mp, "kind: MachinePool", "kind: MachinePoool", 1), pool}, []string{"misspelled-kind"}, []string{"default/web"}},
		"the MachinePool's group":             {[]string{strings.Replace(mp, "cluster.x-k8s.io", "cluster.k8s.io", 1), pool}, []string{"misspelled-kind"}, []string{"default/web"}},
		"the MachinePool's version":           {[]string{strings.Replace(mp, "v1beta1", "v1beta9", 1), pool}, []string{"unknown-version"}, []string{"default/web"}},
		"the pool's kind":                     {[]string{mp, strings.Replace(pool, "kind: AWSManagedMachinePool", "kind: AWSManagedMachinePol", 1)}, []string{"misspelled-kind", "reference-not-found"}, []string{"default/web"}},
		"the pool's group":                    {[]string{mp, strings.Replace(pool, "infrastructure.cluster.x-k8s.io", "infrastructure.cluster.k8s.io", 1)}, []string{"misspelled-kind", "reference-not-found"}, []string{"default/web"}},
		"a control plane's kind":              {[]string{mp, pool, strings.Replace(eksCluster, "kind: AWSManagedControlPlane\nmetadata", "kind: AWSManagedControlPlan\nmetadata", 1)}, []string{"misspelled-kind"}, []string{"default/web"}},
		"PoolOptions":                         {[]string{mp, pool, "apiVersion: weir.dev/v1alpha1\nkind: PoolOption\nmetadata: {name: x}\nspec: {}"}, []string{"misspelled-kind"}, []string{"default/web"}},
		"a value":                             {[]string{mp, managedPool("diskSize: x")}, []string{"wrong-type"}, []string{"default/web"}},
		"no MachinePool":                      {[]string{pool}, []string{"pool-without-machinepool"}, []string{"default/web"}},
		"no infrastructure pool":              {[]string{mp}, []string{"reference-not-found"}, []string{"default/web"}},
		"another provider's":                  {[]string{machinePool("AzureMachinePool", "", noBootstrap)}, nil, nil},
		"kinds that are nobody's mistake":     {[]string{mp, pool, "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineSet\nmetadata: {name: x}", "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: GCPMachinePool\nmetadata: {name: x}", "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: x}"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			set, faults := manifest.Intents(objects(t, stream(tt.docs...)), manifest.Options{})
			if d := cmp.Diff(tt.want, errorsOf(faults)); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			var keys []string
			for _, u := range set.Broken() {
				keys = append(keys, u.Key.String())
				if !slices.Contains(u.Names, "web") || !slices.Contains(u.Nodegroups, "default_web") || !slices.Contains(u.Pools, "default/web") {
					t.Errorf("names: %+v", u)
				}
			}
			if d := cmp.Diff(tt.keys, keys); d != "" {
				t.Errorf("broken pools (-want +got):\n%s", d)
			}
			if len(set.Pools) > 0 == (len(keys) > 0) && len(tt.want) > 0 {
				t.Errorf("%d pools beside %v", len(set.Pools), keys)
			}
		})
	}
}

// A base may hold one half of its pools; a mistake in a whole pair is none of that.
func TestABaseMayHoldHalfAPair(t *testing.T) {
	mp, pool := machinePool("AWSMachinePool", "", noBootstrap), groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")
	for name, tt := range map[string]struct {
		docs  []string
		valid bool
	}{
		"MachinePools alone":         {[]string{mp}, true},
		"infrastructure pools alone": {[]string{pool}, true},
		"a pair":                     {[]string{mp, pool}, true},
		"a dangling name":            {[]string{strings.Replace(mp, "name: web}", "name: wbe}", 2), pool}, false},
		"a misspelled reference":     {[]string{strings.Replace(mp, "kind: AWSMachinePool", "kind: AWSMachinePol", 1), pool}, false},
		"a misspelled kind alone":    {[]string{strings.Replace(pool, "kind: AWSMachinePool", "kind: AWSMachinePol", 1)}, false},
	} {
		_, faults := manifest.Intents(objects(t, stream(tt.docs...)), manifest.Options{Partial: true})
		if got := len(errorsOf(faults)) == 0; got != tt.valid {
			t.Errorf("%s: valid is %t: %v", name, got, errorsOf(faults))
		}
	}
}

// What derives from a launch configuration stays while that is in the render.
func TestAnUnusedLaunchConfigurationIsUnplanned(t *testing.T) {
	set, _ := manifest.Intents(objects(t, configOf("AWSLaunchConfigTemplate", "instanceType: m5.large, ami: {id: ami-00000001}")), manifest.Options{})
	if len(set.Unplanned) != 1 || !set.Unplanned[0].Foreign || set.Unplanned[0].IsPool() || !slices.ContainsFunc(set.Unplanned[0].LaunchConfigs, func(r intent.ObjectRef) bool { return r.Kind == "AWSLaunchConfigTemplate" }) {
		t.Errorf("got %+v", set.Unplanned)
	}
}

package render_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

// unwritten are the fields that the maximal manifests do not write, or that have
// no field of their own in any manifest, each with its reason in render's notes.
// A field that is new in an intent must be named in the table sources of
// fields.go and written in testdata/maximal, or be listed here.
var unwritten = map[string][]string{
	"fleet/web AWSMachinePool": {
		"controlPlane.kind derived", "group.subnets.kind derived", "group.tags[kubernetes.io/cluster/*] derived", "group.tags[sigs.k8s.io/*] derived",
		"launchTemplate.data.BlockDeviceMappings.Ebs.DeleteOnTermination derived",
		"launchTemplate.data.TagSpecifications.ResourceType derived", "launchTemplate.data.TagSpecifications.Tags.Key derived", "launchTemplate.data.TagSpecifications.Tags.Value derived",
		"launchTemplate.securityGroups.kind derived", "launchTemplate.tags[kubernetes.io/cluster/*] derived", "launchTemplate.tags[sigs.k8s.io/*] derived",
		"launchTemplate.userData.secret derived",
	},
	// Two groups in which little but their options is written.
	"fleet/typed AWSMachinePool": plainGroup(),
	"fleet/found AWSMachinePool": plainGroup("group.options.metricsCollection.granularity default", "group.options.metricsCollection.metrics default",
		"group.options.trafficSources.type derived"),
	// One with a launch template, in which little is written.
	"fleet/own AWSManagedMachinePool": {
		"launchTemplate.data.TagSpecifications.ResourceType derived", "launchTemplate.data.TagSpecifications.Tags.Key derived", "launchTemplate.data.TagSpecifications.Tags.Value derived",
		"launchTemplate.tags[kubernetes.io/cluster/*] derived", "launchTemplate.tags[sigs.k8s.io/*] derived", "launchTemplate.userData.cluster.kind derived",
		"nodegroup.capacityType default", "nodegroup.cluster.kind derived", "nodegroup.maxSize.value derived", "nodegroup.maxSize.written default",
		"nodegroup.minSize.value derived", "nodegroup.minSize.written default", "nodegroup.role.kind derived", "nodegroup.role.name default", "nodegroup.subnets.kind derived",
		"nodegroup.tags[kubernetes.io/cluster/*] derived", "nodegroup.updateConfig.maxUnavailable default", "replicas.value default", "replicas.written default",
	},
	"fleet/many AWSManagedMachinePool": {
		"nodegroup.cluster.kind derived", "nodegroup.role.kind derived", "nodegroup.role.name default", "nodegroup.subnets.kind derived", "nodegroup.tags[kubernetes.io/cluster/*] derived",
	},
	// Those that bring their own launch template.
	"fleet/mine AWSMachinePool": {
		"controlPlane.kind derived", "foreignOverrides.lookup.kind derived", "foreignTemplate.lookup.kind derived", "group.capacityRebalance default", "group.mixedInstancesPolicy.onDemandBaseCapacity default", "group.refresh.strategy default",
		"group.subnets.kind derived", "group.tags[kubernetes.io/cluster/*] derived", "group.tags[sigs.k8s.io/*] derived",
	},
	"fleet/managed AWSManagedMachinePool": {
		"foreignTemplate.lookup.kind derived", "nodegroup.cluster.kind derived", "nodegroup.role.kind derived", "nodegroup.role.name default", "nodegroup.subnets.kind derived",
		"nodegroup.tags[kubernetes.io/cluster/*] derived", "nodegroup.updateConfig.maxUnavailable default",
	},
	"fleet/web AWSManagedMachinePool": {
		"nodegroup.cluster.kind derived", "nodegroup.remoteAccessGroups.kind derived", "nodegroup.remoteAccessGroups.name derived", "nodegroup.role.kind derived",
		"nodegroup.subnets.kind derived", "nodegroup.tags[kubernetes.io/cluster/*] derived",
	},
}

// presence are the fields that say that something is written, or how it is named,
// whatever its value is.
var presence = []string{
	"replicas.written", "nodegroup.minSize.written", "nodegroup.maxSize.written", "replicasManagedExternally",
	"launchTemplate.data.BlockDeviceMappings.Ebs.Encrypted", "launchTemplate.data.TagSpecifications.Tags.Key", "launchTemplate.rootDevice",
}

func renderMaximal(t *testing.T, content string) *render.Result {
	t.Helper()
	r, err := render.Render(context.Background(), tree.Map{"maximal.yaml": content}, "maximal.yaml", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// plainGroup are the fields of a group that are not written where little but its
// options is, and more.
func plainGroup(more ...string) []string {
	for _, name := range []string{"capacityRebalance", "defaultCooldown", "defaultInstanceWarmup", "mixedInstancesPolicy.onDemandAllocationStrategy", "mixedInstancesPolicy.onDemandBaseCapacity",
		"mixedInstancesPolicy.onDemandPercentageAboveBaseCapacity", "mixedInstancesPolicy.spotAllocationStrategy", "refresh.strategy"} {
		more = append(more, "group."+name+" default")
	}
	for _, name := range []string{"group.subnets.kind", "group.tags[kubernetes.io/cluster/*]", "group.tags[sigs.k8s.io/*]", "launchTemplate.data.TagSpecifications.ResourceType",
		"launchTemplate.data.TagSpecifications.Tags.Key", "launchTemplate.data.TagSpecifications.Tags.Value", "launchTemplate.securityGroups.kind",
		"launchTemplate.tags[kubernetes.io/cluster/*]", "launchTemplate.tags[sigs.k8s.io/*]"} {
		more = append(more, name+" derived")
	}
	slices.Sort(more)
	return more
}

// general is a field without the indexes and keys that differ.
func general(p intent.Path) string {
	var out []string
	for _, e := range p {
		switch {
		case strings.HasPrefix(e, "["):
			continue
		case strings.HasPrefix(e, "kubernetes.io/cluster/"):
			out[len(out)-1] += "[kubernetes.io/cluster/*]"
		case strings.HasPrefix(e, "sigs.k8s.io/"):
			out[len(out)-1] += "[sigs.k8s.io/*]"
		default:
			out = append(out, e)
		}
	}
	return strings.Join(out, ".")
}

// Each field of a maximal pool has an origin, changing what stands there changes
// the field, and what has no origin is known and has its reason.
func TestEveryFieldHasASource(t *testing.T) {
	for _, name := range []string{"group", "nodegroup", "foreign", "options"} {
		content, err := os.ReadFile("testdata/maximal/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		r := renderMaximal(t, string(content))
		if r.Diags.HasErrors() || len(r.Set.Pools) == 0 {
			t.Fatalf("%s: %v", name, r.Diags)
		}
		for i := range r.Set.Pools {
			p := &r.Set.Pools[i]
			fields, err := r.Fields(p)
			if err != nil {
				t.Fatal(err)
			}
			var without []string
			for _, f := range fields {
				switch f.Source {
				case render.Written:
					checkEdit(t, string(content), p.Key, f)
				case render.Unknown:
					t.Errorf("%s: the source of %s is unknown: name it in sources or notes of fields.go", p.Key, f.Path)
				default:
					if f.Note == "" {
						t.Errorf("%s: %s has no note", p.Key, f.Path)
					}
					line := general(f.Path) + " " + string(f.Source)
					if !slices.Contains(without, line) {
						without = append(without, line)
					}
				}
			}
			slices.Sort(without)
			if d := cmp.Diff(unwritten[p.Key.String()+" "+string(p.Kind)], without); d != "" {
				t.Errorf("%s: fields that are not written (-want +got):\n%s", p.Key, d)
			}
		}
	}
}

// checkEdit changes what stands at a field's origin, and looks whether the field
// changes with it, or the pool is no longer valid.
func checkEdit(t *testing.T, content string, key intent.Key, f render.Field) {
	t.Helper()
	if slices.Contains(presence, general(f.Path)) {
		return
	}
	lines := strings.SplitAfter(content, "\n")
	line := lines[f.Origin.Line-1]
	before, token := line[:f.Origin.Column-1], line[f.Origin.Column-1:]
	switch {
	case strings.HasPrefix(token, `"`):
		before, token = before+`"`, token[1:]
	case strings.HasPrefix(token, "|"):
		lines[f.Origin.Line] += "    more\n"
	}
	if !strings.HasPrefix(token, "|") {
		lines[f.Origin.Line-1] = before + "9" + token
	}
	r := renderMaximal(t, strings.Join(lines, ""))
	p := r.Set.Pool(key.String())
	if p == nil {
		return
	}
	if now := valueAt(t, p, f.Path); now == f.Value {
		t.Errorf("%s: %s is %q still, after changing %v: %s", key, f.Path, f.Value, f.Origin, line)
	}
}

// valueAt is a scalar of a pool.
func valueAt(t *testing.T, p *intent.Pool, path intent.Path) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var at any
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	for _, e := range path {
		switch v := at.(type) {
		case map[string]any:
			at = v[e]
		case []any:
			at = nil
			for i := range v {
				if intent.Index(i) == e {
					at = v[i]
				}
			}
		}
	}
	return fmt.Sprint(at)
}

func TestSelect(t *testing.T) {
	content, err := os.ReadFile("testdata/maximal/group.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := renderMaximal(t, string(content))
	p := &r.Set.Pools[0]
	fields, err := r.Fields(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"maxSize":                           {"group.maxSize"},
		"spec.maxsize":                      {"group.maxSize"},
		"group.maxSize":                     {"group.maxSize"},
		"replicas":                          {"replicas.value", "replicas.written"},
		"template.spec.version":             {"version"},
		"refreshPreferences.strategy":       {"group.refresh.strategy"},
		"lifecycleHooks[1].name":            {"group.lifecycleHooks[0].name"},
		"launchTemplate.userData.text":      {"launchTemplate.userData.text"},
		"capacityRebalance.no":              nil,
		"suspendProcesses.all":              nil,
		"awsLaunchTemplate.rootVolume.iops": {"launchTemplate.data.BlockDeviceMappings[0].Ebs.Iops"},
	} {
		path, err := intent.ParsePath(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Select(p, fields, path) {
			if len(f.Path) > 0 && f.Path[len(f.Path)-1] != "suspended" {
				got = append(got, f.Path.String())
			}
		}
		if name == "suspendProcesses.all" {
			got = nil // the processes that it suspends
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for _, f := range fields {
		if strings.Contains(f.Value, "hello") {
			t.Errorf("%s shows the user data", f.Path)
		}
		for _, s := range r.Chain(f) {
			if f.Object.Kind == "Secret" && s.Value != nil {
				t.Errorf("the chain of %s shows a Secret's value", f.Path)
			}
		}
	}
}

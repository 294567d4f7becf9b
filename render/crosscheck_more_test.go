package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
)

func TestNodegroupChecks(t *testing.T) {
	const arm = "amiType: AL2023_x86_64_STANDARD\n"
	many := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(line, "%", fmt.Sprint(i)) + "\n")
		}
		return b.String()
	}
	hook := func(fields string) string {
		return byID + "\nlifecycleHooks:\n- {name: a, lifecycleTransition: \"autoscaling:EC2_INSTANCE_LAUNCHING\", " + fields + "}"
	}
	tests := map[string]struct {
		tree tree.Map
		want []string
	}{
		"fine":                     {managed(arm + "labels: {team: a, node.kubernetes.io/x: b}\ntaints: [{key: a, value: \"\", effect: no-execute}]"), nil},
		"a reserved label":         {managed(arm + "labels: {a: b, topology.kubernetes.io/zone: c}"), []string{"pool.yaml:6:18 error reserved-label"}},
		"a label of EKS":           {managed(arm + "labels: {eks.amazonaws.com/x: c}"), []string{"pool.yaml:6:12 error reserved-label"}},
		"an empty label":           {managed(arm + "labels: {a: \"\"}"), []string{"pool.yaml:6:15 error bad-value"}},
		"a label's value":          {managed(arm + "labels: {a: \"b c\"}"), []string{"pool.yaml:6:15 error bad-value"}},
		"a label's key":            {managed(arm + "labels: {\"a b\": c}"), []string{"pool.yaml:6:12 error bad-name"}},
		"a long key":               {managed(arm + "labels: {example.org/" + strings.Repeat("a", 52) + ": c}"), []string{"pool.yaml:6:12 error bad-name"}},
		"a key of 63":              {managed(arm + "labels: {example.org/" + strings.Repeat("a", 51) + ": c}"), nil},
		"a taint's key":            {managed(arm + "taints:\n- {key: a b, value: c, effect: no-execute}"), []string{"pool.yaml:7:11 error bad-name"}},
		"a taint's value":          {managed(arm + "taints:\n- {key: a, value: c d, effect: no-execute}"), []string{"pool.yaml:7:21 error bad-value"}},
		"a taint with a prefix":    {managed(arm + "taints:\n- {key: k8s.io/a, value: c, effect: no-execute}"), nil},
		"a taint twice":            {managed(arm + "taints:\n- {key: a, value: c, effect: no-execute}\n- {key: a, value: d, effect: no-execute}"), []string{"pool.yaml:8:5 error duplicate"}},
		"a taint with two effects": {managed(arm + "taints:\n- {key: a, value: c, effect: no-execute}\n- {key: a, value: d, effect: no-schedule}"), nil},
		"50 taints":                {managed(arm + "taints:\n" + many(50, "- {key: t%, value: c, effect: no-execute}")), nil},
		"51 taints":                {managed(arm + "taints:\n" + many(51, "- {key: t%, value: c, effect: no-execute}")), []string{"pool.yaml:6:3 error too-many-taints"}},
		"a role's ARN":             {managed(arm + "roleName: arn:aws:iam::123456789012:role/nodes"), []string{"pool.yaml:6:13 error bad-name"}},
		"a long role":              {managed(arm + "roleName: " + strings.Repeat("r", 65)), []string{"pool.yaml:6:13 error bad-name"}},
		"a capacity block": {managed(arm + "awsLaunchTemplate:\n  instanceType: p5.48xlarge\n  marketType: CapacityBlock\n  capacityReservationId: cr-00000001"), []string{
			"pool.yaml:8:17 warning capacity-block-nodegroup"}},
		"a hook's name":     {group(strings.Replace(hook("heartbeatTimeout: 30m"), "name: a", "name: a b", 1)), []string{"pool.yaml:7:12 error bad-name"}},
		"a long heartbeat":  {group(hook("heartbeatTimeout: 3h")), []string{"pool.yaml:7:92 warning out-of-range"}},
		"two hours":         {group(hook("heartbeatTimeout: 2h")), nil},
		"a hook's metadata": {group(hook("notificationMetadata: " + strings.Repeat("m", 4001))), []string{"pool.yaml:7:96 error out-of-range"}},
		"51 hooks": {group(byID + "\nlifecycleHooks:\n" + many(51, "- {name: h%, lifecycleTransition: \"autoscaling:EC2_INSTANCE_LAUNCHING\"}")), []string{
			"pool.yaml:6:3 error too-many-hooks"}},
		"a cluster's name": {edit(managed(arm), "cluster.yaml", "eksClusterName: demo", "eksClusterName: de.mo"), []string{"cluster.yaml:13:19 error bad-name"}},
		"a cluster's name in a tag": {edit(group(byID), "cluster.yaml", "eksClusterName: demo", "eksClusterName: "+strings.Repeat("d", 84)), []string{
			"mp.yaml:5:16 error bad-tag"}},
		"a cluster's name in a nodegroup's tag": {edit(managed(arm), "cluster.yaml", "eksClusterName: demo", "eksClusterName: "+strings.Repeat("d", 84)), nil},
		"tags of the template": {managed(arm + "additionalTags:\n" + many(43, "  t%: x") + "awsLaunchTemplate: {instanceType: m5.large}"), []string{
			"pool.yaml:6:3 error too-many-tags"}},
		"tags without a template": {managed(arm + "additionalTags:\n" + many(43, "  t%: x")), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := found(t, tt.tree); !cmp.Equal(tt.want, got) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

// bootstrap is a file with a bootstrap configuration b.
func bootstrap(kind, spec string) string {
	return "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: " + kind + "\nmetadata: {name: b}\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ") + "\n"
}

func TestBootstrapChecks(t *testing.T) {
	ref := func(kind string) string {
		return "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: " + kind + ", name: b}"
	}
	node, eks := bootstrap("NodeadmConfig", "preNodeadmCommands: [a]"), bootstrap("EKSConfig", "useMaxPods: true")
	lookup := func(t string) string {
		return "awsLaunchTemplate: {instanceType: m5.large, ami: {eksLookupType: " + t + "}}"
	}
	tests := map[string]struct {
		tree tree.Map
		want []string
	}{
		"nodeadm on AL2023":         {with(crossTree("AWSMachinePool", "", ref("NodeadmConfig"), lookup("AmazonLinux2023")), "b.yaml", node), nil},
		"nodeadm on AL2":            {with(crossTree("AWSMachinePool", "", ref("NodeadmConfig"), lookup("AmazonLinux")), "b.yaml", node), []string{"mp.yaml:11:85 warning bootstrap-image-mismatch"}},
		"EKSConfig on AL2":          {with(crossTree("AWSMachinePool", "", ref("EKSConfig"), lookup("AmazonLinux")), "b.yaml", eks), nil},
		"EKSConfig on AL2023":       {with(crossTree("AWSMachinePool", "", ref("EKSConfig"), lookup("AmazonLinux2023GPU")), "b.yaml", eks), []string{"mp.yaml:11:85 warning bootstrap-image-mismatch"}},
		"an image of one's own":     {with(crossTree("AWSMachinePool", "", ref("EKSConfig"), byID), "b.yaml", eks), nil},
		"nodeadm on managed AL2023": {with(crossTree("AWSManagedMachinePool", "", ref("NodeadmConfig"), "amiType: AL2023_x86_64_STANDARD\nawsLaunchTemplate: {}"), "b.yaml", node), nil},
		"nodeadm on Bottlerocket": {with(crossTree("AWSManagedMachinePool", "", ref("NodeadmConfig"), "amiType: BOTTLEROCKET_x86_64\nawsLaunchTemplate: {}"), "b.yaml", node), []string{
			"mp.yaml:11:85 error user-data-not-toml"}},
		"nodeadm on managed AL2": {with(crossTree("AWSManagedMachinePool", "", ref("NodeadmConfig"), "amiType: AL2_x86_64\nawsLaunchTemplate: {}"), "b.yaml", node), []string{
			"mp.yaml:11:85 warning bootstrap-image-mismatch"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := found(t, tt.tree); !cmp.Equal(tt.want, got) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestClusterReferences(t *testing.T) {
	missing := edit(group(byID), "mp.yaml", "  clusterName: demo\n  ", "  clusterName: demp\n  ")
	missing = edit(missing, "mp.yaml", "      clusterName: demo", "      clusterName: demp")
	alone := group(byID)
	alone["kustomization.yaml"] = "resources: [mp.yaml, pool.yaml]\n"
	renamed := group(byID)
	renamed["kustomization.yaml"] += "namePrefix: p-\n"
	tests := map[string]struct {
		tree tree.Map
		want []string
		hint string
	}{
		"no cluster at all": {alone, nil, ""},
		"a misspelt name":   {missing, []string{"mp.yaml:5:16 warning cluster-not-in-render"}, `did you mean "demo"?`},
		"a name prefix": {renamed, []string{"cluster.yaml:5:108 warning control-plane-not-in-render", "kustomization.yaml:2:13 error pool-without-machinepool", "mp.yaml:5:16 error reference-not-found", "mp.yaml:12:108 error reference-not-found"},
			"nameReference"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, r := found(t, tt.tree)
			if !cmp.Equal(tt.want, got) {
				t.Fatalf("(-want +got):\n%s", cmp.Diff(tt.want, got))
			}
			for _, d := range r.Diags {
				if d.Object == "MachinePool default/web" && d.Field == "spec.clusterName" && !strings.Contains(d.Detail, tt.hint) {
					t.Errorf("no %q in %v", tt.hint, d)
				}
			}
		})
	}
}

// TestLargeUserDataNamesItsParts checks that sizes and places are told, and
// nothing of the content.
func TestLargeUserDataNamesItsParts(t *testing.T) {
	content := strings.Repeat("secretive", 2000)
	config := bootstrap("NodeadmConfig", "preNodeadmCommands: [abc]\nfiles:\n- {path: /a, content: small}\n- {path: /b, content: "+content+"}")
	_, r := found(t, with(crossTree("AWSManagedMachinePool", "", "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: NodeadmConfig, name: b}",
		"amiType: AL2023_x86_64_STANDARD\nawsLaunchTemplate: {}"), "b.yaml", config))
	diags := slices.DeleteFunc(slices.Clone(r.Diags), func(d diag.Diagnostic) bool { return d.Code == "older-field" })
	if len(diags) != 1 {
		t.Fatalf("%d findings: %v", len(diags), diags)
	}
	d := diags[0]
	if d.Code != "user-data-too-large" || d.File != "b.yaml" || !strings.Contains(d.Detail, "spec.files[1].content with 18000 bytes, spec.files[0].content with 5 bytes, spec.preNodeadmCommands with 3 bytes") {
		t.Errorf("%s: %s", d, d.Detail)
	}
	if len(d.Related) != 3 || d.Related[0].Line != 8 || d.Related[1].Line != 7 || d.Related[2].Line != 5 {
		t.Errorf("related: %v", d.Related)
	}
	if strings.Contains(fmt.Sprint(d, d.Detail, d.Related), "secretive") {
		t.Error("the content is told")
	}
}

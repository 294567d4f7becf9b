package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// TestBootstrapNotUsedIsSaidWhereItIsSo tries all templates, images and boot methods of pools: machines get the data, or weir warns that they do not,
// never both, and never about data that is not there. Following the warning's advice gives machines the data.
func TestBootstrapNotUsedIsSaidWhereItIsSo(t *testing.T) {
	const ownKey = "annotations: {node.k8s.aws/launch-template-name: golden}"
	kubeadm := "apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: b}\nspec: {joinConfiguration: {discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: e, unsafeSkipCAVerification: true}}}}"
	config := func(kind, version, spec string) string {
		return "apiVersion: bootstrap.cluster.x-k8s.io/" + version + "\nkind: " + kind + "\nmetadata: {name: b}\nspec: " + spec
	}
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {value: \"" + value + "\"}"
	}
	const mime = `Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--x--\n`
	type boot struct {
		ref, doc string
		// nothing says that no data is asked for.
		nothing bool
	}
	ref := func(kind string) string { return "configRef: {kind: " + kind + ", name: b}" }
	boots := map[string]boot{
		"none":           {`dataSecretName: ""`, "", true},
		"MIME":           {"dataSecretName: b", secret(mime), false},
		"TOML":           {"dataSecretName: b", secret(`[settings]\na = 1\n`), false},
		"PowerShell":     {"dataSecretName: b", secret("<powershell>x</powershell>"), false},
		"script":         {"dataSecretName: b", secret(`#!/bin/sh\n`), false},
		"absent":         {"dataSecretName: gone", "", false},
		"Kubeadm":        {ref("KubeadmConfig"), kubeadm, false},
		"EKS":            {ref("EKSConfig"), config("EKSConfig", "v1beta2", "{kubeletExtraArgs: {v: '2'}}"), false},
		"EKS empty":      {ref("EKSConfig"), config("EKSConfig", "v1beta2", "{}"), true},
		"Nodeadm":        {ref("NodeadmConfig"), config("NodeadmConfig", "v1beta2", "{kubelet: {flags: ['--v=2']}}"), false},
		"Nodeadm empty":  {ref("NodeadmConfig"), config("NodeadmConfig", "v1beta2", "{}"), true},
		"exported":       {ref("NodeadmConfig") + ", dataSecretName: web-x", config("NodeadmConfig", "v1beta2", "{kubelet: {flags: ['--v=2']}}"), false},
		"exported empty": {ref("NodeadmConfig") + ", dataSecretName: web-x", config("NodeadmConfig", "v1beta2", "{}"), true},
	}
	pools := map[string]struct{ kind, pool, options string }{
		"group":             {"AWSMachinePool", groupPool("minSize: 1\nmaxSize: 1\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"), ""},
		"group, own":        {"AWSMachinePool", keyed(groupPool("minSize: 1\nmaxSize: 1\nmixedInstancesPolicy: {overrides: [{instanceType: m5.large}]}"), ownKey), ""},
		"managed, own":      {"AWSManagedMachinePool", keyed(managedPool("amiType: CUSTOM\ninstanceType: m5.large"), ownKey), ""},
		"managed, an image": {"AWSManagedMachinePool", managedPool("awsLaunchTemplate: {ami: {id: ami-00000001}}"), ""},
		"managed, CUSTOM":   {"AWSManagedMachinePool", managedPool("amiType: CUSTOM\nawsLaunchTemplate: {ami: {id: ami-00000001}}"), ""},
	}
	for _, amiType := range []string{"AL2_x86_64", "AL2023_x86_64_STANDARD", "BOTTLEROCKET_x86_64", "WINDOWS_CORE_2022_x86_64"} {
		for name, spec := range map[string]string{"bare": "", "template": "\nawsLaunchTemplate: {}"} {
			pools[amiType+", "+name] = struct{ kind, pool, options string }{"AWSManagedMachinePool", managedPool("amiType: " + amiType + spec), ""}
		}
		pools[amiType+", options"] = struct{ kind, pool, options string }{"AWSManagedMachinePool", managedPool("amiType: " + amiType), options("o", "AWSManagedMachinePool", "launchTemplate: {ebsOptimized: true}")}
	}
	render := func(pool string, kind, options string, b boot) (errors []string, carried bool, notUsed []kinds.Fault) {
		docs := []string{machinePool(kind, "", "version: v1.31.0\nbootstrap: {"+b.ref+"}"), pool, eksCluster}
		for _, d := range []string{b.doc, options} {
			if d != "" {
				docs = append(docs, d)
			}
		}
		set, faults := manifest.Intents(objects(t, stream(docs...)), manifest.Options{})
		for _, f := range faults {
			if f.Code == "bootstrap-not-used" {
				notUsed = append(notUsed, f)
			}
		}
		errors = briefly(faults, diag.Error)
		if len(set.Pools) == 1 {
			p := set.Pools[0]
			carried = p.LaunchTemplate != nil && (p.LaunchTemplate.UserData.Text != "" || len(p.Blocked) > 0)
		}
		return errors, carried, notUsed
	}
	outcomes := map[string]int{}
	for pool, p := range pools {
		for name, b := range boots {
			errors, carried, notUsed := render(p.pool, p.kind, p.options, b)
			outcomes[fmt.Sprint(len(errors) > 0, carried, len(notUsed) > 0)]++
			if len(errors) > 0 {
				if len(notUsed) > 0 {
					t.Errorf("%s with %s: refused and not used: %v %v", pool, name, errors, notUsed)
				}
				continue
			}
			if said := len(notUsed) > 0; said == (carried || b.nothing) {
				t.Errorf("%s with %s: carried %v, nothing %v, said %v", pool, name, carried, b.nothing, notUsed)
			}
			if len(notUsed) == 0 {
				continue
			}
			advised := ""
			switch detail := notUsed[0].Detail; {
			case strings.Contains(detail, "awsLaunchTemplate: {}"):
				advised = strings.Replace(p.pool, "\nspec:\n", "\nspec:\n  awsLaunchTemplate: {}\n", 1)
			case strings.Contains(detail, "amiType: CUSTOM"):
				advised = managedPool("amiType: CUSTOM\nawsLaunchTemplate: {ami: {id: ami-00000001}}")
			default:
				continue
			}
			if errors, carried, _ := render(advised, p.kind, p.options, b); len(errors) > 0 || !carried {
				t.Errorf("%s with %s: the advice %q leads to %v", pool, name, notUsed[0].Detail, errors)
			}
		}
	}
	for _, o := range []string{"true false false", "false true false", "false false true", "false false false"} {
		if outcomes[o] == 0 {
			t.Errorf("no combination is %s: %v", o, outcomes)
		}
	}
}

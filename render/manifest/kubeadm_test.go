package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest"
)

// kubeadmPool is a group pool that joins with a KubeadmConfig of the given spec
// and version of the format; both are of one namespace and complete otherwise.
func kubeadmPool(version, spec string) string {
	const join = "joinConfiguration: {discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: e, unsafeSkipCAVerification: true}}}"
	if !strings.Contains(spec, "joinConfiguration") {
		spec = join + "\n" + spec
	}
	return stream(machinePool("AWSMachinePool", "", "bootstrap: {configRef: {kind: KubeadmConfig, name: b}}\nversion: v1.31.0"),
		groupPool("minSize: 1\nmaxSize: 1\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"),
		"apiVersion: bootstrap.cluster.x-k8s.io/"+version+"\nkind: KubeadmConfig\nmetadata: {name: b}\nspec:\n  "+indent(2, spec))
}

func TestKubeadmRules(t *testing.T) {
	const exec = "user: {exec: {command: /bin/x}}"
	file := func(kubeConfig string) string {
		return "joinConfiguration: {discovery: {tlsBootstrapToken: a, file: {kubeConfigPath: /x, kubeConfig: {" + kubeConfig + "}}}}"
	}
	tests := map[string]struct {
		version, spec    string
		errors, warnings []string
	}{
		"layout in v1beta1":            {"v1beta1", "diskSetup: {partitions: [{device: /dev/x, layout: true}]}", nil, nil},
		"no layout in v1beta1":         {"v1beta1", "diskSetup: {partitions: [{device: /dev/x}]}", []string{"missing-required spec.diskSetup.partitions[0].layout"}, nil},
		"diskLayout in v1beta2":        {"v1beta2", "diskSetup: {partitions: [{device: /dev/x, diskLayout: [{percentage: 50, partitionType: LinuxSwap}, {percentage: 50, partitionType: 0FC63DAF-8483-4772-8E79-3D69D8477DE4}]}]}", nil, nil},
		"both in v1beta2":              {"v1beta2", "diskSetup: {partitions: [{device: /dev/x, layout: true, diskLayout: [{percentage: 50}]}]}", []string{"exclusive spec.diskSetup.partitions[0]"}, nil},
		"neither in v1beta2":           {"v1beta2", "diskSetup: {partitions: [{device: /dev/x}]}", []string{"missing-required spec.diskSetup.partitions[0]"}, nil},
		"more than the disk":           {"v1beta2", "diskSetup: {partitions: [{device: /dev/x, diskLayout: [{percentage: 50}, {percentage: 51}]}]}", []string{"out-of-range spec.diskSetup.partitions[0].diskLayout"}, nil},
		"an unknown partition":         {"v1beta2", "diskSetup: {partitions: [{device: /dev/x, diskLayout: [{percentage: 5, partitionType: Swap}]}]}", []string{"bad-value spec.diskSetup.partitions[0].diskLayout[0].partitionType"}, nil},
		"a file twice":                 {"v1beta1", "files: [{path: /a}, {path: /a}]", []string{"duplicate spec.files[1].path"}, nil},
		"Ignition without its format":  {"v1beta1", "ignition: {}", []string{"mismatch spec.ignition"}, nil},
		"file discovery":               {"v1beta2", file("cluster: {server: https://e, certificateAuthorityData: Q0E=}, " + exec), nil, nil},
		"file discovery, no CA wanted": {"v1beta1", file("cluster: {server: https://e, insecureSkipTLSVerify: true}, " + exec), nil, nil},
		"file discovery, no CA":        {"v1beta1", file("cluster: {server: https://e}, " + exec), nil, []string{"kubeadm-join-incomplete spec.joinConfiguration.discovery.file.kubeConfig"}},
		"file discovery, no base64":    {"v1beta1", file("cluster: {server: https://e, certificateAuthorityData: '?'}, " + exec), []string{"bad-value spec.joinConfiguration.discovery.file.kubeConfig.cluster.certificateAuthorityData"}, nil},
		"file discovery by nobody":     {"v1beta1", file("cluster: {server: https://e, certificateAuthorityData: Q0E=}, user: {}"), []string{"exclusive spec.joinConfiguration.discovery.file.kubeConfig.user"}, nil},
		"file discovery by two":        {"v1beta1", file("cluster: {server: https://e, certificateAuthorityData: Q0E=}, user: {exec: {command: x}, authProvider: {name: a}}"), []string{"exclusive spec.joinConfiguration.discovery.file.kubeConfig.user"}, nil},
		"an inactive user":             {"v1beta1", "users: [{name: a, inactive: true}]", nil, []string{"not-carried spec.users[0].inactive"}},
		"an inactive user in Ignition": {"v1beta1", "format: ignition\nusers: [{name: a, inactive: true}]", []string{"ignition-config spec.users[0].inactive"}, nil},
		"the given-up script":          {"v1beta1", "useExperimentalRetryJoin: true", nil, []string{"not-carried spec.useExperimentalRetryJoin"}},
		"the given-up script, v1beta2": {"v1beta2", "useExperimentalRetryJoin: true", []string{"unknown-field spec.useExperimentalRetryJoin"}, nil},
		"for a control plane":          {"v1beta1", "clusterConfiguration: {}\ninitConfiguration: {}", nil, []string{"not-carried spec.clusterConfiguration", "not-carried spec.initConfiguration"}},
		"jinja that nothing expands":   {"v1beta1", "format: ignition\njoinConfiguration: {nodeRegistration: {name: '{{ ds.x }}'}, discovery: {bootstrapToken: {token: a.b, apiServerEndpoint: e, unsafeSkipCAVerification: true}}}", nil, []string{"user-data-jinja spec.joinConfiguration.nodeRegistration.name"}},
		"a list of arguments, v1beta1": {"v1beta1", "joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: v, value: '2'}]}}", []string{"wrong-type spec.joinConfiguration.nodeRegistration.kubeletExtraArgs"}, nil},
		"a map of arguments, v1beta2":  {"v1beta2", "joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {v: '2'}}}", []string{"wrong-type spec.joinConfiguration.nodeRegistration.kubeletExtraArgs"}, nil},
		"a proxy of an older Ignition": {"v1beta1", "format: ignition", nil, nil},
		"a warning of the transpiler":  {"v1beta1", "format: ignition\nignition: {containerLinuxConfig: {additionalConfig: 'storage: {file: []}'}}", nil, []string{"ignition-config spec.ignition.containerLinuxConfig.additionalConfig"}},
		"strictly":                     {"v1beta1", "format: ignition\nignition: {containerLinuxConfig: {strict: true, additionalConfig: 'storage: {file: []}'}}", []string{"ignition-config spec.ignition.containerLinuxConfig.additionalConfig"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, kubeadmPool(tt.version, tt.spec)), manifest.Options{})
			if d := cmp.Diff(tt.errors, briefly(faults, diag.Error)); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			var warnings []string
			for _, w := range briefly(faults, diag.Warning) {
				if !strings.HasPrefix(w, "reference-not-in-render ") {
					warnings = append(warnings, w)
				}
			}
			if d := cmp.Diff(tt.warnings, warnings); d != "" {
				t.Errorf("warnings (-want +got):\n%s", d)
			}
		})
	}
}

func TestReaderOfUserData(t *testing.T) {
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {value: '" + value + "'}"
	}
	lookup := func(name string) string {
		return groupPool("minSize: 1\nmaxSize: 1\nawsLaunchTemplate: {instanceType: m5.large, imageLookupOrg: '1', imageLookupFormat: '" + name + "'}")
	}
	managed := func(amiType string) string { return managedPool("amiType: " + amiType + "\nawsLaunchTemplate: {}") }
	const mime = "Content-Type: multipart/mixed; boundary=x\n\n\n--x\n\n\na\n\n--x--\n\n"
	kubeadm := strings.SplitN(kubeadmPool("v1beta1", "format: cloud-config"), "\n---\n", 3)
	ignition := strings.SplitN(kubeadmPool("v1beta1", "format: ignition"), "\n---\n", 3)
	bySecret := func(kind string) string {
		return machinePool(kind, "", "bootstrap: {dataSecretName: s}\nversion: v1.31.0")
	}
	tests := map[string]struct {
		docs []string
		want []string
	}{
		"PowerShell for Windows":     {[]string{bySecret("AWSManagedMachinePool"), managed("WINDOWS_CORE_2022_x86_64"), eksCluster, secret("<powershell>")}, nil},
		"MIME for Windows":           {[]string{bySecret("AWSManagedMachinePool"), managed("WINDOWS_CORE_2022_x86_64"), eksCluster, secret(mime)}, []string{"bootstrap-image-mismatch spec.template.spec.bootstrap"}},
		"broken MIME":                {[]string{bySecret("AWSMachinePool"), lookup("capa-ubuntu-24"), secret("MIME-Version: 1.0\n\n\nx")}, []string{"user-data-mime spec.template.spec.bootstrap.dataSecretName"}},
		"MIME for Amazon Linux":      {[]string{bySecret("AWSManagedMachinePool"), managed("AL2023_x86_64_STANDARD"), eksCluster, secret(mime)}, nil},
		"cloud-config for Ubuntu":    {[]string{kubeadm[0], lookup("capa-ubuntu-24"), kubeadm[2]}, nil},
		"cloud-config for Flatcar":   {[]string{kubeadm[0], lookup("capa-flatcar-stable"), kubeadm[2]}, []string{"bootstrap-image-mismatch spec.template.spec.bootstrap"}},
		"Ignition for Flatcar":       {[]string{ignition[0], lookup("capa-flatcar-stable"), ignition[2]}, nil},
		"Ignition for Ubuntu":        {[]string{ignition[0], lookup("capa-ubuntu-24"), ignition[2]}, []string{"bootstrap-image-mismatch spec.template.spec.bootstrap"}},
		"cloud-config, Bottlerocket": {[]string{kubeadm[0], lookup("bottlerocket-x"), kubeadm[2]}, []string{"bootstrap-image-mismatch spec.template.spec.bootstrap"}},
		"an argument with a space":   {[]string{machinePool("AWSMachinePool", "", "bootstrap: {configRef: {kind: EKSConfig, name: b}}"), groupPool("minSize: 1\nmaxSize: 1\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"), eksCluster, "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: EKSConfig\nmetadata: {name: b}\nspec: {kubeletExtraArgs: {a: b c, d: e}}"}, []string{"kubelet-argument spec.kubeletExtraArgs.a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, stream(tt.docs...)), manifest.Options{})
			var got []string
			for _, w := range briefly(faults, diag.Warning) {
				if !strings.HasPrefix(w, "reference-not-in-render ") && !strings.HasPrefix(w, "control-plane-not-in-render ") {
					got = append(got, w)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s\n%v", d, briefly(faults, diag.Error))
			}
		})
	}
}

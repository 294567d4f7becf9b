package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest"
)

// TestVolumesThatEC2Refuses has the limits of each volume type: what is just allowed gives
// no error, and what is beyond gives one at the field.
func TestVolumesThatEC2Refuses(t *testing.T) {
	tests := map[string]string{
		"{size: 8}":                                             "",
		"{size: 100, type: gp9}":                                "bad-enum type",
		"{size: 100, type: gp2, iops: 3000}":                    "exclusive iops",
		"{size: 16385, type: gp2}":                              "out-of-range size",
		"{size: 8, type: gp3, iops: 2999}":                      "out-of-range iops",
		"{size: 8, type: gp3, iops: 4000}":                      "",
		"{size: 8, type: gp3, iops: 4001}":                      "out-of-range iops",
		"{size: 65536, type: gp3, iops: 80000}":                 "",
		"{size: 65536, type: gp3, iops: 80001}":                 "out-of-range iops",
		"{size: 8, type: gp3, throughput: 750}":                 "",
		"{size: 8, type: gp3, throughput: 751}":                 "out-of-range throughput",
		"{size: 8, type: gp3, throughput: 124}":                 "out-of-range throughput",
		"{size: 100, type: gp3, iops: 8000, throughput: 2000}":  "",
		"{size: 100, type: gp3, iops: 9000, throughput: 2001}":  "out-of-range throughput",
		"{size: 100, type: gp2, throughput: 125}":               "exclusive throughput",
		"{size: 100, type: io1}":                                "missing-required iops",
		"{size: 100, type: io1, iops: 99}":                      "out-of-range iops",
		"{size: 100, type: io1, iops: 5000}":                    "",
		"{size: 100, type: io1, iops: 5001}":                    "out-of-range iops",
		"{size: 16384, type: io1, iops: 64001}":                 "out-of-range iops",
		"{size: 100, type: io2, iops: 100000}":                  "",
		"{size: 100, type: io2, iops: 100001}":                  "out-of-range iops",
		"{size: 65536, type: io2, iops: 256001}":                "out-of-range iops",
		"{size: 125, type: st1, iops: 100}":                     "exclusive iops",
		"{size: 124, type: sc1}":                                "out-of-range size",
		"{size: 1025, type: standard}":                          "out-of-range size",
		"{size: 100, encrypted: false, encryptionKey: alias/k}": "exclusive encrypted",
		"{size: 100, encrypted: true, encryptionKey: k}":        "bad-id encryptionKey",
		"{size: 100, encryptionKey: \"arn:aws:kms:eu-west-1:000000000000:key/11111111-2222-3333-4444-555555555555\"}": "",
		"{size: 100, encryptionKey: 11111111-2222-3333-4444-555555555555}":                                            "",
		"{size: 100, encryptionKey: mrk-0123456789abcdef0123456789abcdef}":                                            "",
	}
	for volume, want := range tests {
		for place, spec := range map[string]string{
			"awsLaunchTemplate.rootVolume":        "rootVolume: " + volume,
			"awsLaunchTemplate.nonRootVolumes[0]": "nonRootVolumes: [{deviceName: /dev/sdb, " + volume[1:] + "]",
		} {
			t.Run(place+" "+volume, func(t *testing.T) {
				_, faults := manifest.Intents(objects(t, stream(machinePool("AWSMachinePool", "", noBootstrap),
					groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, "+spec+"}"))), manifest.Options{})
				var wanted []string
				if code, field, some := strings.Cut(want, " "); some {
					wanted = []string{code + " spec." + place + "." + field}
				}
				if strings.Contains(volume, "st1") || strings.Contains(volume, "sc1") {
					if place == "awsLaunchTemplate.rootVolume" {
						wanted = append(wanted, "not-allowed spec.awsLaunchTemplate.rootVolume.type")
					}
				}
				if d := cmp.Diff(wanted, briefly(faults, diag.Error)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
		}
	}
}

// TestIDsThatEC2CallsMalformed writes an id of another form into every field that takes one.
func TestIDsThatEC2CallsMalformed(t *testing.T) {
	group := func(spec string) []string {
		return []string{machinePool("AWSMachinePool", "", noBootstrap), groupPool(spec)}
	}
	launch := func(spec string) []string {
		return group("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, " + spec + "}")
	}
	with := func(spec string) []string {
		return append(launch("imageLookupOrg: x"), options("o", "AWSMachinePool", spec))
	}
	nodes := func(spec string) []string {
		return []string{machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool("amiType: AL2023_x86_64_STANDARD\n" + spec), eksCluster}
	}
	network := func(spec string) []string {
		return []string{strings.Replace(eksCluster, "spec: {version: v1.31.0}", "spec: {version: v1.31.0, network: {"+spec+"}}", 1)}
	}
	const fleet = "autoScalingGroup: "
	tests := map[string]struct {
		docs func(string) []string
		spec string // with @ in place of the id
		good string
		at   string
	}{
		"image":               {group, "awsLaunchTemplate: {instanceType: m5.large, ami: {id: '@'}}", "ami-", "spec.awsLaunchTemplate.ami.id"},
		"subnets":             {group, "subnets: [{id: '@'}]\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}", "subnet-", "spec.subnets[0].id"},
		"security groups":     {launch, "additionalSecurityGroups: [{id: '@'}]", "sg-", "spec.awsLaunchTemplate.additionalSecurityGroups[0].id"},
		"reservation":         {launch, "capacityReservationId: '@'", "cr-", "spec.awsLaunchTemplate.capacityReservationId"},
		"nodegroup's subnets": {nodes, "subnetIDs: ['@']", "subnet-", "spec.subnetIDs[0]"},
		"remote access":       {nodes, "remoteAccess: {sourceSecurityGroups: ['@']}", "sg-", "spec.remoteAccess.sourceSecurityGroups[0]"},
		"nodegroup's groups":  {nodes, "awsLaunchTemplate: {additionalSecurityGroups: [{id: '@'}]}", "sg-", "spec.awsLaunchTemplate.additionalSecurityGroups[0].id"},
		"VPC":                 {network, "vpc: {id: '@'}", "vpc-", "spec.network.vpc.id"},
		"cluster's subnets":   {network, "subnets: [{id: a, resourceID: '@'}]", "subnet-", "spec.network.subnets[0].resourceID"},
		"overrides":           {network, "securityGroupOverrides: {node: '@'}", "sg-", "spec.network.securityGroupOverrides.node"},
		"reservations":        {with, fleet + "{capacityReservationSpecification: {capacityReservationPreference: capacity-reservations-only, capacityReservationTarget: {capacityReservationIds: ['@']}}}", "cr-", "spec.autoScalingGroup.capacityReservationSpecification.capacityReservationTarget.capacityReservationIds[0]"},
		"override's image":    {with, fleet + "{mixedInstancesPolicy: {overrides: [{instanceType: m5.large, imageId: '@'}]}}", "ami-", "spec.autoScalingGroup.mixedInstancesPolicy.overrides[0].imageId"},
		"override's template": {with, fleet + "{mixedInstancesPolicy: {overrides: [{instanceType: m5.large, launchTemplateSpecification: {launchTemplateId: '@', version: '1'}}]}}", "lt-", "spec.autoScalingGroup.mixedInstancesPolicy.overrides[0].launchTemplateSpecification.launchTemplateId"},
		"placement group":     {with, "launchTemplate: {placement: {groupId: '@'}}", "pg-", "spec.launchTemplate.placement.groupId"},
		"host":                {with, "launchTemplate: {placement: {hostId: '@', tenancy: host}}", "h-", "spec.launchTemplate.placement.hostId"},
		"interface's subnet":  {with, "launchTemplate: {networkInterfaces: [{deviceIndex: 0, subnetId: '@'}]}", "subnet-", "spec.launchTemplate.networkInterfaces[0].subnetId"},
		"interface's groups":  {with, "launchTemplate: {networkInterfaces: [{deviceIndex: 0, groups: ['@']}]}", "sg-", "spec.launchTemplate.networkInterfaces[0].groups[0]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, bad := range []string{"x", "1", "0123456g", "0123456789ABCDEF0", "0123456789abcdef01"} {
				_, faults := manifest.Intents(objects(t, stream(tt.docs(strings.ReplaceAll(tt.spec, "@", tt.good+bad))...)), manifest.Options{})
				if d := cmp.Diff([]string{"bad-id " + tt.at}, briefly(faults, diag.Error)); d != "" {
					t.Errorf("%s%s (-want +got):\n%s", tt.good, bad, d)
				}
			}
			for _, good := range []string{"01234567", "0123456789abcdef0"} {
				_, faults := manifest.Intents(objects(t, stream(tt.docs(strings.ReplaceAll(tt.spec, "@", tt.good+good))...)), manifest.Options{})
				if got := briefly(faults, diag.Error); got != nil {
					t.Errorf("%s%s: errors %v", tt.good, good, got)
				}
			}
		})
	}
}

// TestNodegroupsThatEKSRefuses has what EKS answers with an error although every field by
// itself has the right form, and beside each what it takes.
func TestNodegroupsThatEKSRefuses(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  value: |\n    "
	const mime = "Content-Type: multipart/mixed; boundary=x\n    \n    --x\n    Content-Type: text/x-shellscript\n    \n    #!/bin/sh\n    --x--\n"
	const al2023, rocket = "amiType: AL2023_x86_64_STANDARD\n", "amiType: BOTTLEROCKET_x86_64\n"
	tests := map[string]struct {
		spec string
		data string
		want []string // errors
		warn []string
	}{
		"a disk as large as the image":     {spec: al2023 + "diskSize: 20"},
		"a disk smaller than the image":    {spec: al2023 + "diskSize: 19", want: []string{"volume-smaller-than-image spec.diskSize"}},
		"a disk for Amazon Linux 2":        {spec: "diskSize: 10"},
		"a root volume that is too small":  {spec: al2023 + "awsLaunchTemplate: {rootVolume: {size: 10}}", want: []string{"volume-smaller-than-image spec.awsLaunchTemplate.rootVolume.size"}},
		"a root volume by its device":      {spec: al2023 + "awsLaunchTemplate: {nonRootVolumes: [{deviceName: /dev/xvda, size: 10}]}", want: []string{"volume-smaller-than-image spec.awsLaunchTemplate.nonRootVolumes[0].size"}},
		"the root device twice":            {spec: al2023 + "awsLaunchTemplate: {rootVolume: {size: 50}, nonRootVolumes: [{deviceName: /dev/xvda, size: 60}]}", want: []string{"duplicate spec.awsLaunchTemplate.nonRootVolumes[0].deviceName"}},
		"Windows":                          {spec: "amiType: WINDOWS_CORE_2022_x86_64\ndiskSize: 30", want: []string{"volume-smaller-than-image spec.diskSize"}},
		"an image of one's own":            {spec: "amiType: CUSTOM\nawsLaunchTemplate: {ami: {id: ami-00000001}, rootVolume: {size: 10}}"},
		"the OS volume of Bottlerocket":    {spec: rocket + "awsLaunchTemplate: {rootVolume: {size: 100}}", warn: []string{"os-volume spec.awsLaunchTemplate.rootVolume.size"}},
		"both volumes of Bottlerocket":     {spec: rocket + "awsLaunchTemplate: {rootVolume: {size: 10}, nonRootVolumes: [{deviceName: /dev/xvdb, size: 100}]}"},
		"the data volume of Bottlerocket":  {spec: rocket + "awsLaunchTemplate: {nonRootVolumes: [{deviceName: /dev/xvdb, size: 100}]}"},
		"a small data volume":              {spec: rocket + "diskSize: 10", warn: []string{"volume-smaller-than-image spec.diskSize"}},
		"a release":                        {spec: al2023 + "amiVersion: 1.31.2-20251112"},
		"a release for another version":    {spec: al2023 + "amiVersion: 1.30.2-20251112", want: []string{"bad-release spec.amiVersion"}},
		"a release that is none":           {spec: al2023 + "amiVersion: latest", want: []string{"bad-release spec.amiVersion"}},
		"a release of no day":              {spec: al2023 + "amiVersion: 1.31.2-20251312", want: []string{"bad-release spec.amiVersion"}},
		"a release of Bottlerocket":        {spec: rocket + "amiVersion: 1.50.0-4f3d1c2b"},
		"Windows's for Bottlerocket":       {spec: rocket + "amiVersion: 1.31-2025.11.12", want: []string{"bad-release spec.amiVersion"}},
		"a release of Windows":             {spec: "amiType: WINDOWS_CORE_2022_x86_64\namiVersion: 1.31-2025.11.12"},
		"a label that EKS keeps":           {spec: al2023 + "labels: {node-role.kubernetes.io/worker: x}", want: []string{"reserved-label spec.labels[\"node-role.kubernetes.io/worker\"]"}},
		"a label that the kubelet may set": {spec: al2023 + "labels: {node.kubernetes.io/role: x}"},
		"a taint with a prefix":            {spec: al2023 + "taints: [{key: node-role.kubernetes.io/gpu, value: x, effect: no-schedule}]"},
		"MIME":                             {spec: al2023 + "awsLaunchTemplate: {}", data: secret + mime},
		"MIME that is broken":              {spec: al2023 + "awsLaunchTemplate: {}", data: secret + strings.Replace(mime, "--x--", "", 1), want: []string{"user-data-mime spec.template.spec.bootstrap.dataSecretName"}},
		"TOML":                             {spec: rocket + "awsLaunchTemplate: {}", data: secret + "[settings.kubernetes]\n    max-pods = 50\n"},
		"TOML that is broken":              {spec: rocket + "awsLaunchTemplate: {}", data: secret + "[settings.kubernetes\n    max-pods = 50\n", want: []string{"user-data-not-toml spec.template.spec.bootstrap.dataSecretName"}},
		"a script for Bottlerocket":        {spec: rocket + "awsLaunchTemplate: {}", data: secret + "#!/bin/sh\n    echo hi\n", want: []string{"user-data-not-toml spec.template.spec.bootstrap.dataSecretName"}},
		"MIME for Bottlerocket":            {spec: rocket + "awsLaunchTemplate: {}", data: secret + mime, want: []string{"user-data-not-toml spec.template.spec.bootstrap.dataSecretName"}},
		"a role's policies":                {spec: al2023 + "roleAdditionalPolicies: ['arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore']\nrolePath: /nodes/\nrolePermissionsBoundary: 'arn:aws:iam::000000000000:policy/b'"},
		"policies that are none":           {spec: al2023 + "roleAdditionalPolicies: [AmazonSSMManagedInstanceCore]\nrolePath: nodes\nrolePermissionsBoundary: b", want: []string{"bad-value spec.roleAdditionalPolicies[0]", "bad-value spec.rolePath", "bad-value spec.rolePermissionsBoundary"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			boot := noBootstrap
			if tt.data != "" {
				boot = "bootstrap: {dataSecretName: s}"
			}
			_, faults := manifest.Intents(objects(t, stream(machinePool("AWSManagedMachinePool", "", "version: v1.31.0\n"+boot), managedPool(tt.spec), eksCluster, tt.data)), manifest.Options{})
			if d := cmp.Diff(tt.want, briefly(faults, diag.Error)); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			var warned []string
			for _, w := range briefly(faults, diag.Warning) {
				if strings.HasPrefix(w, "os-volume") || strings.HasPrefix(w, "volume-") {
					warned = append(warned, w)
				}
			}
			if d := cmp.Diff(tt.warn, warned); d != "" {
				t.Errorf("warnings (-want +got):\n%s", d)
			}
		})
	}
}

// TestPricesThatAWSRefuses has the price in both places where it can be written.
func TestPricesThatAWSRefuses(t *testing.T) {
	for price, good := range map[string]bool{"0.05": true, "0.001": true, "0": false, "0.000": false, "-1": false, "cheap": false, "1e3": false} {
		_, faults := manifest.Intents(objects(t, stream(machinePool("AWSMachinePool", "", noBootstrap),
			groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, spotMarketOptions: {maxPrice: \""+price+"\"}}"))), manifest.Options{})
		if got := briefly(faults, diag.Error); (len(got) == 0) != good {
			t.Errorf("maxPrice %q: errors %v", price, got)
		}
		_, faults = manifest.Intents(objects(t, stream(machinePool("AWSMachinePool", "", noBootstrap), groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}\nmixedInstancesPolicy: {overrides: [{instanceType: m5.large}]}"),
			options("o", "AWSMachinePool", "autoScalingGroup: {mixedInstancesPolicy: {instancesDistribution: {spotMaxPrice: \""+price+"\"}}}"))), manifest.Options{})
		if got := briefly(faults, diag.Error); (len(got) == 0) != good {
			t.Errorf("spotMaxPrice %q: errors %v", price, got)
		}
	}
}

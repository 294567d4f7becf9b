package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/slot"
)

// rocket is a nodegroup that reads TOML from a Secret, whose text is @.
const rocket = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: demo}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: AWSManagedControlPlane
metadata: {name: demo}
spec: {version: v1.33.0}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSManagedMachinePool, name: web}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSManagedMachinePool
metadata: {name: web}
spec:
  amiType: BOTTLEROCKET_x86_64
  awsLaunchTemplate: {instanceType: m5.large}
---
apiVersion: v1
kind: Secret
metadata: {name: boot}
stringData:
  value: |
    @
`

// TestTheFormOfUserDataAnswersNoQuestions has a secret put into a text whose form depends on
// how the secret begins, how large a number it is, or whether it is in a list.
func TestTheFormOfUserDataAnswersNoQuestions(t *testing.T) {
	var list strings.Builder
	for _, guess := range []string{"hunter1", "hunter2", "hunter3"} {
		list.WriteString(guess + " = 1\n    ")
	}
	for name, text := range map[string]string{
		"a number":            "a = 9223372036${PW}00000",
		"an exponent":         "a = 1e30${PW}",
		"a first letter":      `a = "\${PW}"`,
		"a hexadecimal digit": `a = "\uD${PW}000"`,
		"a list":              list.String() + "${PW} = 2",
		"a length":            "a = !\n    # ${PW}" + strings.Repeat("0", 16<<10-60),
		"lines":               "a = '${PW}'",
		"MIME":                "Content-Type: multipart/mixed; boundary=x${PW}\n    \n    --xhunter2\n    Content-Type: text/x-shellscript\n    \n    #!/bin/sh\n    --xhunter2--",
		"a file twice": `---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: k}
spec:
  files: [{path: /hunter1, content: a}, {path: /hunter2, content: a}, {path: "/${PW}", content: b}]
  joinConfiguration: {discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "10.0.0.1:6443", unsafeSkipCAVerification: true}}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(secret string) string {
				pool := strings.Replace(rocket, "@", text, 1)
				switch name {
				case "MIME":
					pool = strings.Replace(pool, "BOTTLEROCKET_x86_64", "AL2023_x86_64_STANDARD", 1)
				case "a file twice":
					pool = strings.Replace(attackPool, `dataSecretName: ""`, "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: k}", 1) + text
				}
				o := Options{Vars: map[string]string{"PW": secret}, SecretVars: []string{"PW"}, For: slot.Caller{Class: slot.Proposed}}
				return shownOf(t, rendered(t, map[string]string{"pool.yaml": pool, "kustomization.yaml": "resources: [pool.yaml]\n"}, o))
			}
			want := answer("hunter2")
			if strings.Contains(want, `"Pools": null`) {
				t.Errorf("the pool is not planned:\n%s", want)
			}
			for _, secret := range []string{"8000", "9000", "8", "btn", "7ff", "9ff", "u0041", "hunter9", strings.Repeat("long", 30), "a\nb"} {
				if got := answer(secret); got != want {
					t.Errorf("hunter2 and %q differ:\n%s", secret, cmp.Diff(want, got))
				}
			}
		})
	}
}

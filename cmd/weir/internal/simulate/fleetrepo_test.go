package simulate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// push makes a commit of files the branch's.
func (f *fleet) push(message string, files map[string]string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit %s\ncommitter Alice <alice@example.com> %d +0000\ndata %d\n%s\n", branch, time.Now().Unix(), len(message), message)
	if tip := f.tip(); tip != "" {
		fmt.Fprintf(&b, "from %s\n", tip)
	}
	b.WriteString("deleteall\n")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[name]), files[name])
	}
	b.WriteString("done\n")
	f.git(b.Bytes(), "fast-import", "--quiet", "--done", "--force")
	f.say("push of %s: %s", f.tip()[:7], message)
	return f.tip()
}

// git runs git in the repository, once at a time.
func (f *fleet) git(in []byte, args ...string) string {
	f.gits.Lock()
	defer f.gits.Unlock()
	return f.repo.git(f.repo.dir(), in, args...)
}

func (f *fleet) tip() string {
	return strings.TrimSpace(f.git(nil, "for-each-ref", "--format=%(objectname)", branch))
}

// fleetRollout orders the pools of all targets: half of one pool, all of it, a tenth of the
// fleet, the rest.
const fleetRollout = `apiVersion: weir.dev/v1alpha1
kind: FleetRollout
metadata: {name: nodes}
spec:
  waves:
  - {name: canary, pools: 1, shares: [50, 100]}
  - {name: some, percent: 25}
  bakeTime: 3m
  gates:
  - {name: ready, nodesReady: {within: 4m, required: true}}
  - {name: launches, failedActivities: {max: 0}}
`

// files are those of the fleet with an image.
func (f *fleet) files(image string) map[string]string {
	out := map[string]string{"rollout/rollout.yaml": fleetRollout, "rollout/kustomization.yaml": "resources: [rollout.yaml]\n",
		"image/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: AWSMachinePool}\n  patch: |-\n    - {op: add, path: /spec/awsLaunchTemplate/ami, value: {id: " + image + "}}\n"}
	if f.follows {
		out["image/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: AWSMachinePool}\n  patch: |-\n" +
			"    - {op: add, path: /spec/awsLaunchTemplate/imageLookupFormat, value: \"published-*\"}\n    - {op: add, path: /spec/awsLaunchTemplate/imageLookupOrg, value: \"000000000000\"}\n" +
			"    - {op: add, path: /metadata/annotations, value: {weir.dev/ami-policy: follow}}\n"
	}
	for c := range f.size.clusters {
		dir, also := fmt.Sprintf("overlays/c%d/", c), ""
		if c == 0 {
			also = ", ../../rollout"
		}
		out[dir+"kustomization.yaml"] = "resources: [pools.yaml" + also + "]\ncomponents: [../../image]\n"
		var b strings.Builder
		for p := range f.size.pools {
			b.WriteString(f.pool(c, p))
		}
		out[dir+"pools.yaml"] = b.String()
	}
	return out
}

func (f *fleet) pool(c, p int) string {
	return fmt.Sprintf(`---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: c%[1]d-pool-%[2]d}
spec:
  clusterName: c%[1]d
  replicas: %[3]d
  template:
    spec:
      clusterName: c%[1]d
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: c%[1]d-pool-%[2]d}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: c%[1]d-pool-%[2]d}
spec:
  minSize: 0
  maxSize: %[4]d
  refreshPreferences: {minHealthyPercentage: 75}
  awsLaunchTemplate: {instanceType: m5.large}
`, c, p, f.size.machines, 2*f.size.machines)
}

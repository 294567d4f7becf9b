package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// BenchmarkPlanOfPools plans 500 pools in one overlay with the real command, from its start to
// its end, its workers included: where nothing of them exists, and where all has converged.
// One overlay names a file of objects; the other one prefixes, labels and patches those of a
// base in many files. Wall time is also AWS's, which is in the process of the benchmark.
func BenchmarkPlanOfPools(b *testing.B) {
	const pools = 500
	for _, overlay := range []struct {
		name  string
		write func(*testing.B, string, int) string
	}{{"one-file", poolsInOneFile}, {"prefix-patches", poolsOfBase}} {
		aws, err := awsemu.New(awsemu.Options{Timings: quickTimings(), Quotas: map[string]int{"auto-scaling-groups": pools, "launch-templates": pools}})
		if err != nil {
			b.Fatal(err)
		}
		server := httptest.NewServer(aws)
		b.Cleanup(server.Close)
		path := overlay.write(b, b.TempDir(), pools)
		weir := func(b *testing.B, args ...string) (string, *os.ProcessState) {
			b.Helper()
			self, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			var out, told bytes.Buffer
			cmd := exec.Command(self, append(args, path, "--region", "eu-west-1", "--endpoint-url", server.URL)...)
			cmd.Args[0], cmd.Stdout, cmd.Stderr = "weir", &out, &told
			cmd.Env = []string{"HOME=" + b.TempDir()} // without credentials nobody bounds the calls to an emulator
			if err := cmd.Run(); err != nil {
				b.Fatal(err, told.String()[max(0, told.Len()-2000):])
			}
			return out.String(), cmd.ProcessState
		}
		for _, c := range []struct{ name, says string }{
			{"nothing", fmt.Sprintf("%d to create", pools)},
			{"converged", "Nothing to do"},
		} {
			if c.name == "converged" {
				weir(b, "apply", "--yes", "--wait")
			}
			b.Run(overlay.name+"/"+c.name, func(b *testing.B) {
				var wall, cpu time.Duration
				for b.Loop() {
					began := time.Now()
					out, used := weir(b, "plan")
					wall += time.Since(began)
					cpu += used.UserTime() + used.SystemTime()
					if !strings.Contains(out, c.says) {
						b.Fatal(out[max(0, len(out)-2000):])
					}
				}
				b.ReportMetric(wall.Seconds()*1e3/float64(b.N), "wall-ms")
				b.ReportMetric(cpu.Seconds()*1e3/float64(b.N), "cpu-ms")
			})
		}
	}
}

// benchPool is a pool as its owner writes it; its network is that of the cluster.
const benchPool = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata:
  name: %[1]s
spec:
  clusterName: c1
  replicas: 0
  template:
    spec:
      clusterName: c1
      version: v1.33.1
      bootstrap:
        dataSecretName: boot
      infrastructureRef:
        apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
        kind: AWSMachinePool
        name: %[1]s
---
# workers of one team
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata:
  name: %[1]s
spec:
  minSize: 0
  maxSize: 3
  additionalTags: {team: platform, cost: "%[2]d"}
  awsLaunchTemplate:
    instanceType: m5.large
    ami: {eksLookupType: AmazonLinux2023}
    rootVolume: {size: 50, type: gp3, encrypted: true}
---
`

const benchCluster = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c1}
spec:
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSCluster, name: c1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: c1}
spec: {region: eu-west-1}
---
apiVersion: v1
kind: Secret
metadata: {name: boot}
stringData: {value: "#!/bin/bash\necho hi\n"}
`

func poolsInOneFile(b *testing.B, dir string, n int) string {
	b.Helper()
	var pools strings.Builder
	for i := range n {
		fmt.Fprintf(&pools, benchPool, fmt.Sprintf("pool-%03d", i), i)
	}
	writeTree(b, dir, map[string]string{
		"pools/kustomization.yaml": "resources: [pools.yaml]\n",
		"pools/pools.yaml":         pools.String() + benchCluster,
	})
	return filepath.Join(dir, "pools")
}

func poolsOfBase(b *testing.B, dir string, n int) string {
	b.Helper()
	const perFile = 20
	files, names := map[string]string{"base/cluster.yaml": benchCluster}, []string{"cluster.yaml"}
	for i := range n {
		name := fmt.Sprintf("pools-%02d.yaml", i/perFile)
		if i%perFile == 0 {
			names = append(names, name)
		}
		files["base/"+name] += fmt.Sprintf(benchPool, fmt.Sprintf("pool-%03d", i), i)
	}
	files["base/kustomization.yaml"] = "resources: [" + strings.Join(names, ", ") + "]\nconfigurations: [names.yaml]\n"
	files["base/names.yaml"] = `nameReference:
- {kind: Cluster, fieldSpecs: [{kind: MachinePool, path: spec/clusterName}, {kind: MachinePool, path: spec/template/spec/clusterName}]}
- {kind: AWSCluster, fieldSpecs: [{kind: Cluster, path: spec/infrastructureRef/name}]}
- {kind: AWSMachinePool, fieldSpecs: [{kind: MachinePool, path: spec/template/spec/infrastructureRef/name}]}
- {kind: Secret, fieldSpecs: [{kind: MachinePool, path: spec/template/spec/bootstrap/dataSecretName}]}
`
	files["prod/kustomization.yaml"] = `namePrefix: prod-
namespace: machines
resources: [../base]
labels: [{pairs: {env: prod}}]
patches:
- path: large.yaml
- target: {kind: AWSMachinePool, name: pool-012}
  patch: "- {op: replace, path: /spec/maxSize, value: 9}"
`
	files["prod/large.yaml"] = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: pool-007}\nspec: {awsLaunchTemplate: {instanceType: m5.2xlarge}}\n"
	writeTree(b, dir, files)
	return filepath.Join(dir, "prod")
}

func writeTree(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	for name, content := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

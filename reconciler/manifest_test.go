package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

// written renders a group pool from manifests as somebody writes them: its
// AWSMachinePool has the given spec besides sizes, and the given annotations.
func written(t testing.TB, name, annotations, spec string) intent.Pool {
	t.Helper()
	text := writtenText(name, annotations, spec)
	r, err := render.Render(context.Background(), tree.Map{"pool.yaml": text}, "pool.yaml", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Set.Pools) != 1 || len(r.Set.Pools[0].Blocked) > 0 {
		t.Fatalf("the manifests give %d pools: %v\n%s", len(r.Set.Pools), r.Diags, text)
	}
	return r.Set.Pools[0]
}

// writtenText are the manifests of written.
func writtenText(name, annotations, spec string) string {
	const pool = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: %[1]s}
spec:
  clusterName: demo
  replicas: 2
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: %[1]s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: %[1]s, annotations: {%[2]s}}
spec:
  minSize: 0
  maxSize: 10
%[3]s`
	return fmt.Sprintf(pool, name, annotations, "  "+strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

// ec2 is a client of EC2 that is not weir's.
func (w *world) ec2() *ec2.Client {
	return ec2.NewFromConfig(w.sdk)
}

// versions returns the versions of a template as EC2 tells them, newest first.
func (w *world) versions(name string) *ec2.DescribeLaunchTemplateVersionsOutput {
	w.t.Helper()
	out, err := w.ec2().DescribeLaunchTemplateVersions(context.Background(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: aws.String(name)})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// numbers returns the numbers of a template's versions, ascending.
func (w *world) numbers(name string) []int64 {
	w.t.Helper()
	var out []int64
	for _, v := range w.versions(name).LaunchTemplateVersions {
		out = append([]int64{aws.ToInt64(v.VersionNumber)}, out...)
	}
	return out
}

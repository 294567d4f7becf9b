package reconciler_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

// Every kind of EKS image is found for every Kubernetes version and architecture
// that AWS publishes it for, those that manifests name by an SSM parameter too;
// where there is none, that is said.
func TestImagesAreFoundWhereTheyArePublished(t *testing.T) {
	w := newWorld(t)
	types := map[string]string{"x86_64": "m5.large", "arm64": "m6g.large"}
	ask := func(l intent.Lookup, arch string, published bool) {
		t.Helper()
		got, err := w.scope.Resolver.Answer(context.Background(), []resolve.Request{{Lookup: l}})
		if err != nil {
			t.Fatal(err)
		}
		switch a := got[0]; {
		case !published && a.Code != "parameter-not-found":
			t.Errorf("%s: got %+v, want that there is none", l, a)
		case published && (a.Image == nil || a.Image.Architecture != arch || a.Image.RootDevice == ""):
			t.Errorf("%s: got %+v, want an image for %s", l, a, arch)
		}
	}
	for minor := 29; minor <= 35; minor++ {
		version := fmt.Sprintf("1.%d", minor)
		known := minor <= 34
		for arch, instanceType := range types {
			eks := func(kind string) intent.Lookup {
				return intent.Lookup{Kind: intent.ImageForEKS, Name: kind, Version: version, InstanceType: instanceType}
			}
			ask(eks("AmazonLinux"), arch, minor <= 32)
			ask(eks("AmazonLinux2023"), arch, known)
			ask(eks("AmazonLinux2023GPU"), arch, known)
			ask(eks("AmazonLinuxGPU"), "x86_64", minor <= 32)
			for _, variant := range []string{"", "-nvidia"} {
				ask(intent.Lookup{Kind: intent.ImageByParameter, Name: "/aws/service/bottlerocket/aws-k8s-" + version + variant + "/" + arch + "/latest/image_id"}, arch, known)
			}
		}
		ask(intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: version}, "x86_64", known)
		for _, edition := range []string{"2019-English-Core", "2022-English-Full"} {
			ask(intent.Lookup{Kind: intent.ImageByParameter, Name: "/aws/service/ami-windows-latest/Windows_Server-" + edition + "-EKS_Optimized-" + version + "/image_id"}, "x86_64", known)
		}
	}
	// By name, owner and base system, the newest.
	for _, os := range []string{"ubuntu-24.04", "ubuntu-22.04", "flatcar-stable"} {
		for arch, instanceType := range types {
			ask(intent.Lookup{Kind: intent.ImageByName, Owner: "819546954734", Name: "capa-ami-" + os + "-?1.33.0-*", InstanceType: instanceType}, arch, true)
		}
	}
}

// However many pools ask the same, AWS is asked once in a pass.
func TestOneQuestionForAllPools(t *testing.T) {
	w := newWorld(t)
	var pools []intent.Pool
	for i := range 40 {
		p := groupPool(fmt.Sprintf("eks-%02d", i), "m5.large", 0)
		pools = append(pools, p)
		q := groupPool(fmt.Sprintf("capa-%02d", i), "m5.large", 0)
		q.LaunchTemplate.Image = intent.Lookup{Kind: intent.ImageByName, Owner: "819546954734", Name: "capa-ami-ubuntu-24.04-?1.33.0-*", InstanceType: "m5.large"}
		pools = append(pools, q)
	}
	w.srv.ResetCalls()
	w.settle(target("blue", pools...))
	n := w.srv.CallCounts()
	for op, want := range map[string]int{"ssm:GetParameters": 1, "ec2:DescribeInstanceTypes": 1, "ec2:DescribeImages": 2} {
		if n[op] != want {
			t.Errorf("%s: got %d, want %d", op, n[op], want)
		}
	}
}

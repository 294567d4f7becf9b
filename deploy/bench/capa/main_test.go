package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

func TestMain(m *testing.M) {
	quiet()
	os.Exit(m.Run())
}

const groupPool = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: NAME}
spec:
  clusterName: peers
  replicas: 1
  template:
    spec:
      clusterName: peers
      version: v1.34.1
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: NAME}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: NAME}
spec:
  minSize: 1
  maxSize: 3
  availabilityZones: [eu-west-1a]
  awsLaunchTemplate: {ami: {id: ami-0123456789abcdef0}, instanceType: t3.large}
`

// TestGroups makes real groups, finds nothing to do afterwards, and notices when
// somebody takes one away.
func TestGroups(t *testing.T) {
	endpoint := emulator(t)
	o := options{endpoint: endpoint, region: "eu-west-1", eksCluster: "demo", workers: 5, settle: 3 * time.Second, rest: 1, manifests: t.TempDir()}
	names := []string{"one", "two", "three"}
	for _, name := range names {
		write(t, filepath.Join(o.manifests, name+".yaml"), strings.ReplaceAll(groupPool, "NAME", name))
	}
	before := calls(t, endpoint)
	r, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("until converged: %s\nat rest: %s", r.first.operations(), r.rest.operations())
	if r.pools != len(names) {
		t.Errorf("%d pools, want %d", r.pools, len(names))
	}
	for _, operation := range []string{"CreateLaunchTemplate", "CreateAutoScalingGroup"} {
		if n := r.first.byOperation[operation]; n != len(names) {
			t.Errorf("%s %d times, want %d", operation, n, len(names))
		}
	}
	if r.rest.writes() != 0 || r.rest.calls() != 3*len(names) {
		t.Errorf("at rest: %s, want 3 reads a pool", r.rest.operations())
	}
	// CAPA's own count is that of the emulator, but for the harness's two reads of the network.
	if got, want := calls(t, endpoint)-before, r.first.calls()+r.rest.calls()+2; got != want {
		t.Errorf("the emulator counts %d calls, CAPA %d", got, want)
	}

	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(o.region))
	if err != nil {
		t.Fatal(err)
	}
	templates, err := ec2.NewFromConfig(cfg).DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: names})
	if err != nil || len(templates.LaunchTemplates) != len(names) {
		t.Fatalf("templates: %v %v", templates, err)
	}
	for _, lt := range templates.LaunchTemplates {
		if *lt.LatestVersionNumber != 1 {
			t.Errorf("template %s has version %d: a reconcile has stored what was there", *lt.LaunchTemplateName, *lt.LatestVersionNumber)
		}
	}
	api := autoscaling.NewFromConfig(cfg)
	groups, err := api.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: names})
	if err != nil || len(groups.AutoScalingGroups) != len(names) {
		t.Fatalf("groups: %v %v", groups, err)
	}
	for _, g := range groups.AutoScalingGroups {
		if len(g.Instances) != 1 || g.LaunchTemplate == nil || *g.MaxSize != 3 {
			t.Errorf("group %s: %d instances, template %v, at most %d", *g.AutoScalingGroupName, len(g.Instances), g.LaunchTemplate, *g.MaxSize)
		}
	}

	// A second controller over the same groups has nothing to make, and rests.
	again, err := newFleet(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := again.converge(t.Context()); err != nil || p.writes() != 0 {
		t.Errorf("a second controller: %s, %v, want no writes", p.operations(), err)
	}
	if _, err := again.pass(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := api.DeleteAutoScalingGroup(t.Context(), &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("two"), ForceDelete: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(o.settle)
	if _, err := again.pass(t.Context()); err == nil || !strings.Contains(err.Error(), "not at rest, such as two") {
		t.Errorf("a group is gone, and the pass says %v", err)
	}
}

func TestManifestsAreRefused(t *testing.T) {
	pools := strings.Split(groupPool, "---\n")
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "no manifests"},
		{"a misspelt field", strings.ReplaceAll(groupPool, "maxSize", "maxSice"), "maxSice"},
		{"an infrastructure pool alone", strings.ReplaceAll(pools[0], "NAME", "a") + "---\n" + strings.ReplaceAll(pools[1], "NAME", "b"), "no MachinePool refers to it"},
		{"two clusters", groupPool + "---\n" + strings.ReplaceAll(strings.ReplaceAll(groupPool, "NAME", "b"), "peers", "others"), "2 clusters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.text != "" {
				write(t, filepath.Join(dir, "pools.yaml"), tt.text)
			}
			if _, err := objects(t.Context(), options{manifests: dir}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v want %q", err, tt.want)
			}
		})
	}
}

// emulator runs weir's emulator, built from the module around this one.
func emulator(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	bin, seed := filepath.Join(dir, "weir"), filepath.Join(dir, "seed.json")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/weir")
	build.Dir, build.Env = "../../..", append(os.Environ(), "GOFLAGS=-mod=readonly -buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write(t, seed, `{"regions": {"eu-west-1": {"images": [{"id": "ami-0123456789abcdef0", "name": "peers", "architecture": "x86_64", "created": "2025-11-01T00:00:00Z"}]}}}`)
	run := exec.CommandContext(t.Context(), bin, "emulator", "--listen", "127.0.0.1:0", "--seed", seed)
	run.Stderr = os.Stderr
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill() // it may have ended with the test's context
		_ = run.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// calls is how many calls an emulator has had.
func calls(t *testing.T, endpoint string) (n int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"/_calls", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	counts := map[string]int{}
	if err := json.NewDecoder(res.Body).Decode(&counts); err != nil {
		t.Fatal(fmt.Errorf("calls: %w", err))
	}
	for _, k := range counts {
		n += k
	}
	return n
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

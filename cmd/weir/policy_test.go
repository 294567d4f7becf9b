package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
	"github.com/weir-gitops/weir/reconciler/iampolicy/policytest"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// TestPolicyKnowsEveryCall reads from the adapter's source which calls it can make.
func TestPolicyKnowsEveryCall(t *testing.T) {
	found := map[string]bool{"sts:GetCallerIdentity": true, "sts:AssumeRole": true} // made at opening, past the tables
	files, err := filepath.Glob("../../reconciler/awscloud/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no source", err)
	}
	files = append(files, "../../reconciler/awscloud/kms.go")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Calls") {
				return true
			}
			calls, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			service := strings.ToLower(strings.TrimSuffix(spec.Name.Name, "Calls"))
			for _, method := range calls.Fields.List {
				found[service+":"+method.Names[0].Name] = true
			}
			return true
		})
	}
	known := map[string]bool{}
	for _, action := range iampolicy.Calls() {
		known[action] = true
	}
	for action := range iampolicy.Needless() {
		known[action] = true
	}
	if len(found) < 50 {
		t.Errorf("only %d calls found: the adapter's tables have moved", len(found))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(known))); diff != "" {
		t.Errorf("calls of the adapter, and actions of the policy (-calls +policy):\n%s", diff)
	}
}

// unused are actions that the runs below do not need, with the reason.
var unused = map[string]string{
	"autoscaling:DescribeScalingActivities":    "only where instances fail to start",
	"autoscaling:DescribeLaunchConfigurations": "only where a group that is imported or taken over launches from one",
	"kms:Decrypt":                                "asked for by rendering, not by a pass",
	"kms:Encrypt":                                "only where daemons share keys",
	"kms:DescribeKey":                            "only where a volume names a key",
	"ec2:DescribeCapacityReservations":           "only where a pool runs in reserved capacity alone",
	"ec2:DescribeKeyPairs":                       "only where a pool names one",
	"ec2:DescribeSnapshots":                      "only where a root volume is smaller than its image says",
	"ec2:DescribePlacementGroups":                "only where a pool names one",
	"autoscaling:RollbackInstanceRefresh":        "only where a rollout that moves is stopped and goes back",
	"autoscaling:RecordLifecycleActionHeartbeat": "only where a drainer has machines that wait, and a cluster to ask",
	"autoscaling:CompleteLifecycleAction":        "only where a drainer has machines that wait, and a cluster to ask",
}

// policyRun takes pools through what weir does with them, and holds each call, at
// the time that it is made, against the policies that weir policy prints.
type policyRun struct {
	t       *testing.T
	dir     string
	aws     *watcher
	url     string
	covered map[string]bool
	// daemon is the policy of who assumes the roles.
	daemon iampolicy.Document
}

func newPolicyRun(t *testing.T) *policyRun {
	t.Helper()
	emu, err := awsemu.New(awsemu.Options{Timings: quickTimings()})
	if err != nil {
		t.Fatal(err)
	}
	seed := `{"regions": {"eu-west-1": {
  "images": [{"id": "ami-0123456789abcdef0", "name": "ours-1", "architecture": "x86_64", "created": "2025-11-01T00:00:00Z"}],
  "parameters": {"/ours/ami": "ami-0123456789abcdef0"}, "roles": ["weir", "hooks"]}}}`
	if err := emu.Seed(strings.NewReader(seed)); err != nil {
		t.Fatal(err)
	}
	emu.Faults().Hooks.Add(asg.HookListener{}) // who completes the pools' hooks
	r := &policyRun{t: t, dir: t.TempDir(), aws: &watcher{t: t, emu: emu}, covered: map[string]bool{}}
	server := httptest.NewServer(r.aws)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *policyRun) run(args ...string) (string, int) {
	r.t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), args, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(name string) string {
		return map[string]string{"HOME": r.dir, "AWS_EC2_METADATA_DISABLED": "true"}[name]
	}})
	if code != exitOK {
		return out.String() + errs.String(), code
	}
	return out.String(), code
}

// weir is a command of an instance, about the directory pools.
func (r *policyRun) weir(instance string, args ...string) {
	r.t.Helper()
	args = append(args, filepath.Join(r.dir, "pools"), "--region", "eu-west-1", "--endpoint-url", r.url, "--target", "pools", "--instance", instance)
	if out, code := r.run(args...); code != exitOK {
		r.t.Fatalf("weir %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
}

// policy is what weir policy prints for one access.
func (r *policyRun) policy(access iampolicy.Access, args ...string) iampolicy.Document {
	r.t.Helper()
	args = append([]string{"policy", "-o", "json", "--" + string(access)}, args...)
	out, code := r.run(args...)
	var d iampolicy.Document
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != exitOK {
		r.t.Fatalf("weir %s: exit %d, %v\n%s", strings.Join(args, " "), code, err, out)
	}
	return d
}

// of is the policy of an instance, without looking at Git.
func (r *policyRun) of(access iampolicy.Access, instance string, more ...string) iampolicy.Document {
	r.t.Helper()
	role := "arn:aws:iam::000000000000:role/"
	return r.policy(access, append([]string{
		"--account", "000000000000", "--region", "eu-west-1", "--instance", instance,
		"--pass-role", role + "eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io", "--pass-role", role + "nodes.cluster-api-provider-aws.sigs.k8s.io",
	}, more...)...)
}

// hold holds the calls since the last time against policies.
func (r *policyRun) hold(apply, plan iampolicy.Document) []policytest.Asked {
	r.t.Helper()
	calls := r.aws.take()
	for _, a := range calls {
		r.covered[a.Action] = true
		if iampolicy.Needless()[a.Action] != "" {
			continue
		}
		if a.Action == "sts:AssumeRole" {
			if !policytest.Allows(r.t, r.daemon, a) {
				r.t.Errorf("the daemon may not assume %s", a.Resource)
			}
			continue
		}
		if !policytest.Allows(r.t, apply, a) {
			r.t.Errorf("to apply, IAM would refuse %s on %s with %v", a.Action, a.Resource, a.Context)
		}
		if !a.Behalf && policytest.Allows(r.t, plan, a) == a.Write {
			r.t.Errorf("to plan, IAM would be wrong about %s on %s (a write: %t)", a.Action, a.Resource, a.Write)
		}
	}
	return calls
}

// write makes the directory pools of a file in testdata/policy, with texts replaced.
func (r *policyRun) write(file string, values ...string) {
	r.t.Helper()
	text, err := os.ReadFile("testdata/policy/" + file)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(values); i += 2 {
		if !strings.Contains(string(text), values[i]) {
			r.t.Fatalf("%s has no %q to replace", file, values[i])
		}
	}
	if err := os.MkdirAll(filepath.Join(r.dir, "pools"), 0o750); err != nil {
		r.t.Fatal(err)
	}
	pools := strings.NewReplacer(values...).Replace(string(text))
	if err := os.WriteFile(filepath.Join(r.dir, "pools", "pools.yaml"), []byte(pools), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// past is one call to AWS, past weir, and its answer.
func (r *policyRun) past(service, version, action string, values ...string) string {
	r.t.Helper()
	form := url.Values{"Action": {action}, "Version": {version}}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	req, err := http.NewRequest(http.MethodPost, r.url, strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	req.Header.Set(pastWeir, "yes")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %s: %v\n%s", action, res.Status, err, body)
	}
	return string(body)
}

// halfWay waits until the refresh of a group waits at its first checkpoint.
func (r *policyRun) halfWay() {
	r.t.Helper()
	for range 600 {
		if text := r.past("autoscaling", "2011-01-01", "DescribeInstanceRefreshes", "AutoScalingGroupName", "web"); strings.Contains(text, "<PercentageComplete>50<") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Fatal("the refresh is not half way after a minute")
}

// TestPolicyFitsTheCalls takes two pools through everything that weir does with
// them, and holds each call against the policies.
func TestPolicyFitsTheCalls(t *testing.T) {
	t.Parallel()
	r := newPolicyRun(t)
	own, plan := r.of(iampolicy.Apply, "weir"), r.of(iampolicy.Plan, "weir")
	r.write("pools.yaml")
	r.weir("weir", "plan")
	r.weir("weir", "apply", "--wait")
	r.hold(own, plan)
	r.write("pools.yaml", "m5.large", "m5.xlarge", "warmPool: {minSize: 1}", "deleteWarmPool: true", "[GroupMinSize]", "[]", "{standbyInstances: Ignore}", "{checkpointPercentages: [50, 100], checkpointDelay: 3600}", "targetgroup/a", "targetgroup/b",
		"azRebalance: true", "azRebalance: false", "lifecycleHooks:", "#", "- {name:", "# {", "maxSize: 3", "maxSize: 4", ", old: \"1\"", "")
	r.weir("weir", "apply")
	// The refresh waits half way, and the next one cancels it. Until then AWS changes no warm pool.
	r.halfWay()
	r.write("pools.yaml", "m5.large", "c5.large", "300s", "400s")
	r.weir("weir", "apply", "--wait")
	r.write("pools.yaml", "m5.large", "m6i.large", "onDemand", "spot", "stage: one", "stage: two", "minSize: 1, maxSize: 3", "minSize: 2, maxSize: 3",
		"annotations: {", "annotations: {weir.dev/prune: disabled, ")
	r.weir("weir", "apply", "--wait")
	r.hold(own, plan)

	// Another weir takes over all of it, which its policy allows only if it says so.
	r.write("pools.yaml")
	r.weir("other", "adopt", "--from", "weir", "--yes")
	other, otherPlan := r.of(iampolicy.Apply, "other", "--from", "weir"), r.of(iampolicy.Plan, "other", "--from", "weir")
	taken := r.hold(other, otherPlan)
	stranger, owned := r.of(iampolicy.Apply, "other"), map[string]bool{}
	for _, a := range taken {
		if a.Takes() && a.Context["aws:ResourceTag/weir.dev/owner"] == "" {
			t.Errorf("%s on %s: the tags of the resource were not found", a.Action, a.Resource)
		}
		if a.Takes() && !owned[a.Resource] && policytest.Allows(t, stranger, a) {
			t.Errorf("%s on %s: the policy allows to take what another weir owns", a.Action, a.Resource)
		}
		owned[a.Resource] = true
	}
	r.weir("other", "apply", "--yes", "--wait")
	// With its own policy, without the right to take: the other one is a stranger.
	r.write("pools.yaml", "kind: AWSMachinePool", "kind: Other", "kind: MachinePool # group", "kind: Other", "kind: PoolOptions", "kind: Other")
	r.weir("other", "apply", "--prune", "--yes", "--wait")
	r.hold(stranger, r.of(iampolicy.Plan, "other"))

	r.ofOthers()
	r.ofConfiguration()
	for _, action := range iampolicy.Calls() {
		_, excused := unused[action]
		if !r.covered[action] && !excused {
			t.Errorf("no call needed %s: have the run make it, or say why not", action)
		}
		if r.covered[action] && excused {
			t.Errorf("%s is needed after all", action)
		}
	}
	for _, action := range []string{"iam:PassRole", "iam:ListAttachedRolePolicies", "ec2:RunInstances", "cloudwatch:DescribeAlarms"} {
		if !r.covered[action] {
			t.Errorf("AWS never asked for %s", action)
		}
	}
}

// ofOthers adopts what nobody owns, and deletes it by annotation.
func (r *policyRun) ofOthers() {
	r.t.Helper()
	r.write("adopted.yaml")
	r.past("ec2", "2016-11-15", "CreateLaunchTemplate", "LaunchTemplateName", "found", "LaunchTemplateData.ImageId", "ami-0123456789abcdef0", "LaunchTemplateData.InstanceType", "m5.large")
	r.past("autoscaling", "2011-01-01", "CreateAutoScalingGroup", "AutoScalingGroupName", "found", "MinSize", "1", "MaxSize", "2",
		"AvailabilityZones.member.1", "eu-west-1a", "LaunchTemplate.LaunchTemplateName", "found", "LaunchTemplate.Version", "1")
	r.weir("weir", "adopt", "--yes")
	plan := r.of(iampolicy.Plan, "weir")
	for _, a := range r.hold(r.of(iampolicy.Apply, "weir", "--adopt"), plan) {
		if a.Takes() && policytest.Allows(r.t, r.of(iampolicy.Apply, "weir"), a) {
			r.t.Errorf("%s on %s: without --adopt the policy allows to take what nobody owns", a.Action, a.Resource)
		}
	}
	r.weir("weir", "apply", "--yes", "--wait")
	r.write("adopted.yaml", "kind: AWSMachinePool # found", "kind: Other", "kind: MachinePool # found", "kind: Other", "kind: PoolOptions", "kind: Other")
	r.weir("weir", "apply", "--prune", "--yes", "--wait")
	r.hold(r.of(iampolicy.Apply, "weir"), plan)
}

// ofConfiguration has a target of a configuration apply a pool, with what only
// policies that are made of its manifests allow.
func (r *policyRun) ofConfiguration() {
	t := r.t
	t.Helper()
	repo, cluster := sourcetest.New(t), workloadtest.New(t)
	file := filepath.Join(r.dir, "weir.yaml")
	config := fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: state
aws: {endpoint: %q}
sources:
- {name: pools, url: %q}
targets:
- {name: prod, source: pools, path: ., region: eu-west-1, accountID: "000000000000", roleARN: "arn:aws:iam::000000000000:role/weir", kubeconfigFile: %q, ssmPrefixes: [/fleet], prune: {enabled: true}}
`, r.url, repo.URL(), cluster.Kubeconfig(t))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	commit := func(values ...string) {
		t.Helper()
		r.write("configuration.yaml", values...)
		text, err := os.ReadFile(filepath.Join(r.dir, "pools", "pools.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		repo.Write(map[string]string{"pools.yaml": string(text)})
		repo.Commit("pools\n\nWeir-Allow-Prune: prod")
	}
	weir := func(args ...string) {
		t.Helper()
		if out, code := r.run(append(args, "--config", file)...); code != exitOK {
			t.Fatalf("weir %s: exit %d\n%s", strings.Join(args, " "), code, out)
		}
	}
	commit()
	own, plan := r.policy(iampolicy.Apply, "--config", file), r.policy(iampolicy.Plan, "--config", file)
	r.daemon = r.policy(iampolicy.Daemon, "--config", file)
	weir("apply")
	for name := range cluster.Secrets() { // a token that is gone is made anew
		cluster.RemoveSecret(name)
	}
	commit("m5.large", "m5.xlarge")
	if out, _ := r.run("apply", "--config", file); !strings.Contains(out, "The alarm errors does not exist") { // here
		t.Errorf("no refresh with alarms was tried:\n%s", out)
	}
	r.hold(own, plan)
	commit("kind: MachinePool # joins", "kind: Other", "kind: KubeadmConfig # joins", "kind: Other", "kind: AWSMachinePool # joins", "kind: Other", "kind: PoolOptions # joins", "kind: Other")
	weir("apply", "--yes", "--wait", "--timeout", "60s")
	r.hold(own, plan)
}

package main

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/cmd/weir/internal/iampolicy"
	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestPolicyKnowsEveryCall reads from the adapter's source which calls it can make.
func TestPolicyKnowsEveryCall(t *testing.T) {
	found := map[string]bool{"sts:GetCallerIdentity": true, "sts:AssumeRole": true} // made at opening, past the tables
	files, err := filepath.Glob("../../reconciler/awscloud/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no source", err)
	}
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
			for _, field := range calls.Fields.List {
				for _, name := range field.Names {
					found[service+":"+name.Name] = true
				}
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

// unused are actions that the run below may not need, with the reason.
var unused = map[string]string{
	"autoscaling:DescribeScalingActivities": "only where instances fail to start",
	"autoscaling:CancelInstanceRefresh":     "only where the rollout before is still under way",
	"ec2:DescribeSecurityGroups":            "only where security groups are named by filters",
	"ec2:DescribeVpcs":                      "only where nothing names a network",
	"eks:DescribeUpdate":                    "only of updates that failed",
	"eks:ListUpdates":                       "only where a nodegroup is not as wanted after an update",
	"kms:Decrypt":                           "asked for by rendering, not by a pass",
	"ssm:AddTagsToResource":                 "join tokens need a workload cluster",
	"ssm:DeleteParameter":                   "join tokens need a workload cluster",
	"ssm:DescribeParameters":                "join tokens need a workload cluster",
	"ssm:ListTagsForResource":               "join tokens need a workload cluster",
	"ssm:PutParameter":                      "join tokens need a workload cluster",
	"sts:AssumeRole":                        "the run has no role",
}

// TestPolicyFitsTheCalls takes two pools through everything that weir does with
// them, and holds each call against the policies.
func TestPolicyFitsTheCalls(t *testing.T) {
	emu, err := awsemu.New(awsemu.Options{Timings: quickTimings()})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var calls []asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		a := watch(t, emu, r, string(body))
		emu.ServeHTTP(w, r)
		made := emu.Calls()
		last := made[len(made)-1]
		a.action, a.write = last.Service+":"+last.Operation, last.Write
		calls = append(calls, a)
	}))
	defer server.Close()
	dir := t.TempDir()
	weir := func(instance string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		args = append(args, dir, "--region", "eu-west-1", "--endpoint-url", server.URL, "--target", "pools", "--instance", instance)
		code := run(context.Background(), args, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(name string) string {
			return map[string]string{"HOME": dir, "AWS_EC2_METADATA_DISABLED": "true"}[name]
		}})
		if code != exitOK {
			t.Fatalf("weir %s: exit %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
		}
	}
	write := func(values ...string) {
		t.Helper()
		text, err := os.ReadFile("testdata/policy/pools.yaml")
		if err != nil {
			t.Fatal(err)
		}
		pools := strings.NewReplacer(values...).Replace(string(text))
		if err := os.WriteFile(filepath.Join(dir, "pools.yaml"), []byte(pools), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy := func(access iampolicy.Access, instance, from string) iampolicy.Document {
		s := iampolicy.Scope{Partition: "aws", Account: "000000000000", Regions: []string{"eu-west-1"}, Instance: instance, From: from}
		s.Pass("arn:aws:iam::000000000000:role/eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io")
		return iampolicy.Make(access, s)
	}
	covered := map[string]bool{}
	hold := func(apply, plan iampolicy.Document) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for _, a := range calls {
			covered[a.action] = true
			if iampolicy.Needless()[a.action] != "" {
				continue
			}
			if !allows(t, apply, a) {
				t.Errorf("to apply, IAM would refuse %s on %s with %v", a.action, a.resource, a.context)
			}
			if allows(t, plan, a) == a.write {
				t.Errorf("to plan, IAM would be wrong about %s on %s (a write: %t)", a.action, a.resource, a.write)
			}
		}
		calls = nil
	}
	own, plan := policy(iampolicy.Apply, "weir", ""), policy(iampolicy.Plan, "weir", "")
	write()
	weir("weir", "plan")
	weir("weir", "apply", "--wait")
	hold(own, plan)
	write("m5.large", "m5.xlarge", "warmPool: {minSize: 1}", "deleteWarmPool: true", "[GroupMinSize]", "[]", "targetgroup/a", "targetgroup/b",
		"azRebalance: true", "azRebalance: false", "lifecycleHooks:", "#", "- {name: drain", "# {", "maxSize: 3", "maxSize: 4", ", old: \"1\"", "")
	weir("weir", "apply")
	write("m5.large", "c5.large", "300s", "400s")
	weir("weir", "apply", "--wait")
	write("m5.large", "m6i.large", "onDemand", "spot", "stage: one", "stage: two", "minSize: 1, maxSize: 3", "minSize: 2, maxSize: 3")
	weir("weir", "apply", "--wait")
	hold(own, plan)
	// Another weir takes over all of it, which its policy allows only if it says so.
	weir("other", "adopt", "--from", "weir", "--yes")
	mu.Lock()
	taken := slices.Clone(calls)
	mu.Unlock()
	stranger := policy(iampolicy.Apply, "other", "")
	for _, a := range taken {
		if a.write && allows(t, stranger, a) {
			t.Errorf("%s on %s: the policy allows to take what another weir owns", a.action, a.resource)
		}
	}
	hold(policy(iampolicy.Apply, "other", "weir"), policy(iampolicy.Plan, "other", "weir"))
	for _, a := range taken {
		if a.write && a.context["aws:ResourceTag/weir.dev/owner"] == "" {
			t.Errorf("%s on %s: the tags of the resource were not found", a.action, a.resource)
		}
	}
	write("kind: AWSMachinePool", "kind: Other", "kind: MachinePool # group", "kind: Other", "kind: PoolOptions", "kind: Other")
	weir("other", "apply", "--prune", "--yes", "--wait")
	hold(policy(iampolicy.Apply, "other", "weir"), policy(iampolicy.Plan, "other", "weir"))

	for _, action := range iampolicy.Calls() {
		_, excused := unused[action]
		if !covered[action] && !excused {
			t.Errorf("no call needed %s: have the run make it, or say why not", action)
		}
	}
}

package plan_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

// twoPools are a group and a nodegroup, complete, each in a pair of objects.
const twoPools = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata:
  name: web
  namespace: fleet
spec:
  clusterName: demo
  replicas: 2
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap:
        dataSecretName: ""
      infrastructureRef:
        apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
        kind: AWSMachinePool
        name: web
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata:
  name: web
  namespace: fleet
spec:
  minSize: 1
  maxSize: 4
  launchConfigRef:
    kind: AWSLaunchConfigTemplate
    name: shared
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSLaunchConfigTemplate
metadata:
  name: shared
  namespace: fleet
spec:
  template:
    spec:
      instanceType: m5.large
      ami:
        id: ami-00000001
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata:
  name: nodes
  namespace: fleet
spec:
  clusterName: demo
  replicas: 2
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap:
        dataSecretName: ""
      infrastructureRef:
        apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
        kind: AWSManagedMachinePool
        name: nodes
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSManagedMachinePool
metadata:
  name: nodes
  namespace: fleet
spec:
  amiType: AL2023_x86_64_STANDARD
  scaling:
    minSize: 1
    maxSize: 4
---
apiVersion: weir.dev/v1alpha1
kind: PoolOptions
metadata:
  name: web
  namespace: fleet
spec:
  poolRef:
    kind: AWSMachinePool
    name: web
  autoScalingGroup:
    maxInstanceLifetime: 864000
`

var scalar = regexp.MustCompile(`^( *[a-zA-Z]+: )("?)([^" ]+)("?)$`)

// mistakes are texts with one value of one line of the text mistyped, by what was done.
func mistakes(text string) map[string]string {
	out := map[string]string{}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := scalar.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		word := m[3]
		middle := len(word) / 2
		for _, other := range []string{
			word[:middle] + word[middle+1:], word[:middle] + "x" + word[middle:], "[1, 2]",
		} {
			if other == word {
				continue
			}
			changed := slices.Clone(lines)
			changed[i] = m[1] + other
			out[fmt.Sprintf("line %d, %s %q", i+1, strings.TrimSpace(line), other)] = strings.Join(changed, "\n")
		}
		without := slices.Delete(slices.Clone(lines), i, i+1)
		out[fmt.Sprintf("line %d, %s missing", i+1, strings.TrimSpace(line))] = strings.Join(without, "\n")
	}
	for i, doc := range strings.Split(text, "\n---\n") {
		docs := strings.Split(text, "\n---\n")
		if kind := strings.Fields(doc)[3]; strings.HasSuffix(kind, "MachinePool") {
			out[fmt.Sprintf("without the %s of document %d", kind, i)] = strings.Join(slices.Delete(docs, i, i+1), "\n---\n")
		}
	}
	return out
}

func ownedBy(pool string) map[string]string {
	return map[string]string{observed.TagOwner: "weir-1", observed.TagTarget: "blue", observed.TagSource: "source", observed.TagPool: pool}
}

// running is AWS with both pools and the launch template that one derives.
func running() *observed.State {
	s := &observed.State{Groups: map[string]observed.Group{}, Nodegroups: map[observed.NodegroupName]observed.Nodegroup{}, Templates: map[string]observed.Template{}, Clusters: map[string]bool{"demo": true}, TemplateUsers: map[string][]string{}}
	group := func(name, instance string, tags map[string]string) {
		g := observed.Group{Name: name, MinSize: 1, MaxSize: 4, DesiredCapacity: 1, Tags: map[string]observed.GroupTag{}, Instances: []observed.Instance{{ID: instance, Zone: "a", LifecycleState: "InService", Health: "Healthy"}}}
		for k, v := range tags {
			g.Tags[k] = observed.GroupTag{Value: v}
		}
		s.Groups[name] = g
	}
	group("web", "i-web", ownedBy("fleet/web"))
	behind := ownedBy("fleet/nodes")
	behind[observed.TagNodegroup] = "fleet_nodes"
	group("eks-1", "i-nodes", behind)
	n := observed.Nodegroup{NodegroupName: observed.NodegroupName{Cluster: "demo", Name: "fleet_nodes"}, Status: "ACTIVE", MinSize: 1, MaxSize: 4, DesiredSize: 1, Tags: ownedBy("fleet/nodes"), GroupNames: []string{"eks-1"}, DescribedAtPass: true}
	s.Nodegroups[n.NodegroupName] = n
	tags := ownedBy("")
	delete(tags, observed.TagPool)
	tags[observed.TagLaunchConfig] = "fleet/demo-shared-group"
	s.Templates["demo-shared-group"] = observed.Template{ID: "lt-1", Name: "demo-shared-group", LatestVersion: 1, DefaultVersion: 1, Tags: tags, Versions: map[int64]observed.TemplateVersion{1: {Number: 1}}}
	return s
}

// planned plans what files say against AWS, with pruning on and nothing that limits it.
func planned(t *testing.T, text string) (*plan.Plan, []plan.PoolStatus, *render.Result) {
	t.Helper()
	r, err := render.Render(context.Background(), tree.Map{"pool.yaml": text}, "pool.yaml", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fault := ""
	for _, d := range r.Diags {
		if d.Severity == 0 && fault == "" {
			fault = d.Position.String() + ": " + d.Summary
		}
	}
	in := model.Input{
		Policy: model.Policy{Instance: "weir-1", Target: "blue", Source: "source", Sources: []string{"source"}, Region: "eu-west-1", Fault: fault, Prune: model.Prune{Enabled: true, Percent: 100}},
		Set:    &r.Set, Unplanned: r.Set.Unplanned, State: running(),
		Fleet: model.NewFleet(map[string][]model.Claim{"blue": model.Claims(&r.Set)}, fault == ""),
	}
	in.Fleet.Unplanned = r.Set.Unplanned
	if len(r.Set.Pools) == 0 && fault != "" { // as a target of which nothing renders
		in.Set = nil
		return &plan.Plan{}, plan.WithFaults(in, nil, nil, nil), r
	}
	p, _ := plan.Compute(in)
	return p, plan.WithFaults(in, plan.Statuses(in, p), nil, nil), r
}

// Whatever is mistyped in a pool's objects, the pool is wanted: nothing of it is deleted or
// called an orphan, and it stays in the statuses with its machines. Where it is broken, it
// is Failed, at the line of the fault.
func TestAMistypedPoolIsWantedAndVisible(t *testing.T) {
	t.Parallel()
	if p, _, r := planned(t, twoPools); r.Diags.HasErrors() || len(r.Set.Pools) != 2 || slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Verb == step.Delete }) {
		t.Fatalf("the pools are not whole as they are written: %v", r.Diags)
	}
	failed := 0
	for what, text := range mistakes(twoPools) {
		p, statuses, r := planned(t, text)
		for _, s := range p.Steps {
			if s.Verb == step.Delete {
				t.Errorf("%s: deletes the %s %s: %s", what, s.Resource, s.Name, s.Reason)
			}
		}
		for _, d := range p.Diagnostics {
			if strings.HasPrefix(d.Code, "orphan") || strings.Contains(d.Summary, "nothing in Git") {
				t.Errorf("%s: %s", what, d.Summary)
			}
		}
		broken := len(r.Set.Pools) < 2
		if broken && !r.Diags.HasErrors() {
			t.Errorf("%s: a pool is missing and nothing is wrong: %v", what, r.Diags)
		}
		for _, pool := range []struct{ key, instance string }{{"web", "i-web"}, {"nodes", "i-nodes"}} {
			i := slices.IndexFunc(statuses, func(s plan.PoolStatus) bool {
				return slices.Contains(s.ProviderIDList, "aws:///a/"+pool.instance)
			})
			if i < 0 {
				t.Errorf("%s: no status has the machine of %s: %+v", what, pool.key, statuses)
				continue
			}
			s := statuses[i]
			planned := slices.ContainsFunc(r.Set.Pools, func(p intent.Pool) bool { return p.Key.Name == s.Name && p.Key.Namespace == s.Namespace })
			if planned {
				continue
			}
			failed++
			if s.Phase != plan.PhaseFailed || !strings.HasPrefix(s.FailureMessage, "pool.yaml:") || s.Converged || s.ReadyReplicas != 1 || s.Ready().Severity != "Error" {
				t.Errorf("%s: %s is %s %d/%d %q, want Failed with the file's line", what, pool.key, s.Phase, s.ReadyReplicas, s.DesiredReplicas, s.FailureMessage)
			}
		}
	}
	if failed < 50 {
		t.Errorf("only %d mistakes broke a pool", failed)
	}
}

// What stands in Git and is not a pool of AWS keeps what bears its name or its tag.
func TestWhatStandsInGitIsNoOrphan(t *testing.T) {
	rosa := strings.Replace(twoPools, "kind: AWSManagedMachinePool\n        name: nodes", "kind: ROSAMachinePool\n        name: nodes", 1)
	docs := strings.Split(rosa, "\n---\n")
	docs = slices.Delete(docs, 4, 5)
	p, statuses, r := planned(t, strings.Join(docs, "\n---\n"))
	if r.Diags.HasErrors() {
		t.Fatalf("a pool of another provider is no fault: %v", r.Diags)
	}
	if slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Verb == step.Delete }) {
		t.Errorf("deletes: %+v", p.Steps)
	}
	if !slices.ContainsFunc(p.Diagnostics.Sorted(), func(d diag.Diagnostic) bool { return d.Code == "kept-in-git" }) {
		t.Errorf("nothing says why the nodegroup stays: %v", p.Diagnostics)
	}
	if !slices.ContainsFunc(statuses, func(s plan.PoolStatus) bool { return s.Name == "nodes" && s.Ready().Reason == plan.ReasonNotOfAWS }) {
		t.Errorf("the pool is in no status: %+v", statuses)
	}
	// A pool that Git drops is an orphan as before.
	p, _, _ = planned(t, strings.Join(slices.Delete(docs, 3, 4), "\n---\n"))
	if !slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Verb == step.Delete && s.Name == "fleet_nodes" }) {
		t.Errorf("a pool that nothing wants is not deleted: %+v %v", p.Steps, p.Diagnostics)
	}
}

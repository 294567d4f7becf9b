package reconciler_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	testRegion   = "eu-west-1"
	testInstance = "prod"
	testSource   = "0123456789ab"
)

// world is the embedded AWS over HTTP with a scope that reconciles it: all that
// a pass touches, the wire included.
type world struct {
	t     testing.TB
	srv   *awsemu.Server
	clock *awsemu.ManualClock
	url   string
	// sdk is for clients that are not weir's.
	sdk   aws.Config
	scope *reconciler.Scope
	// cut says that a lost call had no effect.
	cut bool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldWith(t, nil)
}

// newWorldWith has other quotas than AWS's.
func newWorldWith(t testing.TB, quotas map[string]int) *world {
	t.Helper()
	all := map[string]int{"auto-scaling-groups": 20000, "launch-templates": 20000}
	maps.Copy(all, quotas)
	clock := awsemu.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	srv, err := awsemu.New(awsemu.Options{Clock: clock, Quotas: all})
	if err != nil {
		t.Fatal(err)
	}
	namedThings(t, srv)
	w := serve(t, srv, clock)
	w.restart()
	return w
}

// namedThings makes the key pairs and placement groups that the pools of tests name.
func namedThings(t testing.TB, srv *awsemu.Server) {
	t.Helper()
	names := []string{"key", "another", "evil", "ops", "one", "two", "three", "fleet"}
	for i := range 100 {
		names = append(names, fmt.Sprint("key-", i), fmt.Sprint("by-hand-", i))
	}
	var placement []string
	for _, name := range []string{"a", "b", "close", "one", "two", "three"} {
		placement = append(placement, fmt.Sprintf(`{"name": %q, "strategy": "partition"}`, name))
	}
	seed := fmt.Sprintf(`{"regions": {%q: {"keyPairs": ["%s"], "placementGroups": [{"id": "pg-0123456789abcdef0", "name": "by-id", "strategy": "partition"}, %s]}}}`,
		testRegion, strings.Join(names, `", "`), strings.Join(placement, ", "))
	if err := srv.Seed(strings.NewReader(seed)); err != nil {
		t.Fatal(err)
	}
}

// serve puts an AWS on the wire; nothing reconciles it yet.
func serve(t testing.TB, srv *awsemu.Server, clock *awsemu.ManualClock) *world {
	web := httptest.NewServer(srv)
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); web.Close() })
	return &world{t: t, srv: srv, clock: clock, url: web.URL, sdk: aws.Config{
		Region: testRegion, BaseEndpoint: aws.String(web.URL),
		Credentials: credentials.NewStaticCredentialsProvider("weir", "weir", ""),
		HTTPClient:  httpbody.Client{Next: &http.Client{Transport: transport}},
	}}
}

// restart throws away all that a process remembers, as a crash does.
func (w *world) restart() {
	w.t.Helper()
	w.scope = newScope(w)
}

// newScope is a process of its own in front of the same account.
func newScope(w *world) *reconciler.Scope {
	w.t.Helper()
	cloud, err := awscloud.Open(context.Background(), sdk.Options{
		Region: testRegion, EndpointURL: w.url, Embedded: true, Attempts: 1, Now: w.clock.Now,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return reconciler.NewScope(reconciler.Options{Cloud: cloud, Resolver: resolve.New(cloud, w.clock.Now), Now: w.clock.Now})
}

// pass makes one pass; a failed one is returned as such.
func (w *world) pass(mode reconciler.Mode, targets ...reconciler.Desired) ([]*plan.Report, error) {
	return w.scope.Pass(context.Background(), targets, mode)
}

// must makes one pass that has to work as a whole.
func (w *world) must(mode reconciler.Mode, targets ...reconciler.Desired) []*plan.Report {
	w.t.Helper()
	reports, err := w.pass(mode, targets...)
	if err != nil {
		w.t.Fatal(err)
	}
	return reports
}

// settle makes passes, the clock going on between them, until all have
// converged, and returns how many it took.
func (w *world) settle(targets ...reconciler.Desired) int {
	w.t.Helper()
	n, trouble := w.settled(targets...)
	if trouble != "" {
		w.t.Fatal(trouble)
	}
	return n
}

// settled is settle for those who want to know what the trouble is.
func (w *world) settled(targets ...reconciler.Desired) (passes int, trouble string) {
	var last []*plan.Report
	var err error
	for n := 1; n <= 60; n++ {
		last, err = w.pass(reconciler.Apply, targets...)
		if err == nil && converged(last) {
			return n, ""
		}
		w.clock.Advance(2 * time.Second)
	}
	trouble = fmt.Sprintf("no convergence in 60 passes: %v\n", err)
	for _, r := range last {
		trouble += fmt.Sprintf("%s: err %v, diagnostics %v\n", r.Target, r.Err, r.Diagnostics)
		for _, o := range r.Outcomes {
			trouble += fmt.Sprintf("  %s %s %s: %s %v\n", o.Step.Verb, o.Step.Resource, o.Step.Name, o.Status, o.Err)
		}
		for _, p := range r.Pools {
			trouble += fmt.Sprintf("  pool %s: %s converged=%v ready=%d/%d %s\n", p.Name, p.Phase, p.Converged, p.ReadyReplicas, p.DesiredReplicas, p.FailureMessage)
		}
	}
	return 60, trouble
}

func converged(reports []*plan.Report) bool {
	for _, r := range reports {
		if !r.Converged() {
			return false
		}
	}
	return true
}

// calls returns how many reads and writes the emulator got since the last reset.
func (w *world) calls() (reads, writes int) {
	for _, c := range w.srv.Calls() {
		if c.Write {
			writes++
		} else {
			reads++
		}
	}
	return reads, writes
}

func target(name string, pools ...intent.Pool) reconciler.Desired {
	set := &intent.Set{Pools: pools}
	set.Sort()
	return reconciler.Desired{
		Policy: model.Policy{Instance: testInstance, Target: name, Source: testSource, Sources: []string{testSource},
			Account: "000000000000", Region: testRegion, Prune: model.Prune{Enabled: true}},
		Source: "fleet", Commit: content.Commit{Revision: "abcdef0123456789", Subject: "a change"}, Set: set, Whole: true,
	}
}

func object(kind, name string) intent.ObjectRef {
	return intent.ObjectRef{Kind: kind, Namespace: "default", Name: name}
}

var clusterKey = intent.Key{Namespace: "default", Name: "demo"}

func groupPool(name, instanceType string, replicas int32) intent.Pool {
	return intent.Pool{
		Key: intent.Key{Namespace: "default", Name: name}, Kind: intent.GroupPool, ClusterKey: clusterKey,
		MachinePool: object("MachinePool", name), Infrastructure: object("AWSMachinePool", name),
		Replicas: intent.Number{Value: replicas, Written: true}, Version: "v1.33.0",
		LaunchTemplate: &intent.LaunchTemplate{Name: name, RootDevice: true,
			Image:          intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.33", InstanceType: instanceType},
			SecurityGroups: []intent.Lookup{{Kind: intent.CoreSecurityGroups, Cluster: clusterKey}},
			Tags:           map[string]string{"Name": name},
			Data: intent.TemplateData{InstanceType: instanceType,
				IamInstanceProfile:  &intent.InstanceProfile{Name: "nodes.cluster-api-provider-aws.sigs.k8s.io"},
				BlockDeviceMappings: []intent.BlockDeviceMapping{{Ebs: intent.Ebs{VolumeSize: 40, VolumeType: "gp3"}}}},
		},
		Group: &intent.Group{Name: name, MinSize: 0, MaxSize: 10,
			GroupSettings: intent.GroupSettings{DefaultCooldown: new(int32(300)), DefaultInstanceWarmup: new(int32(0)), CapacityRebalance: new(false)},
			Subnets:       intent.Lookup{Kind: intent.Subnets, Cluster: clusterKey},
			Tags:          map[string]string{"Name": name}, Refresh: intent.Refresh{Strategy: "Rolling"}},
	}
}

func nodegroupPool(name string, replicas int32) intent.Pool {
	return intent.Pool{
		Key: intent.Key{Namespace: "default", Name: name}, Kind: intent.NodegroupPool, ClusterKey: clusterKey,
		MachinePool: object("MachinePool", name), Infrastructure: object("AWSManagedMachinePool", name),
		Replicas: intent.Number{Value: replicas, Written: true},
		LaunchTemplate: &intent.LaunchTemplate{Name: "cp-" + name, Tags: map[string]string{"Name": name},
			Data: intent.TemplateData{InstanceType: "m5.large"}},
		Nodegroup: &intent.Nodegroup{Name: name, ClusterName: "demo",
			Cluster: intent.Lookup{Kind: intent.EKSCluster, Name: "demo"},
			Role:    intent.Lookup{Kind: intent.Role, Name: "eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"},
			Subnets: intent.Lookup{Kind: intent.Subnets, Cluster: clusterKey},
			MinSize: intent.Number{Value: 1}, MaxSize: intent.Number{Value: max(replicas, 1)},
			NodegroupSettings: intent.NodegroupSettings{AMIType: "AL2023_x86_64_STANDARD", CapacityType: "ON_DEMAND", UpdateConfig: intent.UpdateConfig{MaxUnavailable: 1}}},
	}
}

// inventory is what the account holds, for "nothing doubled, nothing leaked".
func (w *world) inventory(targets ...reconciler.Desired) string {
	w.t.Helper()
	w.restart()
	reports := w.must(reconciler.PlanOnly, targets...)
	text := ""
	for _, r := range reports {
		for _, p := range r.Pools {
			text += fmt.Sprintf("%s %s template=%v version=%s replicas=%d ready=%d\n", p.Kind, p.Name, p.LaunchTemplateID != "", p.LaunchTemplateVersion, p.Replicas, p.ReadyReplicas)
		}
		text += fmt.Sprintf("steps=%d\n", len(r.Plan.Steps))
	}
	return text
}

// soaking reports whether make soak runs, which has the time for every case.
func soaking() bool { return os.Getenv("WEIR_SOAK") != "" }

// sampled reports whether a case of a large table runs: make test has one of n, make soak
// all. A case is known by its places in the lists that it is made of. It runs if their sum
// is a multiple of n, so each entry of each list is in some case that runs.
func sampled(n int, places ...int) bool {
	sum := 0
	for _, p := range places {
		sum += p
	}
	return soaking() || sum%n == 0
}

// passes returns the number of passes that a long race takes: n in make soak, and a third of it in make test.
func passes(n int) int {
	if soaking() {
		return n
	}
	return n / 3
}

// soaks skips what takes minutes, unless it was asked for: make soak.
func soaks(t *testing.T, why string) {
	t.Helper()
	if !soaking() {
		t.Skip(why + ": runs with make soak (WEIR_SOAK=1)")
	}
}

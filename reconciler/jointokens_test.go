package reconciler_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

// tokenWorld is a world with a cluster that machines join.
type tokenWorld struct {
	*world
	server  *workloadtest.Server
	cluster *workload.Cluster
}

func newTokenWorld(t *testing.T) *tokenWorld {
	t.Helper()
	w := &tokenWorld{world: newWorld(t), server: workloadtest.New(t)}
	w.server.SetClock(w.clock.Now)
	c, err := workload.Open(w.server.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w.cluster = c
	w.again()
	return w
}

// again is a new process.
func (w *tokenWorld) again() {
	w.restart()
	w.scope.Parameters = w.scope.Cloud.(*awscloud.Cloud)
}

// joining renders a pool of which the KubeadmConfig has no token.
func joining(t testing.TB, name, discovery string) intent.Pool {
	t.Helper()
	text := strings.Replace(writtenText(name, "", "awsLaunchTemplate: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}, iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io}"),
		`{dataSecretName: ""}`, "{configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: "+name+"}}", 1) +
		"\n---\napiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: " + name + "}\nspec: {joinConfiguration: {" + discovery + "}}\n"
	r, err := render.Render(context.Background(), tree.Map{"pool.yaml": text}, "pool.yaml", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Set.Pools) != 1 || len(r.Set.Pools[0].Blocked) > 0 {
		t.Fatalf("the manifests give %d pools: %v\n%s", len(r.Set.Pools), r.Diags, text)
	}
	return r.Set.Pools[0]
}

func (w *tokenWorld) target(pools ...intent.Pool) reconciler.Desired {
	d := target("demo", pools...)
	d.Tokens = w.cluster
	d.Policy.JoinTokens = model.JoinTokens{Prefix: "/weir"}
	d.Policy.Prune.Count = 10
	return d
}

func (w *tokenWorld) ssm() *ssm.Client {
	return ssm.NewFromConfig(w.sdk)
}

// parameter is what a machine of the pool would fetch, empty if there is none.
func (w *tokenWorld) parameter(pool string) string {
	w.t.Helper()
	out, err := w.ssm().GetParameters(context.Background(), &ssm.GetParametersInput{Names: []string{"/weir/prod/demo/default/" + pool}, WithDecryption: aws.Bool(true)})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(out.Parameters) == 0 {
		return ""
	}
	if out.Parameters[0].Type != "SecureString" {
		w.t.Errorf("the parameter is a %s", out.Parameters[0].Type)
	}
	return aws.ToString(out.Parameters[0].Value)
}

// joins reports whether a machine that starts now could join.
func (w *tokenWorld) joins(pool string) bool {
	token, _, _ := strings.Cut(w.parameter(pool), " ")
	id, part, _ := strings.Cut(token, ".")
	s := w.server.Secrets()["kube-system/bootstrap-token-"+id]
	until, err := time.Parse(time.RFC3339, s["expiration"])
	return err == nil && s["token-secret"] == part && until.After(w.clock.Now())
}

func (w *tokenWorld) writes() (out []string) {
	for _, c := range w.srv.Calls() {
		if c.Write {
			out = append(out, c.Operation)
		}
	}
	return out
}

// TestTokensDoNotChurnVersions lets tokens rotate for days: machines can join all
// the time, and the launch template stays at its first version.
func TestTokensDoNotChurnVersions(t *testing.T) {
	w := newTokenWorld(t)
	d := w.target(joining(t, "web", ""))
	w.settle(d)
	if !w.joins("web") {
		t.Fatal("no machine can join")
	}
	tokens := map[string]bool{}
	for range 20 {
		w.clock.Advance(4 * time.Hour)
		w.srv.ResetCalls()
		w.must(reconciler.Apply, d)
		for _, op := range w.writes() {
			if op != "PutParameter" {
				t.Errorf("the write %s", op)
			}
		}
		if !w.joins("web") {
			t.Error("no machine can join")
		}
		tokens[w.parameter("web")] = true
	}
	if n := w.numbers("web"); !slices.Equal(n, []int64{1}) {
		t.Errorf("versions %v", n)
	}
	if len(tokens) < 5 {
		t.Errorf("%d tokens in 80 hours", len(tokens))
	}
	data := string(w.userDataOf("web"))
	if !strings.Contains(data, "parameter=/weir/prod/demo/default/web\n") || !strings.Contains(data, "region=eu-west-1\n") || strings.Contains(data, "\x00") {
		t.Errorf("user data:\n%s", data)
	}
	for token := range tokens {
		if strings.Contains(data, token[:23]) {
			t.Error("user data holds a token")
		}
	}
	// A pass at rest writes nothing and asks nothing about tokens.
	w.srv.ResetCalls()
	w.must(reconciler.Apply, d)
	reads, writes := w.calls()
	if reads != 2 || writes != 0 {
		t.Errorf("%d reads and %d writes at rest", reads, writes)
	}
}

func (w *tokenWorld) userDataOf(template string) []byte {
	w.t.Helper()
	text := aws.ToString(w.versions(template).LaunchTemplateVersions[0].LaunchTemplateData.UserData)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return []byte(intent.DecodeUserData(raw))
}

// TestPlanningKeepsNoTokens checks that looking changes nothing anywhere, nor do
// targets that are suspended, only report, or have paused pools.
func TestPlanningKeepsNoTokens(t *testing.T) {
	w := newTokenWorld(t)
	d := w.target(joining(t, "web", ""))
	w.must(reconciler.PlanOnly, d)
	suspended, reports := d, d
	suspended.Policy.Suspended, reports.Policy.ReportOnly = true, true
	w.must(reconciler.Apply, suspended)
	w.must(reconciler.Apply, reports)
	paused := joining(t, "web", "")
	paused.Paused = true
	w.must(reconciler.Apply, w.target(paused))
	if len(w.server.Secrets()) != 0 || w.parameter("web") != "" || len(w.writes()) != 0 {
		t.Errorf("Secrets %v, writes %v", w.server.Secrets(), w.writes())
	}
	for _, line := range w.server.Log() {
		if strings.HasPrefix(line, "POST") || strings.HasPrefix(line, "DELETE") {
			t.Error(line)
		}
	}
	// A pool that is paused later keeps what it has, also where its time is over.
	w.settle(d)
	before := w.parameter("web")
	w.clock.Advance(20 * time.Hour)
	w.must(reconciler.Apply, w.target(paused))
	if w.parameter("web") != before {
		t.Error("a paused pool's parameter was changed")
	}
}

func TestPoolWaitsForItsToken(t *testing.T) {
	w := newTokenWorld(t)
	d := w.target(joining(t, "web", ""), groupPool("other", "m5.large", 1))
	w.server.Fail(workloadtest.Fault{Status: 503})
	var r *plan.Report
	for range 5 {
		r = w.must(reconciler.Apply, d)[0]
		w.clock.Advance(time.Second)
	}
	if !slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == "join-token-failed" }) {
		t.Errorf("diagnostics %v", r.Diagnostics)
	}
	for _, p := range r.Pools {
		if joined := p.Name == "other"; p.InfrastructureReady != joined || p.BootstrapReady != joined {
			t.Errorf("pool %s: %+v", p.Name, p)
		}
	}
	if len(w.server.Secrets()) != 0 {
		t.Error("a token was made")
	}
	w.server.Heal()
	w.clock.Advance(2 * time.Minute)
	w.settle(d)
	if !w.joins("web") {
		t.Error("no machine can join")
	}
}

func TestTokenGoesAfterTheGroup(t *testing.T) {
	w := newTokenWorld(t)
	both := w.target(joining(t, "web", ""), joining(t, "api", ""))
	w.settle(both)
	one := w.target(joining(t, "api", ""))
	gone := -1
	for pass := range 40 {
		w.must(reconciler.Apply, one)
		standing := w.group("web")
		if standing && !w.joins("web") {
			t.Error("the token went before the group")
		}
		if w.parameter("web") == "" {
			gone = pass
			break
		}
		w.clock.Advance(2 * time.Second)
	}
	if gone < 0 {
		t.Fatal("the parameter stays")
	}
	w.settle(one)
	if n := len(w.server.Secrets()); n != 1 || !w.joins("api") {
		t.Errorf("%d tokens are left", n)
	}
	// Without pruning all of it stays.
	none := w.target()
	none.Policy.Prune = model.Prune{}
	w.must(reconciler.Apply, none)
	w.clock.Advance(20 * time.Hour)
	w.must(reconciler.Apply, none)
	if !w.joins("api") {
		t.Error("machines of a group that was left cannot join")
	}
}

func (w *tokenWorld) group(name string) bool {
	w.t.Helper()
	s, err := w.scope.Cloud.Observe(context.Background(), observed.Query{Owner: testInstance, Groups: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Groups[name].Name != ""
}

// TestTokensThroughFaults stops the process at each write to Systems Manager,
// before and after its effect: the next one ends with one token.
func TestTokensThroughFaults(t *testing.T) {
	t.Parallel()
	for _, kind := range []awsemu.FaultKind{awsemu.FailBefore, awsemu.LoseAnswer} {
		for _, op := range []string{"DescribeParameters", "PutParameter"} {
			for _, code := range []string{"InternalServerError", "AccessDeniedException", "ThrottlingException", "TooManyUpdates"} {
				t.Run(fmt.Sprint(kind, op, code), func(t *testing.T) {
					w := newTokenWorld(t)
					d := w.target(joining(t, "web", ""))
					w.srv.Faults().Add(awsemu.Fault{Kind: kind, Operation: op, Code: code, Times: 1, Message: "canary"})
					w.must(reconciler.Apply, d)
					w.again()
					w.settle(d)
					if !w.joins("web") || len(w.server.Secrets()) != 1 {
						t.Errorf("%d tokens", len(w.server.Secrets()))
					}
				})
			}
		}
	}
}

// TestForeignParameterStays checks that a parameter of the wanted name that
// somebody else made is a conflict, and that the pool waits.
func TestForeignParameterStays(t *testing.T) {
	w := newTokenWorld(t)
	name := "/weir/prod/demo/default/web"
	put := &ssm.PutParameterInput{Name: &name, Value: aws.String("theirs"), Type: "SecureString"}
	if _, err := w.ssm().PutParameter(context.Background(), put); err != nil {
		t.Fatal(err)
	}
	r := w.must(reconciler.Apply, w.target(joining(t, "web", "")))[0]
	if !slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == "join-token-conflict" }) || w.parameter("web") != "theirs" || w.group("web") {
		t.Errorf("%v", r.Diagnostics)
	}
}

// TestTargetWithoutKubeconfig checks that a pool without a token is an error where
// nobody keeps one, and that tokens of one's own go on working.
func TestTargetWithoutKubeconfig(t *testing.T) {
	w := newTokenWorld(t)
	r := w.must(reconciler.Apply, target("demo", joining(t, "web", "")))[0]
	if !slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool {
		return d.Code == "join-token-not-kept" && strings.Contains(d.Detail, "kubeconfigFile") && strings.Contains(d.Detail, "dataSecretName")
	}) || len(r.Plan.Steps) != 0 {
		t.Errorf("%v", r.Diagnostics)
	}
	own := joining(t, "web", "discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: '10.0.0.1:6443', unsafeSkipCAVerification: true}}")
	w.settle(target("demo", own))
	if !strings.Contains(string(w.userDataOf("web")), "abcdef.0123456789abcdef") {
		t.Error("the token of the manifests is not in the user data")
	}
	// With a kubeconfig such a pool gets no other.
	w.settle(w.target(own))
	if len(w.server.Secrets()) != 0 {
		t.Error("a token was made for a pool that has one")
	}
}

// TestTwoWeirsKeepOneToken has two processes work at once.
func TestTwoWeirsKeepOneToken(t *testing.T) {
	w := newTokenWorld(t)
	d := w.target(joining(t, "web", ""))
	first := w.scope
	w.again()
	second := w.scope
	for range 10 {
		for _, s := range []*reconciler.Scope{first, second} {
			w.scope = s
			w.must(reconciler.Apply, d)
		}
		w.clock.Advance(2 * time.Second)
	}
	if !w.joins("web") || len(w.server.Secrets()) != 1 {
		t.Errorf("%d tokens", len(w.server.Secrets()))
	}
}

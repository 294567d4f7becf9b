package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// A plan names the pools that stay because of a fault, and what becomes of them meanwhile.
func TestAPlanNamesWhatStays(t *testing.T) {
	broken := func(name, does string, machines int32) plan.PoolStatus {
		return plan.PoolStatus{Namespace: "default", Name: name, Replicas: machines, FailureMessage: "web.yaml:3:1: no", Conditions: []plan.Condition{{Type: "Ready", Message: "web.yaml:3:1: no; " + does}}}
	}
	const nothing = "weir changes nothing of the pool until a commit fixes it"
	r := &plan.Report{Target: "prod", Region: "eu-west-1", Plan: &plan.Plan{Target: "prod"}, Pools: []plan.PoolStatus{
		broken("a", nothing, 2), broken("b", "the pool is held to abc1234: weir corrects drift", 1), broken("c", nothing, 1), broken("ready", "another failure", 1),
		{Namespace: "default", Name: "old", Replicas: 3, Conditions: []plan.Condition{{Type: "Ready", Reason: plan.ReasonKept, Message: "the followed commit does not have the pool"}}},
	}}
	var out bytes.Buffer
	Printer{W: &out}.Plan(r)
	for _, want := range []string{
		"  2 pools kept: default/a (2 machines), default/c (1 machine): " + nothing + "\n",
		"  1 pool kept: default/b (1 machine): the pool is held to abc1234: weir corrects drift\n",
		"  1 pool kept: default/old (3 machines): the followed commit does not have the pool\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "default/ready") {
		t.Errorf("a pool with a failure of AWS is among them:\n%s", out.String())
	}
	r.Pools = nil
	for range 10 {
		r.Pools = append(r.Pools, broken("x", nothing, 1))
	}
	out.Reset()
	Printer{W: &out}.Plan(r)
	if !strings.Contains(out.String(), "10 pools kept: ") || !strings.Contains(out.String(), " and 2 more: ") {
		t.Errorf("many:\n%s", out.String())
	}
}

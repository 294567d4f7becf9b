package doctor_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awscloud/doctor"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
	"github.com/weir-gitops/weir/reconciler/iampolicy/policytest"
)

const nodeRole = "arn:aws:iam::000000000000:role/nodes.cluster-api-provider-aws.sigs.k8s.io"

// printed is the policy that the page of assumptions asks for: what weir policy prints with
// --account, --region, --instance weir-doctor, --apply and --pass-role.
func printed(roles ...string) iampolicy.Document {
	scope := iampolicy.Scope{Partition: "aws", Account: "000000000000", Regions: []string{region}, Instance: doctor.Instance, Alarms: true, Drains: true}
	for _, arn := range roles {
		scope.Pass(arn)
	}
	return iampolicy.Make(iampolicy.Apply, scope)
}

func (p *patient) under(t *testing.T, d iampolicy.Document) *patient {
	t.Helper()
	return newPatient(t, func(next http.Handler) http.Handler { return policytest.Enforce(t, next.(*awsemu.Server), d, next) })
}

// TestAVisitPassesUnderThePolicyThatItAsksFor sees all that a visit sees that may do
// everything, and leaves nothing behind.
func TestAVisitPassesUnderThePolicyThatItAsksFor(t *testing.T) {
	free := verdicts(newPatient(t, nil).visit(t.Context(), nil))
	p := (&patient{}).under(t, printed(nodeRole))
	r := p.visit(t.Context(), nil)
	for _, f := range r.Findings {
		want := free[f.Name]
		if f.Name == "denied-where-missing" {
			want = doctor.AsAssumed // which only such a policy shows
		}
		if f.Verdict != want {
			t.Errorf("%s is %s, and without the policy %s: %s", f.Name, f.Verdict, want, strings.Join(f.Evidence, "; "))
		}
		about := []string{"denied-where-missing", "codes-told-apart-by-text"} // where a write to what is not there is denied
		if said := strings.Join(f.Evidence, "; "); strings.Contains(said, "is not authorized") && !slices.Contains(about, f.Name) {
			t.Errorf("%s is denied: %s", f.Name, said)
		}
	}
	if len(r.Left) > 0 {
		t.Errorf("left: %v", r.Left)
	}
	p.empty()
}

// TestAVisitWithoutTheNodeRole: who leaves --pass-role out is told which permission is
// missing, and nothing is taken for something else.
func TestAVisitWithoutTheNodeRole(t *testing.T) {
	p := (&patient{}).under(t, printed())
	r := p.visit(t.Context(), nil)
	for _, f := range r.Findings {
		said := strings.Join(f.Evidence, "; ")
		if f.Verdict == doctor.Differs {
			t.Errorf("%s differs: %s", f.Name, said)
		}
		if f.Name == "nodegroup-defaults" && (f.Verdict != doctor.NotSeen || !strings.Contains(said, "iam:PassRole")) {
			t.Errorf("%s is %s: %s", f.Name, f.Verdict, said)
		}
	}
	p.empty()
}

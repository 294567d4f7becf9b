package workload_test

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

// A server that repeats the credential leads to no part of it in an error, also where the
// bound of what is shown cuts through it.
func TestARepeatedCredentialIsNotQuoted(t *testing.T) {
	for _, before := range []int{0, 290, 300 - len(workloadtest.Token) + 1} {
		server := workloadtest.New(t)
		c := open(t, server.Kubeconfig(t))
		server.Fail(workloadtest.Fault{Status: 400, Body: `{"kind":"Status","message":"` + strings.Repeat("x", before) + workloadtest.Token + ` is no token"}`})
		_, err := c.Nodes(t.Context())
		if err == nil || strings.Contains(err.Error(), workloadtest.Token[:3]) {
			t.Errorf("after %d bytes: %v", before, err)
		}
	}
}

// A webhook or a policy that refuses a Secret may quote it.
func TestARefusedSecretIsQuotedByNobody(t *testing.T) {
	rbac := `secrets is forbidden: User \"weir\" cannot create resource \"secrets\" in API group \"\" in the namespace \"kube-system\"`
	for message, said := range map[string]string{
		rbac: `cannot create resource "secrets"`,
		`secrets \"a\" is forbidden: exceeded quota: few, used: secrets=9`:                                                "exceeded quota",
		`admission webhook \"audit\" denied the request: canary-of-the-secret in Secret a`:                                "Forbidden",
		`admission webhook \"audit\" denied the request: canary-of-the-secret cannot create resource \"secrets\"`:         "Forbidden",
		`secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: canary-of-the-secret`: "Forbidden",
		`canary-of-the-secret`: "Forbidden",
	} {
		for status, kind := range map[int]workload.Kind{401: workload.Unauthorized, 403: workload.Forbidden} {
			server := workloadtest.New(t)
			c := open(t, server.Kubeconfig(t))
			server.Fail(workloadtest.Fault{Status: status, Body: `{"kind":"Status","reason":"Forbidden","message":"` + message + `"}`})
			_, err := c.CreateSecret(t.Context(), secret("a"))
			if workload.KindOf(err) != kind || strings.Contains(err.Error(), "canary") || status == 403 && !strings.Contains(err.Error(), said) {
				t.Errorf("%d: %v", status, err)
			}
		}
	}
}

package fleet

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/targetspec"
)

// Targets whose endpoint is spelled in two ways are of one scope: two scopes would each
// see strangers in what the other made, and two weirs would own one account.
func TestTwoSpellingsOfAnEndpointAreOneScope(t *testing.T) {
	t.Parallel()
	f := &Fleet{o: Options{Config: &Config{Endpoint: "http://AWS.test:80/"}}}
	for _, spelled := range []string{"", "http://aws.test", "http://aws.test/"} {
		if got := f.o.endpoint(&targetspec.Target{EndpointURL: spelled}); got != "http://aws.test" {
			t.Errorf("%q is %s", spelled, got)
		}
	}
}

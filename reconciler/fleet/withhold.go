package fleet

import (
	"maps"

	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
)

// passing hides the secret values of proposals until values of other proposals take their room. Its owner
// keeps these values apart from those of the followed commits, so that a proposal cannot show them again.
type passing struct {
	registry *redact.Registry
	owner    string
}

func (p passing) hide(owner string, values *secret.Set) {
	if p.registry != nil {
		p.registry.SetPassing(p.owner+" "+owner, values)
	}
}

// withheld is the placeholder for a secret value in an untrusted proposal.
const withheld = "weir-withheld-secret"

// withhold replaces the secrets of an item of an untrusted proposal by placeholders. Existing builds stay
// valid for the item, because its vars and keys do not change.
func (it *item) withhold() {
	it.plain = maps.Clone(it.vars)
	for _, name := range it.secretVars {
		it.plain[name] = withheld
		it.hidden = true
	}
	it.keyless = sops.New(sops.Options{Placeholders: true})
}

package fleet

import (
	"maps"

	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
)

// passing hides values for as long as others of proposals do not take their room. Its
// owner keeps a proposal from taking back values of what is followed.
type passing struct {
	registry *redact.Registry
	owner    string
}

func (p passing) hide(owner string, values *secret.Set) {
	if p.registry != nil {
		p.registry.SetPassing(p.owner+" "+owner, values)
	}
}

// withheld stands in manifests where an untrusted proposal uses a secret value.
const withheld = "weir-withheld-secret"

// withhold takes from an item what an untrusted proposal may not see. It stays the
// item that it was for what is rendered already.
func (it *item) withhold() {
	it.plain = maps.Clone(it.vars)
	for _, name := range it.secretVars {
		it.plain[name] = withheld
		it.hidden = true
	}
	it.keyless = sops.New(sops.Options{Placeholders: true})
}

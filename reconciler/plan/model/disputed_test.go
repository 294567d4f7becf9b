package model

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// While members read the configuration in different ways, a resource stays the target's that
// its tags name; the one of the own target is not affected.
func TestADisputedResourceStays(t *testing.T) {
	p := Policy{Instance: "prod", Target: "b", Source: "s", Disputed: "the configuration of the member m2 differs in targets"}
	tags := map[string]string{observed.TagOwner: "prod", observed.TagSource: "s", observed.TagTarget: "a"}
	o := p.Owns(tags, "b", true)
	if o.Ours || !strings.Contains(o.Why, `the target "a"`) || !strings.Contains(o.Why, "m2 differs in targets") {
		t.Errorf("got %+v", o)
	}
	if p.Disputed = ""; !p.Owns(tags, "b", true).Ours {
		t.Error("it is not taken once the configurations agree")
	}
	p.Disputed, p.Target = "they differ", "a"
	if !p.Owns(tags, "a", true).Ours {
		t.Error("a target lost what it has")
	}
}

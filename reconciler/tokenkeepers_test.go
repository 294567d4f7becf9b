package reconciler

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// A target keeps its keeper, with the tokens that it knows, until its cluster is another one.
func TestTokenKeepersAreKept(t *testing.T) {
	type cluster struct {
		jointoken.Cluster
		name string
	}
	first, second := &cluster{name: "a"}, &cluster{name: "b"}
	of := func(target string, c jointoken.Cluster) *Desired {
		return &Desired{Policy: model.Policy{Target: target}, Tokens: c}
	}
	var k tokenKeepers
	blue := k.of(of("blue", first), &Options{})
	if blue != k.of(of("blue", first), &Options{}) {
		t.Error("the same cluster has two keepers")
	}
	if blue == k.of(of("blue", second), &Options{}) {
		t.Error("another cluster has the same keeper")
	}
	green := k.of(of("green", first), &Options{})
	k.forget(map[string]bool{"green": true, "blue": false})
	if green != k.of(of("green", first), &Options{}) || len(k.keepers) != 1 {
		t.Errorf("kept: %v", k.keepers)
	}
}

package reconciler_test

import (
	"context"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// The origin of a value with members is where the object has it, unless another file sets a
// member that changes: then it is that line.
func TestTheOriginOfAMappingIsThePatchThatDecides(t *testing.T) {
	infra := intent.ObjectRef{Kind: "AWSMachinePool", Name: "web"}
	preferences := intent.Path{"spec", "refreshPreferences"}
	lines := map[string]diag.Position{
		preferences.String():                              {File: "base/pool.yaml", Line: 9},
		preferences.Join("strategy").String():             {File: "base/pool.yaml", Line: 10},
		preferences.Join("minHealthyPercentage").String(): {File: "prod/patch.yaml", Line: 4},
	}
	d := reconciler.Desired{Origins: func(_ context.Context, asked []intent.Question) []diag.Position {
		out := make([]diag.Position, len(asked))
		for i, q := range asked {
			out[i] = lines[q.Paths[0].String()]
		}
		return out
	}}
	for name, tt := range map[string]struct {
		from, to any
		want     string
	}{
		"a patch sets a member":       {nil, map[string]any{"strategy": "Rolling", "minHealthyPercentage": 90}, "prod/patch.yaml"},
		"the base sets all":           {nil, map[string]any{"strategy": "Rolling"}, "base/pool.yaml"},
		"the patched one is the same": {map[string]any{"minHealthyPercentage": 90}, map[string]any{"strategy": "Rolling", "minHealthyPercentage": 90}, "base/pool.yaml"},
		"a member without a place":    {nil, map[string]any{"instanceWarmup": 30}, "base/pool.yaml"},
	} {
		p := &plan.Plan{Steps: []step.Step{{Changes: []step.Change{{Field: "refreshPreferences", From: tt.from, To: tt.to, Object: infra, Path: preferences}}}}}
		reconciler.AttachOrigins(t.Context(), p, nil, d)
		if at := p.Steps[0].Changes[0].Origin; at == nil || at.File != tt.want {
			t.Errorf("%s: %v, want %s", name, at, tt.want)
		}
	}
}

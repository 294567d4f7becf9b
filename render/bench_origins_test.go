package render_test

import (
	"context"
	"testing"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// BenchmarkOriginsOfAKeptRender asks a kept overlay of 300 pools for a field of each, as
// the plan of a change of all of them does.
func BenchmarkOriginsOfAKeptRender(b *testing.B) {
	benchmarkOrigins(b, func(*render.Result) func(context.Context, []intent.Question) []diag.Position { return nil })
}

// BenchmarkOriginsOfARender asks the render itself, as the plan of one directory does.
func BenchmarkOriginsOfARender(b *testing.B) {
	benchmarkOrigins(b, func(r *render.Result) func(context.Context, []intent.Question) []diag.Position { return r.Origins })
}

func benchmarkOrigins(b *testing.B, of func(*render.Result) func(context.Context, []intent.Question) []diag.Position) {
	ctx, m := context.Background(), fleetTree(1, 300, true)
	for b.Loop() {
		r, err := render.Render(ctx, m, "overlays/c000", render.Options{})
		if err != nil || len(r.Set.Pools) != 300 {
			b.Fatal(err, r.Diags)
		}
		var asked []intent.Question
		for _, p := range r.Set.Pools {
			asked = append(asked, intent.Question{Object: p.Infrastructure, Paths: []intent.Path{{"spec", "maxSize"}}})
		}
		origins := of(r)
		if origins == nil {
			k, err := r.Keep(render.NewShared(nil))
			if err != nil {
				b.Fatal(err)
			}
			origins = func(ctx context.Context, asked []intent.Question) []diag.Position {
				return k.Origins(ctx, m, "overlays/c000", render.Options{}, asked)
			}
		}
		if known := slicesKnown(origins(ctx, asked)); known != len(asked) {
			b.Fatal(known)
		}
	}
}

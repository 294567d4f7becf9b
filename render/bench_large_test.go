package render_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree/treetest"
)

// BenchmarkOneOverlay renders one overlay of many pools, in this process, and does with
// the render what commands do: the CPU time of a pool must be the same for each size.
func BenchmarkOneOverlay(b *testing.B) {
	ctx := context.Background()
	readable := func(p diag.Position) diag.Position { return p }
	for _, n := range []int{100, 500, 2000} {
		t := treetest.New(treetest.Pools(n, "namespace: other\n"))
		made := func(b *testing.B) *render.Result {
			r, err := render.Render(ctx, t, ".", render.Options{})
			if err != nil || len(r.Set.Pools) != n {
				b.Fatal(err, r.Diags)
			}
			return r
		}
		var asked []intent.Question
		for _, p := range made(b).Set.Pools {
			asked = append(asked, intent.Question{Object: p.Infrastructure, Paths: []intent.Path{{"spec", "maxSize"}}})
		}
		for _, does := range []struct {
			name string
			do   func(b *testing.B, r *render.Result) error
		}{
			{"render", nil},
			{"yaml", func(_ *testing.B, r *render.Result) error { r.ShownYAML(); return nil }},
			{"intents", func(_ *testing.B, r *render.Result) error { _, err := r.IntentsYAML(readable); return err }},
			{"keep", func(_ *testing.B, r *render.Result) error { _, err := r.Keep(render.NewShared(nil)); return err }},
			{"origins", func(b *testing.B, r *render.Result) error {
				if known := slicesKnown(r.Origins(ctx, asked)); known != n {
					b.Fatal(known)
				}
				return nil
			}},
		} {
			b.Run(fmt.Sprintf("%s/%d", does.name, n), func(b *testing.B) {
				b.ReportAllocs()
				var took time.Duration
				for b.Loop() {
					b.StopTimer()
					var r *render.Result
					if does.do != nil {
						r = made(b)
					}
					b.StartTimer()
					from := spent()
					if does.do == nil {
						made(b)
					} else if err := does.do(b, r); err != nil {
						b.Fatal(err)
					}
					took += spent() - from
				}
				b.ReportMetric(float64(took.Microseconds())/float64(b.N)/float64(n), "cpu-µs/pool")
			})
		}
	}
}

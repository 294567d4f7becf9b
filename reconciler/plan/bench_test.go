package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/intent"
)

// BenchmarkComputeSteady is the planner's share of a steady pass: nothing
// changed, every pool is compared. The budget of a whole pass is 0.1 ms of CPU
// a pool.
func BenchmarkComputeSteady(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("pools=%d", n), func(b *testing.B) {
			var pools []intent.Pool
			for i := range n {
				p := groupPool(fmt.Sprintf("p%05d", i), "m5.large", 3)
				p.LaunchTemplate.UserData = intent.UserData{Text: strings.Repeat("x", 4096)}
				pools = append(pools, p)
			}
			m, in := newModel(), testInput(pools...)
			converge(b, m, in)
			state := m.observe(in.Policy.Instance)
			in.State = &state
			for b.Loop() {
				if p, needs := Compute(in); !p.Empty() || !needs.Empty() {
					b.Fatal("the pass is not steady")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/pool")
		})
	}
}

// Many pools of one template cost a resting pass what as many templates do, be it one
// content or one for each.
func BenchmarkSharedTemplateAtRest(b *testing.B) {
	for _, contents := range []int{1, 10, 500} {
		b.Run(fmt.Sprint(contents), func(b *testing.B) {
			m := newModel()
			var pools []string
			for i := range 500 {
				pools = append(pools, fmt.Sprintf("p%d=%d", i, i%contents))
			}
			in := testInput(wanting(0, pools...)...)
			for range 3 {
				p, _ := m.pass(b, in)
				m.apply(p)
			}
			p, in := m.pass(b, in)
			if p.Runnable() != 0 {
				b.Fatal("it does not rest")
			}
			for b.Loop() {
				Compute(in)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/500, "µs/pool")
		})
	}
}

package etcd_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/coord/etcd"
)

// BenchmarkCalls counts the requests a member and minute, where two share 200 scopes that
// write a result of 2 KB each minute.
func BenchmarkCalls(b *testing.B) {
	b.Run("at rest", func(b *testing.B) { calls(b, 0) })
	b.Run("a result a minute", func(b *testing.B) { calls(b, 2<<10) })
}

func calls(b *testing.B, size int) {
	const d = time.Minute
	for b.Loop() {
		var mu sync.Mutex
		calls := map[string]int{}
		before := map[string]int(nil)
		done := false
		instance := fmt.Sprint("load", instances.Add(1)) // of both
		coordtest.Load(b, func(int) coord.Store {
			s, err := etcd.Open(b.Context(), etcd.Config{Instance: instance, Endpoints: []string{address(server)}})
			if err != nil {
				b.Fatal(err)
			}
			s.Counting(func(name string) {
				mu.Lock()
				defer mu.Unlock()
				if !done {
					calls[name]++
				}
			})
			b.Cleanup(func() { _ = s.Close() })
			return s
		}, 200, time.Minute, size, d, func() {
			mu.Lock()
			defer mu.Unlock()
			if before == nil {
				before = maps.Clone(calls)
				return
			}
			done = true
			for name, n := range calls {
				calls[name] = n - before[name]
			}
		})
		total := 0
		for name, n := range calls {
			total += n
			b.ReportMetric(float64(n)/d.Minutes()/2, name+"/member-min")
		}
		b.ReportMetric(float64(total)/d.Minutes()/2, "calls/member-min")
	}
}

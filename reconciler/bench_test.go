package reconciler_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/intent"
)

// fleet returns n group pools, in one target.
func fleet(n int) reconciler.Desired {
	pools := make([]intent.Pool, 0, n)
	for i := range n {
		name := fmt.Sprintf("p%05d", i)
		p := groupPool(name, "m5.large", 1)
		// The tags that Cluster API Provider AWS puts on a group, and two of a team's
		// own.
		p.Group.Tags = map[string]string{
			"Name": name, "sigs.k8s.io/cluster-api-provider-aws/cluster/demo": "owned", "sigs.k8s.io/cluster-api-provider-aws/role": "node",
			"kubernetes.io/cluster/demo": "owned", "team": "platform", "cost-center": "4711",
		}
		p.LaunchTemplate.Tags = p.Group.Tags
		pools = append(pools, p)
	}
	return target("blue", pools...)
}

// BenchmarkSteadyPass is a pass with nothing to do, over the wire and back. The
// reads are those of the formula, ⌈N/100⌉ + ⌈M/200⌉, and there is no write. The
// emulator answers in the same process, so cpu-ms/pass counts both sides; the
// budget of 0.1 ms a pool is weir's side alone, which
// BenchmarkSteadyPassOutside measures.
func BenchmarkSteadyPass(b *testing.B) {
	for _, n := range []int{100, 500, 1000, 10000} {
		b.Run(fmt.Sprintf("groups=%d", n), func(b *testing.B) {
			w := newWorld(b)
			blue := fleet(n)
			w.settle(blue)
			w.srv.ResetCalls()
			runtime.GC()
			before := cpu(b)
			passes := 0
			for b.Loop() {
				r := w.must(reconciler.Apply, blue)[0]
				if !r.Converged() {
					b.Fatal("the pass is not steady")
				}
				passes++
			}
			spent := cpu(b) - before
			reads, writes := w.calls()
			if want := passes * ((n+99)/100 + (n+199)/200); reads != want || writes != 0 {
				b.Fatalf("%d passes: %d reads and %d writes, want %d and 0", passes, reads, writes, want)
			}
			b.ReportMetric(float64(reads)/float64(passes), "reads/pass")
			b.ReportMetric(float64(spent.Milliseconds())/float64(passes), "cpu-ms/pass")
			b.ReportMetric(float64(spent.Microseconds())/float64(passes)/float64(n), "cpu-µs/pool")
		})
	}
}

// BenchmarkFirstConvergence makes 500 pools from nothing: two writes each.
func BenchmarkFirstConvergence(b *testing.B) {
	const n = 500
	for b.Loop() {
		w := newWorld(b)
		blue := fleet(n)
		passes := w.settle(blue)
		if _, writes := w.calls(); writes != 2*n {
			b.Fatalf("writes: got %d, want %d", writes, 2*n)
		}
		reads, writes := w.calls()
		b.ReportMetric(float64(passes), "passes")
		b.ReportMetric(float64(reads), "reads")
		b.ReportMetric(float64(writes), "writes")
	}
}

// cpu is what the process has used so far.
func cpu(b testing.TB) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

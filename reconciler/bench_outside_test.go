package reconciler_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/resolve"
)

// emulatorProcess is the variable that turns the test binary into an emulator.
const emulatorProcess = "WEIR_TEST_EMULATOR_PROCESS"

// serveEmulator prints its address and serves until standard input ends.
func serveEmulator() {
	srv, err := awsemu.New(awsemu.Options{Quotas: map[string]int{"auto-scaling-groups": 20000, "launch-templates": 20000}})
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + l.Addr().String())
	go func() { _ = http.Serve(l, srv) }() //nolint:gosec // a test's own server on loopback
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startOutside starts an emulator in a process of its own.
func startOutside(b *testing.B) (url string) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), emulatorProcess+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// BenchmarkSteadyPassOutside is the budget's figure: CPU and memory of weir's
// side alone, the emulator being another process. 0.1 ms a pool; 1 s and 256 MiB
// for 10,000 groups.
func BenchmarkSteadyPassOutside(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("groups=%d", n), func(b *testing.B) {
			cloud, err := awscloud.Open(context.Background(), sdk.Options{Region: testRegion, EndpointURL: startOutside(b), Embedded: true})
			if err != nil {
				b.Fatal(err)
			}
			scope := reconciler.NewScope(reconciler.Options{Cloud: cloud, Resolver: resolve.New(cloud, nil)})
			targets := []reconciler.Desired{fleet(n)}
			pass := func() bool {
				reports, err := scope.Pass(context.Background(), targets, reconciler.Apply)
				if err != nil {
					b.Fatal(err)
				}
				return converged(reports)
			}
			for deadline := time.Now().Add(2 * time.Minute); !pass(); time.Sleep(200 * time.Millisecond) {
				if time.Now().After(deadline) {
					b.Fatal("no convergence in 2 minutes")
				}
			}
			runtime.GC()
			debug.FreeOSMemory()
			resetPeak()
			before, calls := cpu(b), cloud.CallCounts()
			passes := 0
			for b.Loop() {
				if !pass() {
					b.Fatal("the pass is not steady")
				}
				passes++
			}
			spent := cpu(b) - before
			listed := 0
			for name, n := range cloud.CallCounts() {
				switch n -= calls[name]; {
				case name == "autoscaling:DescribeAutoScalingGroups" || name == "ec2:DescribeLaunchTemplates":
					listed += n
				case n > 1: // a lookup whose answer has expired is read again
					b.Fatalf("%d calls of %s in %d passes", n, name, passes)
				}
			}
			if want := passes * ((n+99)/100 + (n+199)/200); listed != want {
				b.Fatalf("lists: got %d, want %d", listed, want)
			}
			b.ReportMetric(float64(spent.Milliseconds())/float64(passes), "cpu-ms/pass")
			b.ReportMetric(float64(spent.Microseconds())/float64(passes)/float64(n), "cpu-µs/pool")
			b.ReportMetric(memoryMiB("VmHWM"), "peak-MiB")
			// Pages of the program itself: the test's is three times weir's.
			b.ReportMetric(memoryMiB("RssFile"), "program-MiB")
		})
	}
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// resetPeak has the kernel count the peak of resident memory anew (proc(5),
// clear_refs); elsewhere than on Linux it does nothing.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600) }

// memoryMiB is a figure of proc_pid_status(5), such as VmHWM, the peak of resident
// memory; 0 where the system does not tell.
func memoryMiB(field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if _, err := fmt.Sscanf(line, field+": %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	return 0
}

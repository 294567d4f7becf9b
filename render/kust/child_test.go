package kust_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/kust/worker"
)

// Builds of hostile trees run in a process of their own, with workers below it, so that
// what either takes can be read from the system.

const childVariable = "WEIR_BUILD_CHILD"

// The bounds for one hostile tree: on the process that stands for weir, including the start of the test program and the tree itself, and on all its
// workers.
const (
	childCPU    = 2 * time.Second
	childMemory = 256 << 20
	workersCPU  = 5 * time.Second
)

// hostileLimits are those of workers, which may use twice the CPU time.
var hostileLimits = worker.Limits{Memory: 320 << 20, Small: worker.DefaultLimits.Small, CPU: time.Second}

// answer is what a child says of a build.
type answer struct {
	Objects int
	Diags   diag.List
	Error   string
	Memory  int64 // most that was resident of weir, in bytes
	CPU     time.Duration
	Workers time.Duration // their CPU time
	After   int           // objects that a build gives afterwards
}

// child builds the tree of a name, and another one afterwards, and prints the answer.
func child(name string) {
	var a answer
	stop := worker.Enable(hostileLimits)
	for _, c := range hostileTrees() {
		if c.name != name {
			continue
		}
		t := c.tree()
		http.DefaultTransport = roundTripper(func(r *http.Request) (*http.Response, error) {
			fmt.Printf("asked for %s\n", r.URL)
			return nil, errors.New("no network")
		})
		r, err := kust.Build(context.Background(), t, ".", kust.Options{Strict: func(intent.ObjectRef) bool { return true }})
		if err != nil {
			a.Error = err.Error()
		} else {
			a.Objects, a.Diags = len(r.Objects), r.Diags
		}
		status, err := os.Open("/proc/self/status")
		if err != nil {
			fmt.Println(err)
		}
		a.Memory = peakMemory(status)
		if r, err := kust.Build(context.Background(), overlayOf("", configMap), ".", kust.Options{}); err == nil {
			a.After = len(r.Objects)
		}
	}
	stop()
	a.CPU, a.Workers = used(syscall.RUSAGE_SELF), used(syscall.RUSAGE_CHILDREN)
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		fmt.Println(err)
	}
}

func used(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		fmt.Println(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory reads the most that was resident of this process. The resource usage
// that a parent is told would begin with what the parent itself held when it
// started the child.
func peakMemory(status *os.File) int64 {
	text := make([]byte, 16<<10)
	n, err := status.ReadAt(text, 0)
	if n == 0 {
		fmt.Println(err)
	}
	for line := range strings.Lines(string(text[:n])) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				fmt.Println(err)
			}
			return kib << 10
		}
	}
	fmt.Println("no peak memory in /proc/self/status")
	return 0
}

func runChild(t *testing.T, name string) (a answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = []string{childVariable + "=" + name, "PATH=", "HOME=/nonexistent", "GOMAXPROCS=2"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the process ended with %v: %.3000s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if stderr.Len() > 0 {
		t.Errorf("a build wrote to standard error: %.1000s", stderr.String())
	}
	return a
}

// ended is the code of trees that kustomize is let begin with, and that take more than
// they may: whichever bound ends it.
const ended = "ended"

// wasEnded reports whether such a tree came to one finding that says what it took, or was
// built within its bounds.
func wasEnded(a answer, at string) bool {
	if len(a.Diags) == 0 {
		return a.Objects > 0
	}
	d := a.Diags[0]
	return a.Objects == 0 && len(a.Diags) == 1 && (d.Code == "timeout" || d.Code == "too-large") && d.File == at && d.Detail != ""
}

func TestHostileTrees(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes several times the memory and time that are asserted here")
	}
	if runtime.GOOS != "linux" {
		t.Skip("not Linux: the test reads and limits memory and files of a process in Linux's way")
	}
	names, withEnd := map[string]bool{}, 0
	for _, c := range hostileTrees() {
		if names[c.name] {
			t.Fatalf("two cases are named %q", c.name)
		}
		names[c.name] = true
		if c.code == ended {
			// What is only ended by its limits takes most of the time: one of three, and
			// all in make soak.
			if withEnd++; withEnd%3 != 0 && os.Getenv("WEIR_SOAK") == "" {
				continue
			}
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := runChild(t, c.name)
			if a.Error != "" {
				t.Fatal(a.Error)
			}
			t.Logf("%.2f s CPU, %d MiB; workers %.2f s CPU; %d objects, %.300s", a.CPU.Seconds(), a.Memory>>20, a.Workers.Seconds(), a.Objects, printDiags(a.Diags))
			if a.CPU > childCPU || a.Workers > workersCPU {
				t.Errorf("took %s of CPU, and workers %s", a.CPU, a.Workers)
			}
			if a.Memory == 0 || a.Memory > childMemory {
				t.Errorf("took %d MiB", a.Memory>>20)
			}
			if a.After != 1 {
				t.Errorf("the build after it gave %d objects", a.After)
			}
			if len(a.Diags) > 300 {
				t.Errorf("%d diagnostics", len(a.Diags))
			}
			var found []string
			for _, d := range a.Diags {
				if d.Code == c.code {
					found = append(found, d.Position.String())
				}
				if strings.Contains(d.Summary+d.Detail, "/.repo") {
					t.Errorf("internal path in %s", d)
				}
				if len(d.Summary)+len(d.Detail) > 2000 {
					t.Errorf("a message of %d bytes", len(d.Summary)+len(d.Detail))
				}
			}
			if c.code == ended {
				if !wasEnded(a, c.at) {
					t.Errorf("%d objects and\n%.3000s", a.Objects, printDiags(a.Diags))
				}
				return
			}
			if a.Objects != 0 || len(found) == 0 || found[0] != c.at {
				t.Errorf("want %s at %q and no objects; got it at %.300q, %d objects and\n%.3000s", c.code, c.at, found, a.Objects, printDiags(a.Diags))
			}
		})
	}
}

package build_test

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

	"github.com/weir-gitops/weir/render/build"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Builds of hostile trees run in a process of their own, so that what they take
// can be read from the system, and what they must not do can be forbidden there.

const childVariable = "WEIR_BUILD_CHILD"

// What one hostile tree may take, of the process as a whole: the start of the
// test program and kustomize's schema, the tree itself and its build.
const (
	childCPU    = 2 * time.Second
	childMemory = 256 << 20
)

// answer is what a child says of a build.
type answer struct {
	Objects int
	Diags   diag.List
	Error   string
	Memory  int64 // most that was resident, in bytes
}

// child builds the tree of a name and prints the answer. It may open no file, no
// socket and no pipe meanwhile, which starting a program takes too.
func child(name string) {
	var a answer
	for _, c := range hostileTrees() {
		if c.name != name {
			continue
		}
		t := c.tree()
		http.DefaultTransport = roundTripper(func(r *http.Request) (*http.Response, error) {
			fmt.Printf("asked for %s\n", r.URL)
			return nil, errors.New("no network")
		})
		status, err := os.Open("/proc/self/status")
		if err != nil {
			fmt.Println(err)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: 0}); err != nil {
			fmt.Println("limit files:", err)
		}
		if f, err := os.Open("/"); err == nil {
			fmt.Println("the limit on files does not hold:", f.Name())
		}
		r, err := build.Build(context.Background(), t, ".", build.Options{Strict: func(intent.ObjectRef) bool { return true }})
		if err != nil {
			a.Error = err.Error()
		} else {
			a.Objects, a.Diags = len(r.Objects), r.Diags
		}
		a.Memory = peakMemory(status)
	}
	var children syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children); err != nil || children.Maxrss != 0 {
		fmt.Println("a program was started", err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		fmt.Println(err)
	}
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

func runChild(t *testing.T, name string) (a answer, cpu time.Duration) {
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
	return a, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func TestHostileTrees(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes several times the memory and time that are asserted here")
	}
	if runtime.GOOS != "linux" {
		t.Skip("what a process takes and opens is read and limited as Linux does it")
	}
	names := map[string]bool{}
	for _, c := range hostileTrees() {
		if names[c.name] {
			t.Fatalf("two cases are named %q", c.name)
		}
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			a, cpu := runChild(t, c.name)
			if a.Error != "" {
				t.Fatal(a.Error)
			}
			t.Logf("%.2f s CPU, %d MiB", cpu.Seconds(), a.Memory>>20)
			if cpu > childCPU {
				t.Errorf("took %s of CPU", cpu)
			}
			if a.Memory == 0 || a.Memory > childMemory {
				t.Errorf("took %d MiB", a.Memory>>20)
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
			if a.Objects != 0 || len(found) == 0 || found[0] != c.at {
				t.Errorf("want %s at %q and no objects; got it at %.300q, %d objects and\n%.3000s", c.code, c.at, found, a.Objects, printDiags(a.Diags))
			}
		})
	}
}

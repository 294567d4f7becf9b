package kust_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/tree/treetest"
)

// The cause that killed a build may be gone at the next try, though nothing was committed.
func TestAKilledBuildIsTriedAgain(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("no /proc with children of a process on this system")
	}
	defer worker.Enable(worker.DefaultLimits)()
	done := make(chan bool)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				for _, pid := range childrenAtWork() {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	}()
	r, err := kust.Build(t.Context(), overlayOf("namePrefix: x-\nnameSuffix: -y\nsortOptions: {order: fifo}\n", configMaps(4000)), ".", kust.Options{})
	close(done)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Retry || len(r.Diags) != 1 || r.Diags[0].Code != "build-failed" || !strings.Contains(r.Diags[0].Summary, "killed") {
		t.Errorf("retry %v: %v", r.Retry, r.Diags)
	}
	if r, err = kust.Build(t.Context(), overlayOf("", configMap), ".", kust.Options{}); err != nil || r.Retry || len(r.Objects) != 1 {
		t.Errorf("the next one: retry %v, %v", r.Retry, err)
	}
}

// childrenAtWork are the processes that this one started and that have built for some
// tenths of a second: none is killed before it is ready.
func childrenAtWork() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range lists {
		list, _ := os.ReadFile(name)
		for _, text := range strings.Fields(string(list)) {
			stat, _ := os.ReadFile("/proc/" + text + "/stat")
			_, after, _ := strings.Cut(string(stat), ") ")
			fields := strings.Fields(after)
			pid, err := strconv.Atoi(text)
			if err != nil || len(fields) < 13 {
				continue
			}
			if ticks, err := strconv.Atoi(fields[11]); err == nil && ticks > 30 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// A small build that needs more memory than one may take is no fault: it is large.
func TestASmallBuildMayTurnOutLarge(t *testing.T) {
	if runtime.GOOS != "linux" || raceEnabled {
		t.Skip("not Linux, or the race detector is on: a worker process has its limits only on Linux and without the detector")
	}
	defer worker.Enable(worker.DefaultLimits)()
	tree := overlayOf("replacements:\n"+strings.Repeat("- {source: {kind: ConfigMap, fieldPath: data.a}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a], options: {delimiter: x, index: 99}}]}\n", 40), configMap+"data: {a: b}\n")
	if r, err := kust.Build(t.Context(), tree, ".", kust.Options{Small: true}); !errors.Is(err, kust.ErrLarge) {
		t.Errorf("got %v and %v", r, err)
	}
}

// 2,000 pools of three objects each render in one overlay, within the default limits.
func TestTwoThousandPools(t *testing.T) {
	if os.Getenv("WEIR_SOAK") == "" {
		t.Skip("it takes minutes: runs with make soak (WEIR_SOAK=1)")
	}
	defer worker.Enable(worker.DefaultLimits)()
	m := treetest.Pools(2000, "labels: [{pairs: {env: prod}}]\n")
	for name, content := range m {
		if strings.HasPrefix(name, "base/pool") {
			m[name] = strings.ReplaceAll(content, "{dataSecretName: boot}", "{configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: NodeadmConfig, name: boot}}") +
				fmt.Sprintf("---\napiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: NodeadmConfig\nmetadata: {name: %s, namespace: fleet}\nspec: {kubelet: {flags: [--max-pods=50]}}\n", strings.TrimSuffix(filepath.Base(name), ".yaml"))
		}
	}
	r, err := kust.Build(t.Context(), m, ".", kust.Options{})
	if err != nil || len(r.Objects) != 6000 {
		t.Fatalf("%d objects, %v, %v", len(r.Objects), r.Diags, err)
	}
}

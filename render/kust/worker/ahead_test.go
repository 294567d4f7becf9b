package worker

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// A worker that starts ahead makes the first build. One that is started beside it, for a
// build that does not come, ends with the pool, ready or not.
func TestAhead(t *testing.T) {
	Ahead(1) // without a pool there is nothing to start
	clean := goleak.IgnoreCurrent()
	stop := Enable(testLimits())
	defer stop()
	p := enabled.Load()
	Ahead(1)
	Ahead(1) // one is coming already
	if n := len(p.coming); n != 1 {
		t.Fatalf("%d workers are coming", n)
	}
	c := p.coming[0]
	nodes, err := Run(t.Context(), simple(), noPath)
	wantSimple(t, nodes, err)
	if idle := p.idleNow(); len(idle) != 1 || idle[0] != c.w || len(p.coming) != 0 {
		t.Fatalf("the build had %v, and not the worker that was ahead; %d are coming", idle, len(p.coming))
	}
	Ahead(1)
	if len(p.coming) != 0 {
		t.Error("one comes beside an idle one")
	}
	Ahead(10)
	if n := len(p.coming); n != mostSmall-1 {
		t.Fatalf("%d workers are coming beside an idle one", n)
	}
	unused := p.coming[0]
	<-unused.done
	if unused.w == nil {
		t.Fatal("it did not start")
	}
	stop()
	for _, w := range []*process{c.w, unused.w} {
		if !gone(w.pid()) {
			t.Errorf("worker %d is still there", w.pid())
		}
	}
	if Ahead(1); len(p.coming) != 0 {
		t.Error("one comes though the pool is closed")
	}

	stop = Enable(testLimits())
	Ahead(1)
	unready := enabled.Load().coming[0]
	stop()
	if unready.w != nil && !gone(unready.w.pid()) {
		t.Error("the worker that was not ready is still there")
	}
	goleak.VerifyNone(t, clean)
}

// A worker starts without collecting garbage, and collects it as it builds: it stays small
// enough to be kept.
func TestWorkersCollect(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector a worker takes more memory than one that is kept may have")
	}
	p := enable(t, testLimits())
	j := job("resources: [a.yaml]\n", map[string]string{"a.yaml": strings.ReplaceAll(configMap, "b}", strings.Repeat("x", 500_000)+"}")})
	pids := map[int]bool{}
	for range 60 {
		if _, err := Run(t.Context(), j, noPath); err != nil {
			t.Fatal(err)
		}
		for _, w := range p.idleNow() {
			pids[w.pid()] = true
		}
	}
	if len(pids) != 1 {
		t.Errorf("%d workers for builds that are small", len(pids))
	}
	if runtime.GOOS != "linux" {
		return
	}
	for pid := range pids {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if got := string(env); err == nil && got != strings.Join(environment, "\x00")+"\x00" {
			t.Errorf("its environment is %q", got)
		}
	}
}

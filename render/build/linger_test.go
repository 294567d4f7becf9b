package build

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/render/tree"
)

// While as many builds as are allowed go on after they were given up, the next
// waits for one of them to end, and no longer than its own time.
func TestAbandonedBuildsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLingering(2)
		l.add()
		if err := l.wait(context.Background()); err != nil {
			t.Fatalf("one of two: %v", err)
		}
		l.add()
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errTooSlow)
		defer cancel()
		if err := l.wait(ctx); !errors.Is(err, errCrowded) || !isTooSlow(err) {
			t.Fatalf("two of two: %v", err)
		}
		stopped, stop := context.WithCancel(context.Background())
		stop()
		if err := l.wait(stopped); !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled: %v", err)
		}
		free := make(chan error)
		go func() { free <- l.wait(context.Background()) }()
		synctest.Wait()
		select {
		case err := <-free:
			t.Fatalf("waited for nothing: %v", err)
		default:
		}
		l.remove()
		if err := <-free; err != nil {
			t.Fatal(err)
		}
	})
}

// A build whose time is up says so once, and says that others hold it up where
// that is the reason.
func TestTimeUp(t *testing.T) {
	m := tree.Map{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}
	r, err := Build(context.Background(), m, ".", Options{Limits: Limits{Duration: time.Nanosecond}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Diags) != 1 || r.Diags[0].Code != "timeout" || r.Diags[0].Summary == "" || r.Objects != nil {
		t.Errorf("got %v", r.Diags)
	}

	for range maxAbandoned {
		abandoned.add()
	}
	defer func() {
		for range maxAbandoned {
			abandoned.remove()
		}
	}()
	r, err = Build(context.Background(), m, ".", Options{Limits: Limits{Duration: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Diags) != 1 || r.Diags[0].Code != "timeout" || r.Objects != nil {
		t.Fatalf("got %v", r.Diags)
	}
	// Under load the time may be up before the build would start.
	if !strings.Contains(r.Diags[0].Summary, "could not start") && !strings.Contains(r.Diags[0].Summary, "took longer") {
		t.Errorf("got %v", r.Diags)
	}
}

// A panic of kustomize is a finding, not the end of the process.
func TestPanicsAreFindings(t *testing.T) {
	nodes, err := krustyRun(&fileSystem{}, mount)
	if nodes != nil || err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("kustomize: got %v, %v", nodes, err)
	}
	r, err := Build(context.Background(), panicking{}, ".", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Diags) != 1 || r.Diags[0].Code != "build-failed" || r.Objects != nil {
		t.Errorf("weir: got %v", r.Diags)
	}
}

type panicking struct{ tree.Map }

func (panicking) Lookup(string) (tree.Entry, error) { panic("for the test") }

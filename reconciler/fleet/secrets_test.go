package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/sops/sopstest"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/snapshot"
)

func secretsAt(revision string, t tree.Tree) View {
	return View{Snapshot: snapshot.Snapshot{Source: "s", Revision: revision, Tree: t}}
}

// A target with encrypted values is built once, as any other. The test counts allocations: time says nothing on a
// busy machine.
func TestSecretsCostNoOtherBuild(t *testing.T) {
	key := sopstest.Age(t)
	file := filepath.Join(t.TempDir(), "vars.yaml")
	if err := os.WriteFile(file, []byte("UNUSED: s3cr3t-of-nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(values int, encrypted bool, more string) float64 {
		files := secretOverlays(t, key, 30, values, encrypted)
		count := func() float64 {
			h := newHarness(t, fmt.Sprintf("- {name: '{1}', path: 'o/*', region: eu-west-1, ageKeyFiles: [%q]%s}\n", key.IdentityFile(t), more))
			h.fleet.o.Secrets = &redact.Registry{}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			h.compose(secretsAt("r1", files))
			runtime.ReadMemStats(&after)
			return float64(after.Mallocs - before.Mallocs)
		}
		count() // what is made once for a process
		return count()
	}
	for _, tc := range []struct {
		values int
		most   float64
	}{{3, 1.5}, {40, 2}} {
		plain, encrypted := start(tc.values, false, ""), start(tc.values, true, "")
		times := encrypted / plain
		t.Logf("%d values: %.2f ×", tc.values, times)
		if times > tc.most || times < 1.02 {
			t.Errorf("%d encrypted values take %.2f × the allocations of plain ones; at most %.1f are allowed", tc.values, times, tc.most)
		}
	}
	plain, unused := start(3, false, ""), start(3, false, fmt.Sprintf(", varsFrom: [{file: %q, secret: true}]", file))
	if unused > 1.1*plain {
		t.Errorf("a secret that no overlay uses takes %.2f × the allocations", unused/plain)
	}
}

// weir forgets the secrets of removed targets, and its memory falls back.
func TestSecretsOfGoneTargetsAreForgotten(t *testing.T) {
	key := sopstest.Age(t)
	h := newHarness(t, fmt.Sprintf("- {name: '{1}', path: 'o/*', region: eu-west-1, ageKeyFiles: [%q]}\n", key.IdentityFile(t)))
	hidden := &redact.Registry{}
	h.fleet.o.Secrets = hidden
	few, many := secretOverlays(t, key, 3, 10, true), secretOverlays(t, key, 60, 10, true)
	n := 0
	compose := func(files tree.Tree) {
		n++
		h.compose(secretsAt(fmt.Sprint("r", n), files))
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const first, last = "s3cr3t-1-of-overlay-1", "s3cr3t-1-of-overlay-50"
	compose(few)
	compose(many)
	if got := hidden.Redact(first + " " + last); strings.Contains(got, "s3cr3t") {
		t.Errorf("shown: %s", got)
	}
	compose(few)
	if got := hidden.Redact(last); got == last {
		t.Error("shown as soon as its target has gone")
	}
	compose(few)
	before := heap()
	if got := hidden.Redact(first + " " + last); got != "(redacted) "+last {
		t.Errorf("after its target has gone: %s", got)
	}
	for range 4 {
		compose(many)
		compose(few)
		compose(few)
	}
	if after := heap(); after > before+512<<10 {
		t.Errorf("%d bytes before targets came and went, %d afterwards", before, after)
	}
	// A source that cannot be read says nothing about which targets there are.
	for range 3 {
		h.compose(View{Err: fmt.Errorf("away")})
	}
	if got := hidden.Redact(first); got == first {
		t.Error("forgotten while the source was away")
	}
}

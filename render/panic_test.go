package render

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/tree"
)

// A fault of weir's own in one target's manifests must end neither the process
// nor the belief that the target's pools are wanted.
func TestAPanicIsAFinding(t *testing.T) {
	files := tree.Map{"pools/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}
	r, err := Render(context.Background(), files, "pools", Options{})
	if err != nil || r.Diags.HasErrors() {
		t.Fatalf("render: %v, %v", err, r.Diags)
	}
	dec := &decoding{of: r, secrets: secrecy{built: r.built}}
	dec.guarded("pools", func() {
		dec.decode(func([]kinds.Object, manifest.Options) (intent.Set, []kinds.Fault) { panic("hunter2") }, manifest.Options{})
	})
	if !r.Diags.HasErrors() || len(r.Set.Pools) > 0 {
		t.Errorf("the render counts as whole: %v", r.Diags)
	}
	if got := r.Diags.Err().Error(); !strings.Contains(got, "pools: error: weir crashed") || strings.Contains(got, "hunter2") {
		t.Errorf("got %q", got)
	}
}

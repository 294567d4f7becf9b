package kust_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// A repository decides how often a value is used: a long one must not fill memory.
func TestManyUsesOfALongValueAreRefused(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: \"" + strings.Repeat("${A}", 200_000) + "\"\n"
	r, err := kust.Build(context.Background(), tree.Map{"c.yaml": text}, "c.yaml", kust.Options{Vars: map[string]string{"A": strings.Repeat("a", 100_000)}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Objects) != 0 || len(r.Diags) != 1 || r.Diags[0].Code != "too-large" {
		t.Errorf("got %d objects, %v", len(r.Objects), r.Diags)
	}
}

package sops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/sops"
)

// TestMetadataIsBounded refuses metadata that would take long to decode.
func TestMetadataIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("a: ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]\nsops:\n  version: 3.9.0\n")
	for i := range 3_000 {
		fmt.Fprintf(&b, "  k%d: v\n", i)
	}
	f, ok := sops.New(sops.Options{}).Open(t.Context(), "s.yaml", []byte(b.String()))
	if !ok || len(f.Faults) != 1 || !strings.Contains(f.Faults[0].Summary, "the metadata is too large") {
		t.Errorf("%t %v", ok, f.Faults)
	}
}

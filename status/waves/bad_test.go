package waves

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/rollout"
)

// A stopped change is shown by its fields. Its hash covers user data, so it is shown only
// where an earlier release recorded no fields.
func TestAStoppedChangeIsShownByItsFields(t *testing.T) {
	hash := rollout.Bad{Hash: "0123456789abcdef"}
	fields := rollout.Bad{Hash: "0123456789abcdef", Fields: []rollout.Field{{Name: "instanceType"}}}
	if got := badHash(&hash); got.Hash != hash.Hash || got.Fields != "" {
		t.Errorf("without fields: %+v", got)
	}
	if got := badHash(&fields); got.Hash != "" || got.Fields != "instanceType" {
		t.Errorf("with fields: %+v", got)
	}
}

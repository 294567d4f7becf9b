package plan

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Equal parts of changes share their memory and stay what they are; values that cannot be
// keys are left alone.
func TestEqualPartsOfChangesAreShared(t *testing.T) {
	change := func(i int) step.Change {
		return step.Change{
			Field: fmt.Sprint("tags.", "team"), From: float64(1000), To: fmt.Sprint("plat", "form"),
			Path: intent.Path{"spec", "additionalTags", fmt.Sprint("te", "am")}, Object: intent.ObjectRef{Name: fmt.Sprint("p", i)},
		}
	}
	odd := step.Change{Field: "a", To: []string{"x"}, From: map[string]any{"y": 1.5}, Path: intent.Path{"spec", "a"}}
	joined := step.Change{Field: "b", To: "1000", Path: intent.Path{"spec\x00a"}} // no path of two names
	make1 := func() []step.Step {
		return []step.Step{{Changes: []step.Change{change(0), odd}}, {Changes: []step.Change{change(1), joined}}, {}}
	}
	got, want := make1(), make1()
	internChanges(got)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the changes became others: %+v", got)
	}
	a, b := got[0].Changes[0], got[1].Changes[0]
	if unsafe.StringData(a.Field) != unsafe.StringData(b.Field) || &a.Path[0] != &b.Path[0] || unsafe.StringData(a.To.(string)) != unsafe.StringData(b.To.(string)) {
		t.Error("equal fields, paths or values have memory of their own")
	}
}

package manifest

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/derive"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
)

// Options of Intents. The zero value is usable.
type Options = derive.Options

// Intents decodes and checks objects and derives the desired state of AWS. A pool with an error is not in the
// set; all other pools are complete. It returns all faults in a fixed order.
func Intents(objects []kinds.Object, o Options) (intent.Set, []kinds.Fault) {
	found := &kinds.Faults{}
	x := kinds.NewIndex(objects, found)
	b := derive.New(x, o)
	rules.Check(x)
	set := b.Intents()
	kinds.SortFaults(found.List)
	return set, found.List
}

// Decoded is a single decoded object.
type Decoded struct {
	// Spec is the object's spec with defaults, as JSON values: maps, lists, strings, int64, float64 and bool.
	// It does not contain members that weir ignores.
	Spec map[string]any
	// Faults are the faults of decoding, and of the rules for a single object.
	Faults []kinds.Fault
}

// Decode decodes and checks an object and fills in its defaults. ok is false for a kind that weir does not
// read.
func Decode(o kinds.Object) (out Decoded, ok bool) {
	if out.Spec, ok = kinds.Values(o); !ok {
		return Decoded{}, false
	}
	found := &kinds.Faults{}
	rules.Check(kinds.NewIndex([]kinds.Object{o}, found))
	kinds.SortFaults(found.List)
	out.Faults = found.List
	return out, true
}

package manifest

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/derive"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/manifest/rules"
)

// Options of Intents. The zero value is usable.
type Options = derive.Options

// Intents decodes and checks objects and derives what AWS should hold. A pool with an error is left
// out of the set; all other pools are complete. It returns all faults in a fixed order.
func Intents(objects []kinds.Object, o Options) (intent.Set, []kinds.Fault) {
	found := &kinds.Faults{}
	x := kinds.NewIndex(objects, found)
	b := derive.New(x, o)
	rules.Check(x)
	set := b.Intents()
	kinds.SortFaults(found.List)
	return set, found.List
}

// Decoded is one object by itself, without the other objects of its render.
type Decoded struct {
	// Spec is the object's spec with its defaults, as JSON has it: maps, lists,
	// text, int64, float64 and bool. Members that weir ignores are left out.
	Spec map[string]any
	// Faults holds the faults of decoding and of the rules for the object alone.
	Faults []kinds.Fault
}

// Decode decodes, defaults and checks one object of a kind that weir reads; ok
// is false for any other.
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

package field

import (
	"reflect"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// FromPool copies what a pool's own object says of a kind's members into settings of the
// intent: both are pointers to structs, spec to the object's. It widens and narrows
// numbers, whose range is checked when they are decoded, and makes seconds of a duration.
// Of several fields that set a member the first that is written counts. Members of list
// items are left out, and so is what package manifest converts by the word of its row.
func FromPool(of Kind, spec, settings any) {
	for _, r := range Rows(of) {
		if strings.Contains(r.AWS, "[]") || strings.HasPrefix(r.Special, "manifest:") {
			continue
		}
		for _, f := range r.PoolFields() {
			if from, ok := reach(reflect.ValueOf(spec).Elem(), elements(f), false); ok {
				to, _ := reach(reflect.ValueOf(settings).Elem(), elements(r.member()), true)
				carry(from, to)
				break
			}
		}
	}
}

// reach returns the value at a path below a struct. It creates missing pointers on the way if grow
// is set, and otherwise reports that nothing is there.
func reach(v reflect.Value, path intent.Path, grow bool) (reflect.Value, bool) {
	for i := 0; ; {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() && !grow {
				return v, false
			}
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
			continue
		}
		if i == len(path) {
			return v, true
		}
		f := settingOf(v.Type(), path[i])
		v, i = v.FieldByIndex(f.Index), i+1
	}
}

// carry writes a value into one of another type that holds the same.
func carry(from, to reflect.Value) {
	switch {
	case from.Type() == reflect.TypeFor[time.Duration]():
		to.SetInt(min(from.Int()/int64(time.Second), 1<<31-1))
	case from.Kind() == reflect.Map && !from.IsNil():
		to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
		for _, k := range from.MapKeys() {
			to.SetMapIndex(k, from.MapIndex(k))
		}
	default:
		to.Set(from.Convert(to.Type()))
	}
}

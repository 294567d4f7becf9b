package field

import (
	"reflect"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// FromPool copies the values of a kind's members from a pool's spec to the settings of the intent. Both
// arguments are pointers to structs. It converts number types, whose range decoding has checked, and converts
// durations to seconds. If several fields set a member, the first one that is written counts. It skips
// members of list items, and members that package manifest converts according to Special.
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

// reach returns the value at a path below a struct. If grow is true, it creates nil pointers on the path.
// Otherwise ok is false if a pointer is nil.
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

// carry copies a value to a variable of another type that can represent it.
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

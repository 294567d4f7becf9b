package render

import (
	"reflect"
	"testing"
)

// Whatever a render holds can be written down: also what no render of the tests has.
func TestEveryRenderCanBePacked(t *testing.T) {
	seen, within := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	var look func(at string, of reflect.Type)
	look = func(at string, of reflect.Type) {
		if within[of] {
			t.Errorf("%s holds itself, so nothing bounds how deep it is read", at)
		}
		if seen[of] {
			return
		}
		seen[of], within[of] = true, true
		defer delete(within, of)
		switch of.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float64:
		case reflect.Pointer, reflect.Slice:
			look(at, of.Elem())
		case reflect.Map:
			if of.Key().Kind() != reflect.String {
				t.Errorf("%s is a map of %v", at, of.Key())
			}
			look(at, of.Elem())
		case reflect.Struct:
			if of.NumField() == 0 {
				t.Errorf("%s takes no byte", at)
			}
			for i := range of.NumField() {
				if f := of.Field(i); f.IsExported() {
					look(at+"."+f.Name, f.Type)
				} else {
					t.Errorf("%s.%s is hidden", at, f.Name)
				}
			}
		default:
			t.Errorf("%s is a %v", at, of)
		}
	}
	look("render", reflect.TypeFor[fields]())
	if len(seen) < 100 {
		t.Errorf("%d types were seen", len(seen))
	}
}

// Package convert is between AWS's shapes and weir's values, both ways.
//
// A member that is one field of the intent needs no code: Carry takes it over by its name,
// which the intent has in its JSON and the table of render/field as its row. Tests hold the
// members of both sides against each other, so that one which the SDK brings is a decision.
// A member that AWS treats specially is code here, and its row says so in Special. Such are
// a structure that the intent does without, a default that AWS fills in, an order that means
// nothing, and a value that clears another.
//
// A request holds exactly what weir says: absent members stay absent, for AWS keeps or
// stores exactly what is sent. An answer is in canonical order, and says that it is
// unknown where it holds more than the intent can say, so that no comparison takes it for
// equal.
package convert

import (
	"cmp"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/stringpool"
	"github.com/weir-gitops/weir/render/field"
)

// Carry copies a struct, or a list of them, into one of another type that has members
// of the same names. Members that are not set in from stay as they are in to: an empty
// text or list, a number that is 0 and nil say nothing, a pointer to 0 or false does.
// left reports that from holds something that to cannot hold.
func Carry(from, to any) (left bool) {
	return carryValue(reflect.Indirect(reflect.ValueOf(from)), reflect.ValueOf(to).Elem())
}

func carryValue(from, to reflect.Value) (left bool) {
	switch from.Kind() {
	case reflect.Pointer:
		return !from.IsNil() && carryValue(from.Elem(), pointed(to))
	case reflect.Struct:
		to = pointed(to)
		for _, p := range pairsOf(from.Type(), to.Type()) {
			if p.to < 0 {
				left = left || isSet(from.Field(p.from))
			} else if v := from.Field(p.from); !v.IsZero() || v.Kind() == reflect.Struct {
				left = carryValue(v, to.Field(p.to)) || left
			}
		}
	case reflect.Slice:
		if from.Len() == 0 {
			return false // AWS's answers do not tell it from an absent one
		}
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			left = carryValue(from.Index(i), to.Index(i)) || left
		}
	case reflect.String:
		pointed(to).SetString(stringpool.String(from.String()))
	default:
		to = pointed(to)
		to.Set(from.Convert(to.Type()))
	}
	return left
}

// pointed follows a pointer and makes its target if missing; it returns any other value
// as it is.
func pointed(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// pair is a member of one struct and that of the same name in another, -1 for none.
type pair struct{ from, to int }

var knownPairs sync.Map // of [2]reflect.Type: []pair

func pairsOf(from, to reflect.Type) []pair {
	id := [2]reflect.Type{from, to}
	if known, ok := knownPairs.Load(id); ok {
		return known.([]pair)
	}
	indexes := map[string]int{}
	for i := range to.NumField() {
		indexes[strings.ToLower(cmp.Or(Name(to.Field(i)), to.Field(i).Name))] = i
	}
	var out []pair
	for i := range from.NumField() {
		f := from.Field(i)
		if !f.IsExported() {
			continue
		}
		p := pair{i, -1}
		if at, ok := indexes[strings.ToLower(cmp.Or(Name(f), f.Name))]; ok {
			p.to = at
		}
		out = append(out, p)
	}
	knownPairs.Store(id, out)
	return out
}

// isSet reports whether a value of the SDK says anything. Empty texts and lists are
// absent: EC2 answers some members that were never sent with an empty element.
func isSet(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return false
		}
		// A pointer to false or 0 was sent on purpose, so it is a value.
		if e := v.Elem(); e.Kind() == reflect.Struct || e.Kind() == reflect.String {
			return isSet(e)
		}
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return !v.IsZero()
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && isSet(v.Field(i)) {
				return true
			}
		}
		return false
	default:
		return !v.IsZero()
	}
}

// Name is AWS's name of a field of the intent, "" where it has none.
func Name(f reflect.StructField) string {
	key := field.JSONKey(f)
	if key == "" {
		return ""
	}
	return strings.ToUpper(key[:1]) + key[1:]
}

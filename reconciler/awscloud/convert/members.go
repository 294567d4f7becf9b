// Package convert converts between AWS's types and weir's values, in both directions.
//
// A member that corresponds to one field of the intent needs no code: Carry copies it by its name, which is
// the JSON name in the intent and the row in the table of render/field. Tests compare the members of both
// sides, so every new member of the SDK needs a decision. A member with special rules has code here, and its
// row says so in Special. Examples are a structure that the intent does not have, a default that AWS fills
// in, an order without a meaning, and a value that clears another.
//
// A request contains exactly what weir specifies. Absent members stay absent, because AWS keeps or stores
// exactly what is sent. Answers are converted to a canonical order. An answer with more content than the
// intent can express is marked as unknown, so that no comparison treats it as equal.
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

// Carry copies a struct, or a list of structs, into another type that has members of the same names. Members
// that are unset in from stay unchanged in to: an empty text or list, a number 0 and nil are unset, a
// pointer to 0 or false is set. left reports that to cannot express everything in from.
func Carry(from, to any) (left bool) {
	return carryValue(reflect.Indirect(reflect.ValueOf(from)), reflect.ValueOf(to).Elem())
}

// carryValue copies a value into another type, member by member by name. left reports whether something is
// set that the other type does not have.
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
			return false // AWS's answers do not distinguish it from an absent list
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

// pointed follows a pointer and allocates its target if it is nil. It returns any other value unchanged.
func pointed(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// pair has the index of a member in one struct, and of the member with the same name in another, or -1.
type pair struct{ from, to int }

var knownPairs sync.Map // of [2]reflect.Type: []pair

// pairsOf returns, for each exported field of a struct, the field of the other struct with the same name. It
// remembers the result by types.
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

// isSet reports whether a value of the SDK is set. Empty texts and lists are absent: EC2 returns some
// members that were never sent as empty elements.
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

// Name returns AWS's name of a field of the intent, or an empty string if it has none.
func Name(f reflect.StructField) string {
	key := field.JSONKey(f)
	if key == "" {
		return ""
	}
	return strings.ToUpper(key[:1]) + key[1:]
}

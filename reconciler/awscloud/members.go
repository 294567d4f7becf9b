package awscloud

import (
	"cmp"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The types of intents that stand for a structure of an API have its members under the
// API's names. So one function takes them over from the SDK's types and back, and one
// reads them from XML; tests hold the members of both against each other.

// carry copies a struct, or a list of them, into one of another type that has members
// of the same names. What from does not say stays as it is in to: an empty text or list,
// a number that is 0 and nil say nothing, a pointer to 0 or false does. left reports that
// from holds something that to has no place for.
func carry(from, to any) (left bool) {
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
				left = left || holds(from.Field(p.from))
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
	default:
		to = pointed(to)
		to.Set(from.Convert(to.Type()))
	}
	return left
}

// pointed is what a value points to, made where there is nothing yet, or the value.
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
	places := map[string]int{}
	for i := range to.NumField() {
		places[strings.ToLower(cmp.Or(memberName(to.Field(i)), to.Field(i).Name))] = i
	}
	var out []pair
	for i := range from.NumField() {
		f := from.Field(i)
		if !f.IsExported() {
			continue
		}
		p := pair{i, -1}
		if at, ok := places[strings.ToLower(cmp.Or(memberName(f), f.Name))]; ok {
			p.to = at
		}
		out = append(out, p)
	}
	knownPairs.Store(id, out)
	return out
}

// holds reports whether a value of the SDK says anything. Empty texts and lists count as
// absent: EC2 answers some members that were never sent with an empty element.
func holds(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return false
		}
		// A pointer to false or 0 was sent by somebody, so it counts.
		if e := v.Elem(); e.Kind() == reflect.Struct || e.Kind() == reflect.String {
			return holds(e)
		}
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return !v.IsZero()
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && holds(v.Field(i)) {
				return true
			}
		}
		return false
	default:
		return !v.IsZero()
	}
}

// scanInto reads the element that was entered into a value whose members have
// the elements' names. unknown says that there was something in it that the value
// has no place for.
func scanInto(s *pageScan, v reflect.Value) (unknown bool) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return scanInto(s, v.Elem())
	case reflect.Struct:
		members := membersOf(v.Type())
		for s.Child() {
			if i, ok := members[string(s.Name())]; ok {
				unknown = scanInto(s, v.Field(i)) || unknown
			} else {
				unknown = scanRest(s) || unknown
			}
		}
	case reflect.Slice:
		s.members(func() {
			v.Grow(1)
			v.SetLen(v.Len() + 1)
			unknown = scanInto(s, v.Index(v.Len()-1)) || unknown
		})
	case reflect.Bool:
		v.SetBool(s.bool())
	case reflect.Int32:
		v.SetInt(int64(s.int32()))
	case reflect.Float64:
		n, err := strconv.ParseFloat(s.Text(), 64)
		s.bad(err)
		v.SetFloat(n)
	case reflect.String:
		v.SetString(s.Text())
	default:
		panic("scanInto: no way to read a " + v.Type().String())
	}
	return unknown
}

var knownMembers sync.Map // of reflect.Type: map[string]int

// membersOf is the place of each member of a struct, by its name in XML.
func membersOf(t reflect.Type) map[string]int {
	if m, ok := knownMembers.Load(t); ok {
		return m.(map[string]int)
	}
	m := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if name := cmp.Or(t.Field(i).Tag.Get("xml"), memberName(t.Field(i))); name != "" {
			m[name] = i
		}
	}
	knownMembers.Store(t, m)
	return m
}

// memberName is AWS's name of a field.
func memberName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

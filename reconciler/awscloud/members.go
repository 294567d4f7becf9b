package awscloud

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// The types of intents that stand for a structure of the Auto Scaling API have
// its members under the API's names, in lower camel case. So one function takes
// them over from the SDK's types and back, and one reads them from XML; tests
// hold the members of both against each other.

// recast copies a value into one of another type with members of the same names.
// Empty lists become nil: AWS's answers do not tell them from absent ones.
func recast(from, to any) {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic("recast: " + err.Error()) // strings, numbers and booleans under the same names
	}
	dropEmpty(reflect.ValueOf(to).Elem())
}

func dropEmpty(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			dropEmpty(v.Elem())
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.SetZero()
		}
		for i := range v.Len() {
			dropEmpty(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				dropEmpty(v.Field(i))
			}
		}
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

// Package pack converts values to bytes and back without any loss: nil stays nil, and empty stays empty.
// Neither JSON nor gob guarantees that. It supports strings, numbers, booleans, lists, maps of strings,
// pointers, and structs without unexported fields. The bytes do not describe their type, so reader and writer
// must be the same program.
package pack

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
)

// ErrBroken means that bytes are not a packed value.
var ErrBroken = errors.New("not a packed value")

// Pack appends v to b. It panics for an unsupported type.
func Pack[T any](b []byte, v *T) []byte {
	w := writer{b: b, texts: map[string]uint64{}}
	w.put(reflect.ValueOf(v).Elem())
	return w.b
}

// Unpack decodes bytes that contain exactly one packed T. For any input, its memory is bounded by a small
// multiple of the bytes.
func Unpack[T any](b []byte, v *T) error {
	r := reader{rest: b}
	r.get(reflect.ValueOf(v).Elem())
	if r.bad || len(r.rest) > 0 {
		return ErrBroken
	}
	return nil
}

// writer packs values. It writes each string only once, and then its number.
type writer struct {
	b     []byte
	texts map[string]uint64
}

func (w *writer) number(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

// size writes the length of a list or a map plus one, and 0 for nil.
func (w *writer) size(v reflect.Value) bool {
	if v.IsNil() {
		w.number(0)
		return false
	}
	w.number(uint64(v.Len()) + 1) //nolint:gosec // a length
	return true
}

func (w *writer) text(t string) {
	if n, known := w.texts[t]; known {
		w.number(n)
		return
	}
	w.texts[t] = uint64(len(w.texts)) + 1
	w.number(0)
	w.number(uint64(len(t)))
	w.b = append(w.b, t...)
}

// put packs a value. A type without fields to pack, such as a channel, and a struct with unexported fields
// are mistakes in weir's code, so put panics.
func (w *writer) put(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		w.text(v.String())
	case reflect.Bool:
		if v.Bool() {
			w.number(1)
		} else {
			w.number(0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.b = binary.AppendVarint(w.b, v.Int())
	case reflect.Float64:
		w.number(math.Float64bits(v.Float()))
	case reflect.Pointer:
		if v.IsNil() {
			w.number(0)
			return
		}
		w.number(1)
		w.put(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				panic("pack: the type " + v.Type().String() + " has hidden fields")
			}
			w.put(v.Field(i))
		}
	case reflect.Slice:
		if w.size(v) {
			for i := range v.Len() {
				w.put(v.Index(i))
			}
		}
	case reflect.Map:
		if w.size(v) {
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, k := range keys {
				w.text(k.String())
				w.put(v.MapIndex(k))
			}
		}
	default:
		panic("pack: nothing packs a " + v.Type().String())
	}
}

// reader unpacks values. After an error it returns zeros.
type reader struct {
	rest  []byte
	texts []string
	bad   bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// size returns the number of elements that follow, or -1 for nil. Every element takes at least one byte,
// because a T has no elements without content.
func (r *reader) size() int {
	n := r.number()
	if n > uint64(len(r.rest))+1 {
		r.bad, r.rest = true, nil
		return -1
	}
	return int(n) - 1 //nolint:gosec // it is bounded
}

// text reads a string: the number of an earlier one, or 0 and then the string itself. It returns "" for
// damaged data.
func (r *reader) text() string {
	n := r.number()
	switch {
	case r.bad:
	case n > uint64(len(r.texts)):
		r.bad, r.rest = true, nil
	case n > 0:
		return r.texts[n-1]
	default:
		length := r.number()
		if length > uint64(len(r.rest)) {
			r.bad, r.rest = true, nil
			break
		}
		t := string(r.rest[:length])
		r.rest, r.texts = r.rest[length:], append(r.texts, t)
		return t
	}
	return ""
}

// get unpacks a value into v, as put packed it. For damaged data it sets bad, and leaves the remaining
// values zero.
func (r *reader) get(v reflect.Value) {
	if r.bad {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.number() == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, size := binary.Varint(r.rest)
		if size <= 0 || v.OverflowInt(n) {
			r.bad = true
			return
		}
		r.rest = r.rest[size:]
		v.SetInt(n)
	case reflect.Float64:
		v.SetFloat(math.Float64frombits(r.number()))
	case reflect.Pointer:
		if r.number() == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			r.get(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.get(v.Field(i))
		}
	case reflect.Slice:
		if n := r.size(); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), 0, min(n, 16)))
			for i := 0; i < n && !r.bad; i++ {
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
				r.get(v.Index(i))
			}
		}
	case reflect.Map:
		if n := r.size(); n >= 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for i := 0; i < n && !r.bad; i++ {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				key.SetString(r.text())
				r.get(value)
				v.SetMapIndex(key, value)
			}
		}
	default:
		r.bad = true
	}
}

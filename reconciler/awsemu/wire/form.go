package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// Form is the body of a call in a form-based protocol.
type Form struct {
	root  *model.Form
	pairs url.Values
}

// ParseForm parses a body.
func ParseForm(body string, d Dialect) (*Form, error) {
	root, pairs, err := model.ParseForm(body)
	if err != nil {
		return nil, d.Malformed(err.Error())
	}
	return &Form{root: root, pairs: pairs}, nil
}

// Get returns a parameter of the first level, or "" if it was not sent.
func (f *Form) Get(name string) string { return f.pairs.Get(name) }

// Has reports whether a parameter, or one below it, was sent.
func (f *Form) Has(name string) bool { return f.root.Kids[name] != nil }

// Mentions reports whether a parameter contains a text.
func (f *Form) Mentions(text string) bool {
	for _, values := range f.pairs {
		if strings.Contains(values[0], text) {
			return true
		}
	}
	return false
}

// digest identifies the contents of a form without its client token.
func (f *Form) digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f.pairs)) {
		if name != "ClientToken" && name != "Version" {
			writeField(h, name)
			writeField(h, f.pairs.Get(name))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// binding reads a form that was checked against the model into a struct. A field has the name of the model's
// member, except for the case of the letters. Fields are strings, int64, bool, pointers to them, structs,
// slices, and [Data] for a structure that is kept unchanged. A slice is nil if the list was not sent, and
// empty if the list was empty.
type binding struct {
	op      *model.Operation
	dialect Dialect
}

// common reports whether every operation has the parameter.
func common(name string) bool { return name == "Action" || name == "Version" || name == "DryRun" }

// structure reads a structure. A parameter without a field exists in AWS, but not in the emulator.
func (b *binding) structure(f *model.Form, s *model.Shape, v reflect.Value, path string) error {
	known := map[string]bool{}
	for _, field := range reflect.VisibleFields(v.Type()) {
		if field.Anonymous || !field.IsExported() {
			continue
		}
		name, shape := s.Field(b.op.Service, field.Name)
		if shape == nil {
			panic(fmt.Sprintf("%s has no member %s%s", b.op.Name, path, field.Name)) // the tests call every operation
		}
		known[name] = true
		if kid := f.Kids[name]; kid != nil {
			if err := b.value(kid, shape, v.FieldByIndex(field.Index), path+name+"."); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Kids)) {
		if !known[name] && (path != "" || !common(name)) {
			return b.dialect.unknownParam(path + name)
		}
	}
	return nil
}

func (b *binding) value(f *model.Form, s *model.Shape, v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return b.value(f, s, v.Elem(), path)
	case reflect.Struct:
		return b.structure(f, s, v, path)
	case reflect.Slice:
		return b.list(f, s, v, path)
	case reflect.Map:
		decoded, _ := b.op.Service.Decode(f, s)
		members, _ := decoded.(map[string]any)
		v.Set(reflect.ValueOf(Data(members)))
	case reflect.String:
		v.SetString(f.Value)
	case reflect.Bool:
		v.SetBool(strings.EqualFold(f.Value, "true"))
	case reflect.Int64:
		n, err := strconv.ParseInt(f.Value, 10, 64)
		if err != nil {
			return b.dialect.BadParam(strings.TrimSuffix(path, "."), f.Value, "Expected an integer.")
		}
		v.SetInt(n)
	default:
		panic("a form has no value of type " + v.Type().String())
	}
	return nil
}

// list reads a list: name.N in EC2's protocol, name.member.N in the query protocol.
func (b *binding) list(f *model.Form, s *model.Shape, v reflect.Value, path string) error {
	v.Set(reflect.MakeSlice(v.Type(), 0, len(f.Kids)))
	if b.op.Service.Protocol != "ec2" {
		path += "member."
		if f = f.Kids["member"]; f == nil {
			return nil
		}
	}
	for _, n := range f.Numbered() {
		item := reflect.New(v.Type().Elem()).Elem()
		if err := b.value(f.Kids[n], s.Items(), item, path+n+"."); err != nil {
			return err
		}
		v.Set(reflect.Append(v, item))
	}
	return nil
}

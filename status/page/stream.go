package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// indented writes the same text as json.MarshalIndent with two spaces, and a newline. It encodes the
// elements of a struct's lists one by one, because encoding ten thousand pools at once would take two
// hundred megabytes.
func indented(w io.Writer, v any) error {
	b := bufio.NewWriterSize(w, 32<<10)
	s := reflect.ValueOf(v)
	var err error
	if s.Kind() == reflect.Struct && plainStruct(s) {
		err = encodeFields(b, s)
	} else {
		err = encode(b, v, "")
	}
	if err != nil {
		return err
	}
	_ = b.WriteByte('\n') // Flush returns its error
	return b.Flush()
}

// plainStruct reports whether a struct can be written field by field: every field has a tag with its name,
// and at most the option to omit an empty value.
func plainStruct(s reflect.Value) bool {
	if _, own := s.Interface().(json.Marshaler); own {
		return false
	}
	return !slices.ContainsFunc(reflect.VisibleFields(s.Type()), func(f reflect.StructField) bool {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		return f.Anonymous || !f.IsExported() || name == "" || name == "-" || options != "" && (options != "omitempty" || f.Type.Kind() != reflect.String)
	})
}

// encodeFields writes a struct as indented JSON, one field at a time, with the same text as json.MarshalIndent. The
// caller has checked the struct with plainStruct, so the only option in a tag is omitempty.
func encodeFields(b *bufio.Writer, s reflect.Value) error {
	next := "{\n  "
	for i := range s.NumField() {
		name, omit, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
		if omit != "" && s.Field(i).IsZero() {
			continue
		}
		fmt.Fprintf(b, "%s%q: ", next, name)
		next = ",\n  "
		if err := encodeField(b, s.Field(i)); err != nil {
			return err
		}
	}
	end := "\n}"
	if next[0] == '{' {
		end = "{}"
	}
	_, err := b.WriteString(end)
	return err
}

// encodeField writes the value of a field. It encodes the elements of a list one by one.
func encodeField(b *bufio.Writer, v reflect.Value) error {
	if _, own := v.Interface().(json.Marshaler); own || v.Kind() != reflect.Slice || v.Len() == 0 || v.Type().Elem().Kind() == reflect.Uint8 {
		return encode(b, v.Interface(), "  ")
	}
	next := "[\n    "
	for i := range v.Len() {
		_, _ = b.WriteString(next) // the next write returns its error
		next = ",\n    "
		if err := encode(b, v.Index(i).Addr().Interface(), "    "); err != nil {
			return err
		}
	}
	_, err := b.WriteString("\n  ]")
	return err
}

// encode writes a whole value. It prefixes all lines after the first.
func encode(b *bufio.Writer, v any, prefix string) error {
	out, err := json.MarshalIndent(v, prefix, "  ")
	if err != nil {
		return err
	}
	_, err = b.Write(out)
	return err
}

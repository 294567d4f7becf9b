package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// own lists the top-level keys that may differ between daemons of one instance: where they listen, what
// they store locally, and how they connect to shared systems.
var own = []string{"apiVersion", "kind", "instance", "stateDir", "listen", "publicURL", "tls", "access", "coordination"}

// Common returns the parts of the configuration that must be equal for all daemons of an instance: for each
// section its name and a hash. Names of files are left out, because they may differ between machines.
func (c *Config) Common() string {
	var out []string
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name == "-" || slices.Contains(own, name) {
			continue
		}
		text, err := json.Marshal(plain(v.Field(i)))
		if err != nil {
			continue // values from plain can always be encoded
		}
		sum := sha256.Sum256(text)
		out = append(out, name+"="+hex.EncodeToString(sum[:6]))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// plain converts a value to maps, lists and scalars, without empty members and names of files.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			switch {
			case !f.IsExported() || name == "-" || v.Field(i).IsZero() || strings.HasSuffix(name, "File") || strings.HasSuffix(name, "Files"):
			case strings.Contains(options, "inline") || name == "":
				out[f.Name] = plain(v.Field(i))
			default:
				out[name] = plain(v.Field(i))
			}
		}
		return out
	case reflect.Slice, reflect.Array:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, key := range v.MapKeys() {
			out[key.String()] = plain(v.MapIndex(key))
		}
		return out
	default:
		return v.Interface()
	}
}

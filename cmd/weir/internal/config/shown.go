package config

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/reconciler/target"
)

// Shown is the configuration that holds, every default filled in, as YAML for
// people to read. What is empty is left out. Secrets are in files, of which the
// names are shown and never what is in them; should an address hold a password in
// spite of that, it is left out too.
func (c *Config) Shown() (string, error) {
	node := shownNode(reflect.ValueOf(*c))
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return "", fmt.Errorf("show configuration: %w", err)
	}
	if err := enc.Close(); err != nil {
		return "", fmt.Errorf("show configuration: %w", err)
	}
	return out.String(), nil
}

// shownNode is a value as YAML, nil for one that says nothing.
func shownNode(v reflect.Value) *yaml.Node {
	if text, ok := shownScalar(v); ok {
		if v.IsZero() {
			return nil
		}
		n := &yaml.Node{}
		n.SetString(text)
		if v.Kind() != reflect.String {
			n.Tag, n.Style = "", 0 // a number or a time is no text
		}
		return n
	}
	var out *yaml.Node
	switch v.Kind() {
	case reflect.Struct:
		out = &yaml.Node{Kind: yaml.MappingNode}
		for i := range v.NumField() {
			key := v.Type().Field(i).Tag.Get("yaml")
			if n := shownNode(v.Field(i)); key != "" && key != "-" && n != nil {
				out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, n)
			}
		}
	case reflect.Slice:
		out = &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			if n := shownNode(v.Index(i)); n != nil {
				out.Content = append(out.Content, n)
			}
		}
	case reflect.Map:
		out = &yaml.Node{Kind: yaml.MappingNode}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		for _, k := range keys {
			key, value := &yaml.Node{}, &yaml.Node{}
			key.SetString(k.String())
			if row := v.MapIndex(k); row.Kind() != reflect.String {
				if value = shownNode(row); value == nil {
					value = &yaml.Node{Kind: yaml.MappingNode} // an empty row is one
				}
			} else {
				value.SetString(withoutPassword(row.String()))
			}
			out.Content = append(out.Content, key, value)
		}
	default:
		panic("config: nothing shows a " + v.Type().String()) // every kind of a key is listed
	}
	if len(out.Content) == 0 {
		return nil
	}
	return out
}

// shownScalar is a single value as it is written.
func shownScalar(v reflect.Value) (string, bool) {
	switch x := v.Interface().(type) {
	case time.Duration:
		text := x.String()
		for _, zero := range []string{"m0s", "h0m"} { // 1h0m0s is 1h
			if strings.HasSuffix(text, zero) {
				text = text[:len(text)-2]
			}
		}
		return text, true
	case target.Limit:
		if x.Percent > 0 {
			return fmt.Sprintf("%d%%", x.Percent), true
		}
		return fmt.Sprint(x.Count), true
	case target.Clock:
		return fmt.Sprintf("%02d:%02d", int(x)/60, int(x)%60), true
	}
	switch v.Kind() {
	case reflect.String:
		return withoutPassword(v.String()), true
	case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		return fmt.Sprint(v.Interface()), true
	}
	return "", false
}

// withoutPassword leaves out who logs in from an address, and what it asks for.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return text
	}
	if _, has := u.User.Password(); has {
		u.User = nil
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}

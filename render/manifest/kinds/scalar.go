package kinds

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// Words that YAML 1.1, which Kubernetes reads, takes for booleans when unquoted.
var (
	trueWords  = []string{"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
	falseWords = []string{"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"}
)

// isPlain reports whether a scalar is unquoted, so that its type is guessed.
func isPlain(n *yaml.Node) bool {
	quoted := yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return n.Style&quoted == 0
}

// boolOf reads a scalar as Kubernetes reads a boolean.
func boolOf(n *yaml.Node) (value, ok bool) {
	if n.Kind != yaml.ScalarNode || (!isPlain(n) && n.ShortTag() != "!!bool") {
		return false, false
	}
	switch {
	case slices.Contains(trueWords, n.Value):
		return true, true
	case slices.Contains(falseWords, n.Value):
		return false, true
	}
	return false, false
}

// textOf reads a scalar as text. A number or boolean is not text.
func textOf(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		return "", false
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		if _, isBool := boolOf(n); isBool {
			return "", false
		}
		return n.Value, true
	}
	return "", false
}

// intOf reads a scalar as a whole number.
func intOf(n *yaml.Node) (int64, bool) {
	if n.Kind != yaml.ScalarNode {
		return 0, false
	}
	switch n.ShortTag() {
	case "!!int":
		var i int64
		err := n.Decode(&i)
		return i, err == nil
	case "!!float":
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), true
		}
	}
	return 0, false
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, p intent.Path) {
	switch v.Kind() {
	case reflect.String:
		if s, ok := textOf(n); ok {
			v.SetString(s)
			return
		}
		d.wrongType(n, p, "text")
	case reflect.Bool:
		if b, ok := boolOf(n); ok {
			v.SetBool(b)
			return
		}
		d.wrongType(n, p, "true or false")
	case reflect.Float64:
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.wrongType(n, p, "a number")
			return
		}
		if f < 0 {
			d.Error(p, "out-of-range", p.String()+" is below 0", "")
		}
		v.SetFloat(f)
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, ok := intOf(n)
		if !ok {
			d.wrongType(n, p, "a whole number")
			return
		}
		if v.OverflowInt(i) {
			d.Error(p, "out-of-range", fmt.Sprintf("%s is %d, which is too large", p, i), "")
			return
		}
		v.SetInt(i)
	default:
		d.wrongType(n, p, v.Kind().String())
	}
}

func (d *decoder) wrongType(n *yaml.Node, p intent.Path, want string) {
	detail := "" // never the value: it may be a secret
	if want == "text" && n.Kind == yaml.ScalarNode && isPlain(n) {
		detail = "write it in quotes"
	}
	if want == "a whole number" && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		if _, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			detail = "write it without quotes"
		}
	}
	d.Error(p, "wrong-type", fmt.Sprintf("%s must be %s, not %s", named(p), want, kindOf(n)), detail)
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if _, ok := boolOf(n); ok {
		return "a boolean"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!null":
		return "nothing"
	case "!!str", "!!timestamp":
		return "text"
	}
	return "a value of type " + n.ShortTag()
}

// Duration is a length of time in Go's format, such as "5m0s".
type Duration struct{ time.Duration }

func (v *Duration) decodeNode(d *decoder, n *yaml.Node, p intent.Path) {
	s, ok := textOf(n)
	if !ok {
		d.wrongType(n, p, "a duration")
		return
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		d.Error(p, "wrong-type", fmt.Sprintf("%s is no duration: %q", p, s), `write a number with a unit, such as "300s" or "5m"`)
		return
	}
	v.Duration = parsed
}

// Free is a value of any shape: maps with text keys, lists and scalars.
type Free struct{ Value any }

func (v *Free) decodeNode(d *decoder, n *yaml.Node, p intent.Path) { v.Value = d.free(n, p) }

// free copies a node into maps, slices and scalars, bounded in depth.
func (d *decoder) free(n *yaml.Node, p intent.Path) any {
	if n = d.enter(n, p); n == nil {
		return nil
	}
	defer d.leave()
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if name, ok := d.key(resolve(n.Content[i]), p, seen); ok {
				out[name] = d.free(n.Content[i+1], p.Join(name))
			}
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = d.free(item, p.Join(intent.Index(i)))
		}
		return out
	}
	if b, ok := boolOf(n); ok {
		return b
	}
	if i, ok := intOf(n); ok {
		return i
	}
	if IsNull(n) {
		return nil
	}
	if n.ShortTag() == "!!float" {
		if f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	}
	return n.Value
}

// Anything is a value of any shape that weir does not look at.
type Anything struct{}

func (*Anything) decodeNode(*decoder, *yaml.Node, intent.Path) {}

package strict

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

// Unquoted words that are booleans in YAML 1.1, which Kubernetes uses.
var (
	trueWords  = []string{"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
	falseWords = []string{"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"}
)

// isPlain reports whether a scalar is unquoted, so that its type depends on its text.
func isPlain(n *yaml.Node) bool {
	quoted := yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	return n.Style&quoted == 0
}

// boolean parses a boolean by the rules of the language.
func boolean(kubernetes bool, n *yaml.Node) (value, ok bool) {
	value, ok = boolOf(n)
	return value, ok && (kubernetes || n.ShortTag() == "!!bool")
}

// boolOf parses a boolean by the rules of Kubernetes.
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

// Text parses a string by the rules of Kubernetes, which refuses numbers and booleans.
func Text(n *yaml.Node) (string, bool) {
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

// textIn parses a string by the rules of the language.
func textIn(kubernetes bool, n *yaml.Node) (string, bool) {
	if kubernetes {
		return Text(n)
	}
	return n.Value, n.Kind == yaml.ScalarNode
}

// intOf parses an integer. As in JSON, 3.0 is an integer.
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
		f, ok := floatOf(n)
		if ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), true
		}
	}
	return 0, false
}

// floatOf parses a finite number.
func floatOf(n *yaml.Node) (float64, bool) {
	if tag := n.ShortTag(); n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// scalar decodes a scalar into a string, bool or number. Floats must not be negative. It panics for other
// types, because no manifest has them.
func (d *Decoder) scalar(n *yaml.Node, v reflect.Value, p intent.Path) {
	switch v.Kind() {
	case reflect.String:
		s, ok := textIn(d.Kubernetes, n)
		if !ok {
			d.WrongType(n, p, "text")
			return
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := boolean(d.Kubernetes, n)
		if !ok {
			d.WrongType(n, p, "true or false")
			return
		}
		v.SetBool(b)
	case reflect.Float64:
		f, ok := floatOf(n)
		if !ok {
			d.WrongType(n, p, "a number")
			return
		}
		if f < 0 {
			d.Error(n, p, "out-of-range", p.String()+" is below 0", "")
		}
		v.SetFloat(f)
	case reflect.Int, reflect.Int32, reflect.Int64:
		i, ok := intOf(n)
		if !ok {
			d.WrongType(n, p, "a whole number")
			return
		}
		if v.OverflowInt(i) {
			d.Error(n, p, "out-of-range", p.String()+" is "+quoted(d.Secret, "%d, which is ", i)+"too large", "")
			return
		}
		v.SetInt(i)
	default:
		panic("strict: nothing reads a " + v.Type().String())
	}
}

// duration decodes a duration in Go's syntax, such as 5m. A fault leaves the value unchanged.
func (d *Decoder) duration(n *yaml.Node, into *time.Duration, p intent.Path) {
	text, ok := textIn(d.Kubernetes, n)
	if !ok {
		d.WrongType(n, p, "a duration")
		return
	}
	code := "bad-value"
	if d.Kubernetes {
		code = "wrong-type"
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		d.Error(n, p, code, p.String()+" is not a duration"+quoted(d.Secret, ": %q", text), `write a number with a unit, such as "300s" or "5m"`)
		return
	}
	*into = parsed
}

// WrongType reports a node that has another type than want. It never quotes the value, which may be secret.
func (d *Decoder) WrongType(n *yaml.Node, p intent.Path, want string) {
	detail := ""
	if want == "text" && n.Kind == yaml.ScalarNode && isPlain(n) {
		detail = "write it in quotes"
	}
	if want == "a whole number" && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		if _, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			detail = "write it without quotes"
		}
	}
	d.Error(n, p, "wrong-type", fmt.Sprintf("%s must be %s, not %s", named(d.Whole, p), want, kindOf(d.Kubernetes, n)), detail)
}

// kindOf describes the type of a node for messages, such as "a list".
func kindOf(kubernetes bool, n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if _, ok := boolean(kubernetes, n); ok {
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

// freeScalar returns the value of a scalar in a field of any type: bool, int64, float64, nil or string. A
// whole float becomes an int64.
func freeScalar(n *yaml.Node) any {
	if b, ok := boolOf(n); ok {
		return b
	}
	if i, ok := intOf(n); ok {
		return i
	}
	if IsNull(n) {
		return nil
	}
	if f, ok := floatOf(n); ok && n.ShortTag() == "!!float" {
		return f
	}
	return n.Value
}

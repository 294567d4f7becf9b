package strict

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
	"go.yaml.in/yaml/v3"
)

// Limit restricts a value. Nil means no limit.
type Limit struct {
	Minimum, Maximum, MinLength, MaxLength, MinItems, MaxItems, MinProperties *int64

	Pattern *regexp.Regexp
	Enum    []string
	// Also is a further check of a string, or of every string in a list. It returns a fault with a code and a
	// message.
	Also func(p intent.Path, text string) (f Fault, bad bool)
}

// set sets the bound with the given name, such as maxLength. The value is text from limits.txt or from a check
// tag; | separates the values of an enum. set panics if the name or the value is wrong, because both are part
// of weir's code.
func (l *Limit) set(name, value string) {
	switch name {
	case "pattern":
		l.Pattern = regexp.MustCompile(value)
		return
	case "enum":
		l.Enum = strings.Split(value, "|")
		return
	}
	n, err := strconv.ParseInt(value, 10, 64)
	bound, ok := map[string]**int64{
		"minimum": &l.Minimum, "maximum": &l.Maximum, "minLength": &l.MinLength, "maxLength": &l.MaxLength,
		"minItems": &l.MinItems, "maxItems": &l.MaxItems, "minProperties": &l.MinProperties,
	}[name]
	if err != nil || !ok {
		panic(fmt.Sprintf("strict: bad limit %s=%s", name, value))
	}
	*bound = &n
}

// Limits is a tree of limits by path element: names, [] for the items of a list and {} for the values of a
// mapping.
type Limits struct {
	Limit
	below map[string]*Limits
}

// At returns the limits below the first of the elements that has some, or nil.
func (l *Limits) At(elements ...string) *Limits {
	if l == nil {
		return nil
	}
	for _, e := range elements {
		if next := l.below[e]; next != nil {
			return next
		}
	}
	return nil
}

// ParseLimits parses lines of kind, version, path and name=bound. It returns the limits by "kind version". In
// a path, [] stands for a position and {} for a key of a mapping.
func ParseLimits(text string) map[string]*Limits {
	out := map[string]*Limits{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		id := f[0] + " " + f[1]
		if out[id] == nil {
			out[id] = &Limits{}
		}
		at := out[id]
		for e := range strings.SplitSeq(strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(f[2]), ".") {
			if at.below == nil {
				at.below = map[string]*Limits{}
			}
			if at.below[e] == nil {
				at.below[e] = &Limits{}
			}
			at = at.below[e]
		}
		for _, bound := range f[3:] {
			name, value, _ := strings.Cut(bound, "=")
			at.set(name, value)
		}
	}
	return out
}

// limit checks a decoded node, and reports whether it is within the limit.
func (d *Decoder) limit(l *Limit, n *yaml.Node, p intent.Path) bool {
	before := d.faults
	switch n.Kind {
	case yaml.MappingNode:
		d.atLeast(l.MinProperties, written(n), n, p, "field")
	case yaml.SequenceNode:
		d.atLeast(l.MinItems, len(n.Content), n, p, "item")
		d.atMost(l.MaxItems, len(n.Content), n, p, "item")
		for i, item := range n.Content {
			if item = Resolve(item); item != nil {
				d.also(l, item, p.Join(intent.Index(i)))
			}
		}
	case yaml.ScalarNode:
		if i, ok := intOf(n); ok && d.Kubernetes {
			d.bounded(l, i, n, p)
		} else if text, ok := textIn(d.Kubernetes, n); ok {
			d.worded(l, text, n, p)
		}
	}
	return d.faults == before
}

// written returns the number of fields in a mapping that are not null.
func written(n *yaml.Node) (count int) {
	for i := 1; i < len(n.Content); i += 2 {
		if !IsNull(Resolve(n.Content[i])) {
			count++
		}
	}
	return count
}

func (d *Decoder) bounded(l *Limit, i int64, n *yaml.Node, p intent.Path) {
	is := p.String() + quoted(d.Secret, " is %d,", i)
	if l.Minimum != nil && i < *l.Minimum {
		d.Error(n, p, "out-of-range", fmt.Sprintf("%s must be at least %d", is, *l.Minimum), "")
	}
	if l.Maximum != nil && i > *l.Maximum {
		d.Error(n, p, "out-of-range", fmt.Sprintf("%s must be at most %d", is, *l.Maximum), "")
	}
}

// worded checks a text at a path against the limits on length, enum and pattern, and then against Also. It
// reports only the first fault.
func (d *Decoder) worded(l *Limit, text string, n *yaml.Node, p intent.Path) {
	before, length := d.faults, utf8.RuneCountInString(text)
	d.atLeast(l.MinLength, length, n, p, "character")
	d.atMost(l.MaxLength, length, n, p, "character")
	if d.faults == before && l.Enum != nil && !slices.Contains(l.Enum, text) {
		detail := "it must be " + oneOf(l.Enum)
		if near := nearest.Word(text, l.Enum); near != "" && len(l.Enum) > 4 {
			detail = fmt.Sprintf("did you mean %q? %s", near, detail)
		}
		summary := fmt.Sprintf("%s cannot be %q", p, text)
		if d.Secret {
			summary = p.String() + " has an unknown value" // the value may come from a variable
		}
		d.Error(n, p, "bad-enum", summary, detail)
	}
	if d.faults == before && l.Pattern != nil && !l.Pattern.MatchString(text) {
		d.Error(n, p, "bad-value", p.String()+" has a form that is not allowed", "it must match "+l.Pattern.String())
	}
	if d.faults == before && text != "" {
		d.also(l, n, p)
	}
}

func (d *Decoder) also(l *Limit, n *yaml.Node, p intent.Path) {
	if text, ok := Text(n); ok && l.Also != nil {
		if f, bad := l.Also(p, text); bad {
			d.Error(n, p, f.Code, f.Summary, f.Detail)
		}
	}
}

func (d *Decoder) atLeast(bound *int64, is int, n *yaml.Node, p intent.Path, what string) {
	if bound != nil && int64(is) < *bound {
		d.Error(n, p, "out-of-range", fmt.Sprintf("%s must have at least %s", p, count(*bound, what)), "remove the field to leave it empty")
	}
}

func (d *Decoder) atMost(bound *int64, is int, n *yaml.Node, p intent.Path, what string) {
	if bound != nil && int64(is) > *bound {
		d.Error(n, p, "out-of-range", fmt.Sprintf("%s has %d, must have at most %s", p, is, count(*bound, what)), "")
	}
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// oneOf joins words for a sentence: "a, b or c".
func oneOf(words []string) string {
	var quoted []string
	for _, w := range words {
		if w != "" { // empty means the same as a missing field
			quoted = append(quoted, strconv.Quote(w))
		}
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

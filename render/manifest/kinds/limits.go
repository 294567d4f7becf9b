package kinds

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// limitsText holds what Cluster API's and CAPA's schemas say about values and
// their sizes, a line each: kind, version, path, name=bound, where a path has []
// for a position and {} for a key of a mapping. The oracle module writes it. Tags
// of fields are for defaults, and for what weir says better or more strictly.
//
//go:embed limits.txt
var limitsText string

// limit is what a schema says about the size of a value; nil is "nothing".
type limit struct {
	minimum, maximum, minLength, maxLength, minItems, maxItems, minProperties *int64
	pattern                                                                   *regexp.Regexp
	enum                                                                      []string
}

// limits is a tree of limits by the elements of a path.
type limits struct {
	limit
	below map[string]*limits
}

// limitsOf returns the limits of a kind in a version, nil for one without.
func limitsOf(kind, version string) *limits { return allLimits()[kind+" "+version] }

var allLimits = sync.OnceValue(func() map[string]*limits {
	out := map[string]*limits{}
	for line := range strings.Lines(limitsText) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		id := f[0] + " " + f[1]
		if out[id] == nil {
			out[id] = &limits{}
		}
		at := out[id]
		for _, e := range pathElements(f[2]) {
			if at.below[e] == nil {
				if at.below == nil {
					at.below = map[string]*limits{}
				}
				at.below[e] = &limits{}
			}
			at = at.below[e]
		}
		for _, bound := range f[3:] {
			at.set(bound)
		}
	}
	return out
})

// pathElements splits spec.a[].b{} into spec, a, [], b and {}.
func pathElements(p string) []string {
	return strings.Split(strings.NewReplacer("[]", ".[]", "{}", ".{}").Replace(p), ".")
}

func (l *limit) set(bound string) {
	name, value, _ := strings.Cut(bound, "=")
	if name == "pattern" {
		l.pattern = regexp.MustCompile(value)
		return
	}
	if name == "enum" {
		l.enum = strings.Split(value, "|")
		return
	}
	n, err := strconv.ParseInt(value, 10, 64)
	field, ok := map[string]**int64{
		"minimum": &l.minimum, "maximum": &l.maximum, "minLength": &l.minLength, "maxLength": &l.maxLength,
		"minItems": &l.minItems, "maxItems": &l.maxItems, "minProperties": &l.minProperties,
	}[name]
	if err != nil || !ok {
		panic("manifest: bad bound in limits.txt: " + bound)
	}
	*field = &n
}

// checkLimits reports what is outside the limits of its schema. It looks at the
// nodes that decoding looked at; a node of another type is decoding's to report.
func (d *decoder) checkLimits(l *limits, n *yaml.Node, p intent.Path) {
	if n = resolve(n); n == nil || IsNull(n) {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		d.atLeast(l.minProperties, written(n), p, "field")
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if next := l.below[name]; next != nil {
				d.checkLimits(next, n.Content[i+1], p.Join(name))
			} else if next := l.below["{}"]; next != nil {
				d.checkLimits(next, n.Content[i+1], p.Join(name))
			}
		}
	case yaml.SequenceNode:
		d.atLeast(l.minItems, int64(len(n.Content)), p, "item")
		d.atMost(l.maxItems, int64(len(n.Content)), p, "item")
		if next := l.below["[]"]; next != nil {
			for i, item := range n.Content {
				d.checkLimits(next, item, p.Join(intent.Index(i)))
			}
		}
	case yaml.ScalarNode:
		d.checkScalarLimits(&l.limit, n, p)
	}
}

// written counts the fields of a mapping that are not null.
func written(n *yaml.Node) (count int64) {
	for i := 1; i < len(n.Content); i += 2 {
		if !IsNull(resolve(n.Content[i])) {
			count++
		}
	}
	return count
}

// checkScalarLimits never quotes the value: it may be a secret.
func (d *decoder) checkScalarLimits(l *limit, n *yaml.Node, p intent.Path) {
	if i, ok := intOf(n); ok {
		if !d.faultAt(p) {
			d.checkRange(field{min: l.minimum, max: l.maximum}, i, p)
		}
		return
	}
	text, ok := textOf(n)
	if !ok {
		return
	}
	length := int64(utf8.RuneCountInString(text))
	d.atLeast(l.minLength, length, p, "character")
	d.atMost(l.maxLength, length, p, "character")
	if l.enum != nil && !slices.Contains(l.enum, text) && !d.faultAt(p) {
		d.Error(p, "bad-enum", p.String()+" has a value that is not allowed", "it must be "+OneOf(l.enum))
	}
	if l.pattern != nil && !l.pattern.MatchString(text) && !d.faultAt(p) {
		d.Error(p, "bad-value", p.String()+" has a form that is not allowed", "it must match "+l.pattern.String())
	}
}

func (d *decoder) atLeast(bound *int64, n int64, p intent.Path, what string) {
	if bound != nil && n < *bound && !d.faultAt(p) {
		d.Error(p, "out-of-range", fmt.Sprintf("%s must have at least %s", p, count(*bound, what)), "leave the field out if it is to be empty")
	}
}

func (d *decoder) atMost(bound *int64, n int64, p intent.Path, what string) {
	if bound != nil && n > *bound && !d.faultAt(p) {
		d.Error(p, "out-of-range", fmt.Sprintf("%s has %d, must have at most %s", p, n, count(*bound, what)), "")
	}
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// faultAt reports whether something was found at p already.
func (d *decoder) faultAt(p intent.Path) bool {
	for _, f := range d.To.List {
		if f.Ref == d.Ref && Overlap(f.Path, p) && len(f.Path) == len(p) {
			return true
		}
	}
	return false
}

// limitSchema adds limits to a schema.
func limitSchema(s *Schema, l *limits) {
	if l == nil || s == nil {
		return
	}
	s.Minimum, s.Maximum = stricter(s.Minimum, l.minimum, 1), stricter(s.Maximum, l.maximum, -1)
	for field, bound := range map[*int64]*int64{&s.MinLength: l.minLength, &s.MaxLength: l.maxLength, &s.MinItems: l.minItems,
		&s.MaxItems: l.maxItems, &s.MinProperties: l.minProperties} {
		if bound != nil && *field == 0 {
			*field = *bound
		}
	}
	if s.Enum == nil {
		s.Enum = l.enum
	}
	if l.pattern != nil {
		s.Pattern = l.pattern.String()
	}
	for name, property := range s.Properties {
		limitSchema(property, l.below[name])
	}
	limitSchema(s.Items, l.below["[]"])
	limitSchema(s.AdditionalProperties, l.below["{}"])
}

// stricter returns the bound that leaves less: the larger with sign 1, the
// smaller with sign -1.
func stricter(a, b *int64, sign int64) *int64 {
	if a == nil || (b != nil && *b*sign > *a*sign) {
		return b
	}
	return a
}

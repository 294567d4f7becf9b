package intent

import (
	"fmt"
	"strconv"
	"strings"
)

// ObjectRef identifies a rendered object. Namespace is "default" if the manifest has none, and empty for
// cluster-scoped kinds.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Group returns the API group of the object: the part of APIVersion before the slash. It is empty for the
// core group.
func (r ObjectRef) Group() string {
	group, _, ok := strings.Cut(r.APIVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// String returns "Kind namespace/name".
func (r ObjectRef) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Path is the path of a field inside an object. Its elements are mapping keys, and sequence positions as
// "[n]".
type Path []string

// Index returns the Path element for position i of a sequence.
func Index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// Join returns a copy of p with more elements at its end.
func (p Path) Join(elems ...string) Path {
	out := make(Path, 0, len(p)+len(elems))
	return append(append(out, p...), elems...)
}

// String returns the path in the form spec.a.b[0]["key.with/dots"].
func (p Path) String() string {
	var b strings.Builder
	for i, e := range p {
		switch {
		case strings.HasPrefix(e, "["):
			b.WriteString(e)
		case strings.ContainsAny(e, `.[]/"`) || e == "":
			fmt.Fprintf(&b, "[%q]", e)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(e)
		}
	}
	return b.String()
}

// ParsePath parses the output of Path.String.
func ParsePath(s string) (Path, error) {
	var out Path
	rest := s
	for rest != "" {
		switch {
		case strings.HasPrefix(rest, `["`):
			q, err := strconv.QuotedPrefix(rest[1:])
			if err != nil || !strings.HasPrefix(rest[1+len(q):], "]") {
				return nil, fmt.Errorf("parse path %q: unclosed key", s)
			}
			key, err := strconv.Unquote(q)
			if err != nil {
				return nil, fmt.Errorf("parse path %q: %w", s, err)
			}
			out, rest = append(out, key), rest[len(q)+2:]
		case rest[0] == '[':
			n, tail, ok := strings.Cut(rest[1:], "]")
			if _, err := strconv.ParseUint(n, 10, 31); !ok || err != nil {
				return nil, fmt.Errorf("parse path %q: bad index", s)
			}
			out, rest = append(out, "["+n+"]"), tail
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, fmt.Errorf("parse path %q: empty element", s)
			}
			out, rest = append(out, rest[:end]), rest[end:]
		}
	}
	return out, nil
}

// Question asks for the place in Git that sets a field of a rendered object. The answer is the place of the
// first of Paths that has a known place.
type Question struct {
	Object ObjectRef
	Paths  []Path
}

// Value returns the value that a pointer points to, or the zero value for nil. Most members of AWS's types
// are read with it, because a missing value and zero mean the same for them.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

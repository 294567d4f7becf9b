package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Fault is a finding about a rendered object. It has the object and the field, but no file and line.
type Fault struct {
	Severity diag.Severity
	// Code is stable and in kebab case.
	Code    string
	Summary string
	Detail  string
	// Ref and Path identify the field. If the field is missing in the object, its nearest existing parent is
	// shown.
	Ref  intent.ObjectRef
	Path intent.Path
	// Key is true if the fault is about the mapping key, not about its value.
	Key bool
	// Related are other fields that help to understand the fault.
	Related []RelatedField
}

// RelatedField is another field that a fault refers to.
type RelatedField struct {
	Ref     intent.ObjectRef
	Path    intent.Path
	Message string
}

// Diagnostic returns the fault as a diagnostic without a position.
func (f Fault) Diagnostic() diag.Diagnostic {
	return diag.Diagnostic{
		Severity: f.Severity, Code: f.Code, Summary: f.Summary, Detail: f.Detail,
		Object: f.Ref.String(), Field: f.Path.String(),
	}
}

// Faults collects findings. The zero value is ready to use.
type Faults struct {
	List []Fault
}

func (fs *Faults) Add(f Fault) { fs.List = append(fs.List, f) }

func (fs *Faults) HasErrors() bool {
	return slices.ContainsFunc(fs.List, func(f Fault) bool { return f.Severity == diag.Error })
}

// Reporter adds faults about one object.
type Reporter struct {
	Ref intent.ObjectRef
	To  *Faults
}

func (r Reporter) Report(s diag.Severity, p intent.Path, code, summary, detail string) {
	r.To.Add(Fault{Severity: s, Code: code, Summary: summary, Detail: detail, Ref: r.Ref, Path: p})
}

func (r Reporter) Error(p intent.Path, code, summary, detail string) {
	r.Report(diag.Error, p, code, summary, detail)
}

func (r Reporter) Warn(p intent.Path, code, summary, detail string) {
	r.Report(diag.Warning, p, code, summary, detail)
}

func (r Reporter) Info(p intent.Path, code, summary, detail string) {
	r.Report(diag.Info, p, code, summary, detail)
}

// Unsupported reports a part of the format that this version of weir does not support.
func (r Reporter) Unsupported(p intent.Path, what, detail string) {
	r.Error(p, "not-supported", what+" is not supported by this version", detail)
}

// path returns a field path.
func path(elems ...string) intent.Path { return elems }

// Overlap reports whether the paths are equal or one is a parent of the other.
func Overlap(a, b intent.Path) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// SortFaults sorts faults by object, then field, then code.
func SortFaults(list []Fault) {
	slices.SortStableFunc(list, func(a, b Fault) int {
		return cmp.Or(
			cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Kind, b.Ref.Kind),
			cmp.Compare(a.Ref.Name, b.Ref.Name), slices.Compare(a.Path, b.Path),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Summary, b.Summary))
	})
}

// OneOf joins words for a sentence: "a, b or c".
func OneOf(words []string) string {
	var quoted []string
	for _, w := range words {
		if w != "" { // empty means the same as a missing field
			quoted = append(quoted, fmt.Sprintf("%q", w))
		}
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

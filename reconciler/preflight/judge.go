package preflight

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// Codes of findings.
const (
	codeUnknown = "unknown-name"
	codeRefused = "would-be-refused"
	codeOffered = "not-offered"
	codeShort   = "capacity-short"
	codeDryRun  = "dry-run-refused"
	codeUnasked = "preflight-unasked"
)

// verdict is the work on the launches of one target: a pure function of them and of the
// facts, which notes the facts that it lacks.
type verdict struct {
	facts *facts
	found diag.List
	// unasked says what AWS did not tell, by the call that would have.
	unasked map[string]*observed.Error
	// lacks says that facts were wanted: what was found means nothing then.
	lacks bool
	// dryRuns says that dry runs may be made.
	dryRuns bool
}

// judge gives the findings about launches. lacks is true where facts are missing, which
// are then wanted of the shelves.
func judge(launches []*launch, f *facts, dryRuns bool) (found diag.List, lacks bool) {
	v := &verdict{facts: f, unasked: map[string]*observed.Error{}, dryRuns: dryRuns}
	for _, l := range launches {
		if l.configures {
			v.names(l)
			v.keys(l)
			v.image(l)
			v.placement(l)
			v.types(l)
		}
		if l.places {
			v.offerings(l)
		}
		v.targetGroups(l)
	}
	v.addresses(launches)
	v.quotas(launches)
	if dryRuns && !v.lacks && v.found.Count(diag.Warning) == 0 {
		v.launch(launches)
	}
	v.sayUnasked()
	return v.found, v.lacks
}

// know looks at a fact. There is a value where ok is true; where AWS says that there is
// none, absent is.
func know[V any](v *verdict, s *shelf[V], key string) (value V, ok, absent bool) {
	f, known := s.get(key)
	switch {
	case !known:
		v.lacks = true
		return value, false, false
	case f.err != nil:
		v.unasked[f.err.Service+":"+f.err.Operation] = f.err
		return value, false, false
	}
	return f.value, f.present, !f.present
}

// warn records a finding at a field.
func (v *verdict) warn(code string, object intent.ObjectRef, path intent.Path, summary, detail string) {
	d := diag.Diagnostic{
		Severity: diag.Warning, Code: code, Summary: summary, Detail: cmp.Or(detail, diag.Hint(code)), Object: object.String(), Field: path.String(),
	}
	if !slices.ContainsFunc(v.found, func(o diag.Diagnostic) bool {
		return o.Summary == d.Summary && o.Object == d.Object && o.Field == d.Field
	}) {
		v.found = append(v.found, d) // pools that share a launch template share what is wrong with it
	}
}

// refused records that AWS would refuse what a member of the launch template says.
func (v *verdict) refused(l *launch, member, summary, detail string) {
	object, path := fieldOf(l.pool, member)
	v.warn(codeRefused, object, path, summary, detail)
}

// fieldOf is the field that sets a member of the data of a pool's launch template.
func fieldOf(pool *intent.Pool, member string) (intent.ObjectRef, intent.Path) {
	if f := pool.ForeignTemplate; f != nil {
		return pool.Infrastructure, f.NameField
	}
	object, options := pool.Infrastructure, pool.Options
	at, err := intent.ParsePath(member)
	if err != nil || pool.LaunchTemplate == nil {
		return object, nil
	}
	paths, ofOptions := field.TemplateFields(at, pool.LaunchTemplate.RootDevice)
	path := intent.Path{"spec", "awsLaunchTemplate"}
	if len(paths) > 0 {
		path = intent.Path{"spec"}.Join(paths[0]...)
	}
	if c := pool.LaunchConfig; c != nil {
		object, options = c.Source, c.Options
		if p, ok := c.Field(path); ok && !ofOptions {
			path = p
		}
	}
	if ofOptions && options.Kind != "" {
		object = options
	}
	return object, path
}

// sayUnasked says once what AWS did not tell. Which of it matters is not known.
func (v *verdict) sayUnasked() {
	if len(v.unasked) == 0 {
		return
	}
	var denied, failed []string
	for call, err := range v.unasked {
		if err.Kind == observed.Denied {
			denied = append(denied, call)
		} else {
			failed = append(failed, call+" ("+cmp.Or(err.Code, string(err.Kind))+")")
		}
	}
	slices.Sort(denied)
	slices.Sort(failed)
	var said []string
	detail := diag.Hint(codeUnasked)
	if len(denied) > 0 {
		said = append(said, "the role may not call "+strings.Join(denied, ", "))
	}
	if len(failed) > 0 {
		said = append(said, "AWS did not answer "+strings.Join(failed, ", "))
	}
	v.found = append(v.found, diag.Diagnostic{
		Severity: diag.Info, Code: codeUnasked, Detail: detail,
		Summary: "it is not known of all that the manifests name whether AWS takes it: " + strings.Join(said, "; "),
	})
}

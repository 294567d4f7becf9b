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
	codeNoType  = "instance-type-unknown"
	codeRelease = "release-unknown"

	codeSmall        = "root-volume-too-small"
	codeSmallUnknown = "root-volume-maybe-too-small"
)

// verdict judges the launches of one target. Its result depends only on the launches and the facts, and it
// notes which facts are missing.
type verdict struct {
	facts *facts

	// refusals is Answer.Refused.
	refusals map[string][]string

	used map[string]int64 // vCPUs that currently count against a quota, by its code

	// lacks says that facts are missing. The findings are then meaningless.
	lacks bool
	// dryRuns allows dry runs.
	dryRuns  bool
	findings findings
}

// findings collects the findings about launches.
type findings struct {
	found diag.List
	said  map[[3]string]bool // objects, fields and summaries of findings
	// unasked contains the unanswered questions, by call.
	unasked map[string]*observed.Error
}

// judge returns the findings about launches. lacks is true if facts are missing. The next read fetches them.
func judge(launches []*launch, f *facts, dryRuns bool) (answer Answer, lacks bool) {
	v := &verdict{
		facts: f, refusals: map[string][]string{}, used: map[string]int64{}, dryRuns: dryRuns,
		findings: findings{said: map[[3]string]bool{}, unasked: map[string]*observed.Error{}},
	}
	for _, l := range launches {
		if l.configures {
			v.names(l)
			v.keys(l)
			v.image(l)
			v.placement(l)
			v.types(l)
			v.release(l)
		}
		if l.places {
			v.offerings(l)
		}
		v.targetGroups(l)
	}
	v.quotas(launches)
	v.reservations(launches)
	v.addresses(launches)
	if dryRuns && !v.lacks && len(v.findings.found) == 0 {
		v.launch(launches)
	}
	v.findings.sayUnasked()
	return Answer{v.findings.found, v.refusals}, v.lacks
}

// know looks up a fact. ok says that the answer has a value. absent says that the thing does not exist.
func know[V any](v *verdict, s *shelf[V], key string) (value V, ok, absent bool) {
	f, known := s.get(key)
	switch {
	case !known:
		v.lacks = true
		return value, false, false
	case f.err != nil:
		v.findings.unasked[f.err.Service+":"+f.err.Operation] = f.err
		return value, false, false
	}
	return f.value, f.present, !f.present
}

// warn adds a warning about a field.
func (f *findings) warn(code string, object intent.ObjectRef, path intent.Path, summary, detail string) {
	f.say(diag.Warning, code, object, path, summary, detail)
}

// fail adds an error about something that AWS will certainly refuse.
func (f *findings) fail(code string, object intent.ObjectRef, path intent.Path, summary, detail string) {
	f.say(diag.Error, code, object, path, summary, detail)
}

func (f *findings) say(severity diag.Severity, code string, object intent.ObjectRef, path intent.Path, summary, detail string) {
	d := diag.Diagnostic{
		Severity: severity, Code: code, Summary: summary, Detail: cmp.Or(detail, diag.Hint(code)), Object: object.String(), Field: path.String(),
	}
	if key := [3]string{d.Object, d.Field, d.Summary}; !f.said[key] {
		f.said[key] = true
		f.found = append(f.found, d) // pools that share a launch template share its faults
	}
}

// noMachine records why no new machine of a launch's pool can start.
func (v *verdict) noMachine(l *launch, why string) {
	if key := l.pool.Key.String(); !slices.Contains(v.refusals[key], why) {
		v.refusals[key] = append(v.refusals[key], why)
	}
}

// refused records that AWS would refuse a member of the launch template.
func (v *verdict) refused(l *launch, member, summary, detail string) {
	object, path := fieldOf(l.pool, member)
	v.findings.warn(codeRefused, object, path, summary, detail)
}

// fieldOf returns the field that sets a member of a pool's launch template data.
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

// sayUnasked reports all unanswered questions in one diagnostic. It does not know which of them matter.
func (f *findings) sayUnasked() {
	if len(f.unasked) == 0 {
		return
	}
	var denied, failed []string
	for call, err := range f.unasked {
		if err.Kind == observed.Denied {
			denied = append(denied, call)
		} else {
			failed = append(failed, call+" ("+cmp.Or(err.Code, string(err.Kind))+")")
		}
	}
	slices.Sort(denied)
	slices.Sort(failed)
	var said []string
	if len(denied) > 0 {
		said = append(said, "the role may not call "+strings.Join(denied, ", "))
	}
	if len(failed) > 0 {
		said = append(said, "AWS did not answer "+strings.Join(failed, ", "))
	}
	f.found = append(f.found, unasked(strings.Join(said, "; ")))
}

// unasked returns the note about unanswered questions, with the reasons.
func unasked(why string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Info, Code: codeUnasked, Detail: diag.Hint(codeUnasked),
		Summary: "weir does not know for everything that the manifests name whether AWS accepts it: " + why,
	}
}

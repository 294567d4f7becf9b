package config

import (
	"cmp"
	"encoding"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/target"
	"github.com/weir-gitops/weir/render/schema"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/pulls"
)

// required are the keys without which validation refuses a configuration, by the
// place that has them; [] stands for an entry of a list or of a mapping.
var required = map[string][]string{
	"":                {"apiVersion", "instance", "kind", "sources", "targets"},
	"sources[]":       {"name", "url"},
	"forges[]":        {"type"},
	"notify[]":        {"secretFile", "url"},
	"targets[]":       {"name"},
	"access.tokens[]": {"file", "name", "role"},
	"access.rules[]":  {"role"},
}

// oneOf are keys of which at least one must be there, by the place that has them.
var oneOf = map[string][]string{"targets[]": {"region", "table"}, "targets[].varsFrom[]": {"file", "path"}}

// words are the keys that take one of a few values.
var words = map[string][]string{
	"apiVersion": {APIVersion}, "kind": {Kind}, "forges[].type": {Forgejo, Generic, Gitea, GitHub, GitLab}, "targets[].mode": {target.Correct, target.Report}, "sources[].verify.mode": {"commit", "either", "tag"},
	"targets[].apply": {target.Always, target.AsReviewed}, "targets[].windows[].kind": {target.Allow, target.Deny}, "targets[].windows[].days[]": target.Weekdays,
	"forges[].pullRequests.plan": {pulls.Always, pulls.Never}, "forges[].pullRequests.drafts": {pulls.DraftsPlan, pulls.DraftsWait}, "forges[].pullRequests.forks.allowBy[]": {pulls.ByComment, pulls.ByLabel},
	"access.anonymous": {access.AnonymousNone, access.AnonymousRead}, "access.withoutTLS": {access.BehindProxy, access.Insecure}, "access.tokens[].role": access.Roles, "access.rules[].role": access.Roles,
}

// forms are the keys whose values match a pattern.
var forms = map[string]*regexp.Regexp{
	"instance": instancePattern, "sources[].name": namePattern, "targets[].name": targetPattern, "targets[].region": regionPattern,
	"targets[].accountID": accountPattern, "targets[].roleARN": rolePattern, "targets[].planRoleARN": rolePattern, "targets[].allowedRoleARNs[]": rolePattern, "targets[].dependsOn[]": dependencyPattern,
	"targets[].table[].region": regionPattern, "targets[].table[].accountID": accountPattern, "targets[].table[].roleARN": rolePattern, "targets[].table[].planRoleARN": rolePattern, "targets[].table[].allowedRoleARNs[]": rolePattern,
	"access.tokens[].name": namePattern, "access.proxy.userHeader": headerPattern, "access.proxy.groupsHeader": headerPattern, "access.proxy.secretHeader": headerPattern,
}

// defaults are the values of keys that are left out.
var defaults = map[string]any{
	"listen": DefaultListen, "limits.nodes": target.DefaultNodes, "limits.pools": target.DefaultPools, "limits.targets": target.DefaultTargets, "interval": "1m", "sources[].interval": "30s", "sources[].verify.mode": "commit", "targets[].path": ".", "targets[].mode": target.Correct, "targets[].prune.limit": "20%",
	"targets[].apply": target.Always, "targets[].windows[].kind": target.Allow, "targets[].windows[].timezone": "UTC", "targets[].windows[].start": "00:00", "targets[].windows[].end": "24:00",
	"forges[].pullRequests.plan": pulls.Always, "forges[].pullRequests.drafts": pulls.DraftsPlan, "forges[].pullRequests.forks.label": pulls.DefaultForkLabel,
	"access.proxy.userHeader": access.DefaultUserHeader, "access.proxy.groupsHeader": access.DefaultGroupsHeader, "access.proxy.secretHeader": access.DefaultSecretHeader,
}

// Schema returns the JSON Schema of a configuration, as draft-07. It takes what
// Parse takes, and some that Parse refuses.
func Schema() schema.Node {
	out := describe("", reflect.TypeFor[Config]())
	out["$schema"], out["title"] = schema.Draft, "The configuration of weir"
	return out
}

// describe is the schema of the type of what stands at a path.
func describe(at string, t reflect.Type) schema.Node {
	out := shape(at, t)
	if d, ok := defaults[at]; ok {
		out["default"] = d
	}
	return out
}

func shape(at string, t reflect.Type) schema.Node {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "string", "pattern": schema.Duration}, schema.Node{"enum": []any{0, nil}}}}
	case t == reflect.TypeFor[target.Limit]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "integer", "minimum": 1}, schema.Node{"type": "string", "pattern": `^0*[1-9][0-9]*%?$`}, schema.Node{"type": "null"}}}
	case t == reflect.TypeFor[target.Clock]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "string", "pattern": target.ClockPattern.String()}, schema.Node{"type": "null"}}}
	case t == reflect.TypeFor[target.Count]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "integer", "minimum": 1, "maximum": target.MaxCount}, schema.Node{"type": "string", "pattern": `^0*[1-9][0-9]*$`}, schema.Node{"type": "null"}}}
	case t == reflect.TypeFor[target.Rollouts]():
		return schema.Node{"anyOf": []any{schema.Node{"type": "integer", "minimum": 1}, schema.Node{"type": "string", "pattern": `^0*[1-9][0-9]*$`}, schema.Node{"type": "null"}}}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return anyScalar()
	}
	switch t.Kind() {
	case reflect.Struct:
		return structure(at, t)
	case reflect.Slice:
		return schema.Node{"type": orNull(at, "array"), "items": describe(at+"[]", t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Struct {
			return schema.Node{"type": []string{"object", "null"}, "additionalProperties": describe(at+"[]", t.Elem())}
		}
		return schema.Node{"type": []string{"object", "null"}, "additionalProperties": anyScalar(), "propertyNames": schema.Node{"pattern": varPattern.String()}}
	case reflect.Bool:
		return schema.Node{"type": []string{"boolean", "null"}}
	}
	out := anyScalar()
	if list := words[at]; list != nil {
		return schema.Node{"enum": list}
	}
	if form := forms[at]; form != nil {
		out["pattern"] = form.String()
		if !isRequired(at) && !strings.HasSuffix(at, "[]") {
			out["pattern"] = "^$|" + form.String() // empty is as if it were absent
		}
	}
	return out
}

func structure(at string, t reflect.Type) schema.Node {
	props := schema.Node{}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "-" {
			p := describe(join(at, name), t.Field(i).Type)
			if text := cmp.Or(descriptions()[t.Name()+"."+name], descriptions()[elementName(t.Field(i).Type)]); text != "" {
				p["description"] = text
			}
			props[name] = p
		}
	}
	out := schema.Node{"type": orNull(at, "object"), "properties": props, "additionalProperties": false}
	if list := required[at]; list != nil {
		out["required"] = list
	}
	var choices []any
	for _, key := range oneOf[at] {
		choices = append(choices, schema.Node{"required": []string{key}})
	}
	if choices != nil {
		out["anyOf"] = choices
	}
	return out
}

// elementName is the name of a type, or of that of a list's entries.
func elementName(t reflect.Type) string {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Name()
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// anyScalar is a text, which may also be written as YAML writes other scalars.
func anyScalar() schema.Node {
	return schema.Node{"type": []string{"string", "number", "boolean", "null"}}
}

// orNull takes null as well where a key may be left out.
func orNull(at, kind string) any {
	if at == "" || required[at] != nil || isRequired(at) {
		return kind
	}
	return []string{kind, "null"}
}

// isRequired says whether the last key of a path must be there.
func isRequired(at string) bool {
	cut := strings.LastIndex(at, ".")
	return slices.Contains(required[at[:max(cut, 0)]], at[cut+1:])
}

// schemaPaths are the places that the tables above speak of, for tests.
func schemaPaths() []string {
	var out []string
	for at, keys := range required {
		for _, k := range keys {
			out = append(out, join(at, k))
		}
	}
	for at, keys := range oneOf {
		for _, k := range keys {
			out = append(out, join(at, k))
		}
	}
	return slices.Concat(out, slices.Collect(maps.Keys(words)), slices.Collect(maps.Keys(forms)), slices.Collect(maps.Keys(defaults)))
}

package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// admitted is what an API server makes of a manifest: the spec that it stores, or
// why it refuses, each reason with its field.
type admitted struct {
	spec    map[string]any
	refused map[string]string
}

func refusal(path, reason string) admitted {
	return admitted{refused: map[string]string{path: reason}}
}

// server is what an API server knows about a subject.
type server struct {
	subject
	schema    *spec.Schema
	validator *validate.SchemaValidator
}

func serverFor(t testing.TB, s subject) server {
	t.Helper()
	schema := schemaOf(t, s)
	return server{s, schema, validate.NewSchemaValidator(schema, nil, "", strfmt.Default)}
}

// admit does what an API server does with a manifest, in its order: read it
// strictly, drop nulls, fill the schema's defaults, validate by the schema, decode,
// convert to the version of the webhooks, and call them.
func (s server) admit(text string) admitted {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return refusal("", "yaml: "+err.Error())
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return refusal("", "json: "+err.Error())
	}
	out := admitted{refused: map[string]string{}}
	if body, ok := object["spec"]; ok {
		bodySchema := ptr(s.schema.Properties["spec"])
		unknown(bodySchema, body, "spec", out.refused)
		dropNulls(bodySchema, body)
		fillDefaults(bodySchema, body)
	}
	if result := s.validator.Validate(object); !result.IsValid() {
		for _, err := range result.Errors {
			path, reason, _ := strings.Cut(err.Error(), " ")
			out.refused[path] = reason
		}
	}
	if len(out.refused) > 0 {
		return out
	}
	return admitTyped(s.subject, object)
}

// admitTyped goes on with an object that the schema allows.
func admitTyped(s subject, object map[string]any) admitted {
	raw, err := json.Marshal(object)
	if err != nil {
		return refusal("", "json: "+err.Error())
	}
	typed := s.new()
	strict, err := kjson.UnmarshalStrict(raw, typed)
	if err = errors.Join(append(strict, err)...); err != nil {
		return refusal("", "decode: "+err.Error())
	}
	if s.hub != nil {
		hub := s.hub()
		if err := typed.(conversion.Convertible).ConvertTo(hub); err != nil {
			return refusal("", "convert: "+err.Error())
		}
		typed = hub
	}
	if s.webhook != nil {
		ctx := context.Background()
		if err := s.webhook.Default(ctx, typed); err != nil {
			return refusal("", "default: "+err.Error())
		}
		if _, err := s.webhook.ValidateCreate(ctx, typed); err != nil {
			return refusedBy(err)
		}
	}
	raw, err = json.Marshal(typed)
	if err != nil {
		return refusal("", "json: "+err.Error())
	}
	var stored map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &stored); err != nil {
		return refusal("", "json: "+err.Error())
	}
	spec, _ := stored["spec"].(map[string]any)
	return admitted{spec: spec}
}

// refusedBy takes the fields out of a webhook's error.
func refusedBy(err error) admitted {
	out := admitted{refused: map[string]string{}}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return refusal("", "webhook: "+err.Error())
	}
	for _, c := range status.Status().Details.Causes {
		out.refused[c.Field] = "webhook: " + c.Message
	}
	return out
}

// unknown notes fields that a schema does not have.
func unknown(s *spec.Schema, v any, path string, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			property, ok := s.Properties[name]
			switch {
			case ok:
				unknown(&property, item, path+"."+name, out)
			case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
				unknown(s.AdditionalProperties.Schema, item, path+"{}", out)
			case len(s.Properties) > 0:
				if keep, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); !keep {
					out[path+"."+name] = "unknown field"
				}
			}
		}
	case []any:
		for _, item := range v {
			if s.Items != nil && s.Items.Schema != nil {
				unknown(s.Items.Schema, item, path+"[]", out)
			}
		}
	}
}

// dropNulls removes nulls of fields that may not be null.
func dropNulls(s *spec.Schema, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			below, ok := s.Properties[name]
			if !ok {
				if s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil {
					continue
				}
				below = *s.AdditionalProperties.Schema
			}
			if item == nil && !below.Nullable {
				delete(v, name)
				continue
			}
			dropNulls(&below, item)
		}
	case []any:
		for _, item := range v {
			if s.Items != nil && s.Items.Schema != nil {
				dropNulls(s.Items.Schema, item)
			}
		}
	}
}

// fillDefaults sets what is absent and has a default.
func fillDefaults(s *spec.Schema, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			below := s.Properties[name]
			if _, ok := v[name]; !ok && below.Default != nil {
				v[name] = clone(below.Default)
			}
			if item, ok := v[name]; ok {
				fillDefaults(&below, item)
			}
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			for name, item := range v {
				if _, ok := s.Properties[name]; !ok {
					fillDefaults(s.AdditionalProperties.Schema, item)
				}
			}
		}
	case []any:
		for _, item := range v {
			if s.Items != nil && s.Items.Schema != nil {
				fillDefaults(s.Items.Schema, item)
			}
		}
	}
}

// clone copies a JSON value, so that a default is not shared.
func clone(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a default that is not JSON: %v", err))
	}
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &out); err != nil {
		panic(fmt.Sprintf("a default that is not JSON: %v", err))
	}
	return out
}

package ssm

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Limits of the parameter store's standard tier.
const (
	maxParameterValue  = 4096
	maxParameterName   = 1011
	maxParameterLevels = 15
	maxParameterTags   = 50
	// maxParameterVersions is the number of stored versions. When a new one exceeds it, the oldest is
	// removed.
	maxParameterVersions = 100
	// defaultParameterKey encrypts parameters that name no key.
	defaultParameterKey = "alias/aws/ssm"
)

// tag is a tag in SSM's format.
type tag struct{ Key, Value string }

type putParameterInput struct {
	Name           string
	Description    string
	Value          string
	Type           string
	KeyId          string //nolint:revive // the name on the wire
	Overwrite      bool
	AllowedPattern string
	Tags           []tag
	Tier           string
	Policies       string
	DataType       string
}

func putParameter(rq *request, in putParameterInput) (any, error) {
	if err := checkPut(rq, in); err != nil {
		return nil, err
	}
	r := rq.Region
	p := r.Parameters.Get(in.Name)
	switch {
	case p == nil && in.Type == "":
		return nil, wire.Fail("ValidationException", "A parameter type is required when you create a parameter.")
	case p != nil && !in.Overwrite:
		return nil, wire.Fail("ParameterAlreadyExists", "The parameter already exists. To overwrite this value, set the overwrite option in the request to true.")
	case p != nil && in.Type != "" && in.Type != p.Type:
		return nil, wire.Fail("HierarchyTypeMismatchException", "Parameter type can't be changed.")
	}
	if p == nil {
		p = &Parameter{Name: in.Name, Type: in.Type}
	} else {
		old := *p
		p = &old
		p.Before = append(slices.Clone(p.Before), old.alone())
		if over := len(p.Before) + 1 - maxParameterVersions; over > 0 {
			p.Before = p.Before[over:]
		}
	}
	// The table gets a copy, so that earlier results of reads do not change.
	p.Value, p.Version, p.Modified, p.Writer = in.Value, p.Version+1, r.Now(), rq.Caller
	if in.Description != "" {
		p.Description = in.Description
	}
	if p.Type == "SecureString" {
		p.Key = in.KeyId
		if p.Key == "" {
			p.Key = defaultParameterKey
		}
	}
	if len(in.Tags) > 0 {
		p.Tags = withTags(p.Tags, in.Tags)
	}
	r.Parameters.Put(in.Name, p)
	return map[string]any{"Version": p.Version, "Tier": "Standard"}, nil
}

// checkPut checks only the request, without stored parameters.
func checkPut(rq *request, in putParameterInput) error {
	if in.Value == "" {
		return rq.Service.Dialect.MissingParam("value")
	}
	root, _, _ := strings.Cut(strings.TrimPrefix(in.Name, "/"), "/")
	lower := strings.ToLower(root)
	switch {
	case len(in.Name) > maxParameterName || !wire.ConsistsOf(in.Name, wire.Alphanumeric+"_.-/") || strings.HasPrefix(lower, "aws") || strings.HasPrefix(lower, "ssm"):
		return wire.Fail("ValidationException", "Parameter name: can't be prefixed with \"aws\" or \"ssm\" (case-insensitive). If formed as a path, it can consist of sub-paths divided by slash symbol; each sub-path can be formed as a mix of letters, numbers and the following 3 symbols .-_")
	case strings.Contains(in.Name, "/") && !strings.HasPrefix(in.Name, "/") || strings.Contains(in.Name, "//") || strings.HasSuffix(in.Name, "/"):
		return wire.Fail("ValidationException", "Parameter name must be a fully qualified name.")
	case strings.Count(in.Name, "/") > maxParameterLevels:
		return wire.Fail("HierarchyLevelLimitExceededException", "A hierarchy can have a maximum of %d levels.", maxParameterLevels)
	case utf8.RuneCountInString(in.Value) > maxParameterValue:
		return wire.Fail("ValidationException", "Standard tier parameters support a maximum parameter value of 4096 characters. To create a larger parameter value, upgrade the parameter to use the advanced-parameter tier.")
	case in.Overwrite && len(in.Tags) > 0:
		return wire.Fail("ValidationException", "Invalid request: tags and overwrite can't be used together. To create a parameter with tags, please remove overwrite flag. To update tags for an existing parameter, please use AddTagsToResource or RemoveTagsFromResource.")
	case in.Tier != "" && in.Tier != "Standard" || in.Policies != "" || in.AllowedPattern != "" || in.DataType != "" && in.DataType != "text":
		return wire.Fail("ValidationException", "The emulator has standard parameters of data type text, without policies and patterns")
	case in.KeyId != "" && in.KeyId != defaultParameterKey:
		if in.Type != "SecureString" {
			return wire.Fail("ValidationException", "KeyId is required for SecureString type parameter only.")
		}
		if _, err := rq.Region.kms.FindKey(in.KeyId); err != nil {
			return wire.Fail("InvalidKeyId", "Invalid keyId %s", in.KeyId)
		}
	}
	return checkSSMTags(in.Tags)
}

func checkSSMTags(tags []tag) error {
	if len(tags) > maxParameterTags {
		return wire.Fail("TooManyTagsError", "A resource can have a maximum of %d tags.", maxParameterTags)
	}
	for _, t := range tags {
		if strings.HasPrefix(strings.ToLower(t.Key), "aws:") {
			return wire.Fail("ValidationException", "aws: prefixed tag key names are not allowed for external use.")
		}
	}
	return nil
}

// withTags returns a copy of have with additional tags.
func withTags(have map[string]string, more []tag) map[string]string {
	out := make(map[string]string, len(have)+len(more))
	for k, v := range have {
		out[k] = v
	}
	for _, t := range more {
		out[t.Key] = t.Value
	}
	return out
}

func deleteParameter(rq *request, in struct{ Name string }) (any, error) {
	if err := checkParameterName(in.Name); err != nil {
		return nil, err
	}
	if !rq.Region.Parameters.Has(in.Name) || public(in.Name) {
		return nil, wire.Fail("ParameterNotFound", "Parameter %s not found.", in.Name)
	}
	rq.Region.Parameters.Remove(in.Name)
	return struct{}{}, nil
}

// public reports whether a parameter is public. Public parameters do not belong to an account, which can
// read them but cannot list or change them.
func public(name string) bool { return strings.HasPrefix(name, "/aws/service/") }

type parameterFilter struct {
	Key    string
	Option string
	Values []string
}

type describeParametersInput struct {
	ParameterFilters []parameterFilter
	MaxResults       *int
	NextToken        string
	Shared           bool
}

type parameterMetadata struct {
	Name             string
	ARN              string
	Type             string
	KeyId            string `json:",omitempty"` //nolint:revive // the name on the wire
	LastModifiedDate float64
	Description      string `json:",omitempty"`
	Version          int64
	Tier             string
	Policies         []string
	DataType         string
}

func describeParameters(rq *request, in describeParametersInput) (any, error) {
	limit := 10
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	for _, f := range in.ParameterFilters {
		if err := f.check(); err != nil {
			return nil, err
		}
	}
	if in.Shared {
		return nil, wire.Fail("ValidationException", "The emulator has no shared parameters")
	}
	out := []parameterMetadata{}
	st := rq.Region
	next, err := rq.Page(st.Parameters.Sorted(), in.NextToken, limit, func(name string) bool {
		p := st.Parameters.Get(name)
		if public(name) {
			return false
		}
		for _, f := range in.ParameterFilters {
			if !f.takes(p) {
				return false
			}
		}
		out = append(out, parameterMetadata{
			Name: p.Name, ARN: rq.Region.parameterOut(p, "", false).ARN, Type: p.Type, KeyId: p.Key, LastModifiedDate: wire.Epoch(p.Modified),
			Description: p.Description, Version: p.Version, Tier: "Standard", Policies: []string{}, DataType: "text",
		})
		return true
	})
	if err != nil {
		return nil, wire.Fail("InvalidNextToken", "The specified token isn't valid.")
	}
	reply := map[string]any{"Parameters": out}
	if next != "" {
		reply["NextToken"] = next
	}
	return reply, nil
}

func (f parameterFilter) check() error {
	_, isTag := strings.CutPrefix(f.Key, "tag:")
	switch {
	case !isTag && f.Key != "Name" && f.Key != "Type":
		return wire.Fail("InvalidFilterKey", "The emulator filters by tag:KEY, Name and Type, not by %s", f.Key)
	case f.Option != "" && f.Option != "Equals" && (f.Option != "BeginsWith" || f.Key == "Type"):
		return wire.Fail("InvalidFilterOption", "The filter option %s is not valid for %s", f.Option, f.Key)
	case len(f.Values) == 0:
		return wire.Fail("InvalidFilterValue", "The filter %s has no value", f.Key)
	}
	return nil
}

func (f parameterFilter) takes(p *Parameter) bool {
	value, has := p.Name, true
	if key, ok := strings.CutPrefix(f.Key, "tag:"); ok {
		value, has = p.Tags[key]
	} else if f.Key == "Type" {
		value = p.Type
	}
	for _, v := range f.Values {
		if has && (value == v || f.Option == "BeginsWith" && strings.HasPrefix(value, v)) {
			return true
		}
	}
	return false
}

// taggedParameter returns the parameter that a tag operation names.
func taggedParameter(rq *request, kind, name string) (*Parameter, error) {
	if kind != "Parameter" {
		return nil, wire.Fail("InvalidResourceType", "The emulator has tags of resource type Parameter, not %s", kind)
	}
	p := rq.Region.Parameters.Get(name)
	if p == nil || public(name) {
		return nil, wire.Fail("InvalidResourceId", "The resource ID %s is not valid. Verify that you entered the correct ID and try again.", name)
	}
	return p, nil
}

type addTagsInput struct {
	ResourceType string
	ResourceId   string //nolint:revive // the name on the wire
	Tags         []tag
}

func addParameterTags(rq *request, in addTagsInput) (any, error) {
	p, err := taggedParameter(rq, in.ResourceType, in.ResourceId)
	if err != nil {
		return nil, err
	}
	if err := checkSSMTags(in.Tags); err != nil {
		return nil, err
	}
	tags := withTags(p.Tags, in.Tags)
	if len(tags) > maxParameterTags {
		return nil, wire.Fail("TooManyTagsError", "A resource can have a maximum of %d tags.", maxParameterTags)
	}
	changed := *p
	changed.Tags = tags
	rq.Region.Parameters.Put(p.Name, &changed)
	return struct{}{}, nil
}

type listTagsInput struct {
	ResourceType string
	ResourceId   string //nolint:revive // the name on the wire
}

func listParameterTags(rq *request, in listTagsInput) (any, error) {
	p, err := taggedParameter(rq, in.ResourceType, in.ResourceId)
	if err != nil {
		return nil, err
	}
	tags := []tag{}
	for k, v := range p.Tags {
		tags = append(tags, tag{k, v})
	}
	sort.Slice(tags, func(i, j int) bool { return tags[i].Key < tags[j].Key })
	return map[string]any{"TagList": tags}, nil
}

// shown returns a parameter's value in the form of answers. A SecureString without decryption is a blob.
func (p *Parameter) shown(decrypt bool) string {
	if p.Type != "SecureString" || decrypt {
		return p.Value
	}
	return "AQICAH" + world.Hash("ssm|"+p.Name+"|"+wire.Decimal(p.Version)+"|"+p.Value, 64)
}

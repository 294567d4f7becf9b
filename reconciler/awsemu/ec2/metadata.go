package ec2

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// metadataDefaults holds an account's defaults for instance metadata in a region, by EC2's member names. An
// absent member has no default.
type metadataDefaults map[string]string

type modifyMetadataDefaultsInput struct {
	HTTPTokens, HTTPEndpoint, InstanceMetadataTags, HTTPTokensEnforced string
	HTTPPutResponseHopLimit                                            *int64
}

func (in *modifyMetadataDefaultsInput) Check() error {
	if n := in.HTTPPutResponseHopLimit; n != nil && (*n == 0 || *n < -1 || *n > 64) {
		return badValue("HttpPutResponseHopLimit", wire.Decimal(*n), "The hop limit is -1 or from 1 to 64.")
	}
	return nil
}

// sent returns the members in the request.
func (in *modifyMetadataDefaultsInput) sent() metadataDefaults {
	sent := metadataDefaults{
		"HttpTokens": in.HTTPTokens, "HttpEndpoint": in.HTTPEndpoint, "InstanceMetadataTags": in.InstanceMetadataTags, "HttpTokensEnforced": in.HTTPTokensEnforced,
	}
	if in.HTTPPutResponseHopLimit != nil {
		sent["HttpPutResponseHopLimit"] = wire.Decimal(*in.HTTPPutResponseHopLimit)
	}
	maps.DeleteFunc(sent, func(_, v string) bool { return v == "" })
	return sent
}

const noPreference = "no-preference"

func modifyInstanceMetadataDefaults(rq *request, in modifyMetadataDefaultsInput) error {
	st := rq.Region
	if st.MetadataDefaults == nil {
		st.MetadataDefaults = metadataDefaults{}
	}
	for name, v := range in.sent() {
		if st.MetadataDefaults[name] = v; v == noPreference || v == "-1" {
			delete(st.MetadataDefaults, name)
		}
	}
	rq.XML.Boolean("return", true)
	return nil
}

func getInstanceMetadataDefaults(rq *request, _ struct{}) error {
	w := &rq.XML
	w.Open("accountLevel")
	for _, name := range []string{"HttpTokens", "HttpPutResponseHopLimit", "HttpEndpoint", "InstanceMetadataTags", "HttpTokensEnforced"} {
		w.Optional(wire.LowerFirst(name), rq.Region.MetadataDefaults[name])
	}
	w.Text("managedBy", "account")
	w.Close("accountLevel")
	return nil
}

// metadataTag matches the tag keys that instance metadata can show.
var metadataTag = lazyregexp.New(`^[0-9a-zA-Z\-_+=,.@:]{1,255}$`)

// CheckMetadataTags refuses instance tags that the instance metadata cannot show, if the metadata shows
// tags. If the template does not set this, the account's default applies.
func (r *Region) CheckMetadataTags(data wire.Data, ts world.Tags) *wire.Error {
	if cmp.Or(data.Sub("MetadataOptions").Text("InstanceMetadataTags"), r.MetadataDefaults["InstanceMetadataTags"]) != "enabled" {
		return nil
	}
	for _, t := range ts {
		if !strings.HasPrefix(t.Key, "aws:") && (!metadataTag.MatchString(t.Key) || slices.Contains([]string{".", "..", "_index"}, t.Key)) {
			return wire.Fail("InvalidParameterValue", `'%s' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index')`, t.Key)
		}
	}
	return nil
}

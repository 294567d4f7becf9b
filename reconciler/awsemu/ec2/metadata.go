package ec2

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// metadataDefaults are an account's defaults of instance metadata in a region, by
// EC2's names of the members; one that is absent has none.
type metadataDefaults map[string]string

func parseModifyMetadataDefaults(p *wire.Params) metadataDefaults {
	sent := metadataDefaults{}
	for _, name := range []string{"HttpTokens", "HttpEndpoint", "InstanceMetadataTags", "HttpTokensEnforced"} {
		if v := p.Text(name); v != "" {
			sent[name] = v
		}
	}
	if n := p.OptionalInt("HttpPutResponseHopLimit"); n != nil {
		if *n == 0 || *n < -1 || *n > 64 {
			p.Bad("HttpPutResponseHopLimit", wire.Decimal(*n), "The hop limit is -1 or from 1 to 64.")
		}
		sent["HttpPutResponseHopLimit"] = wire.Decimal(*n)
	}
	return sent
}

const noPreference = "no-preference"

func modifyInstanceMetadataDefaults(rq *request, sent metadataDefaults) error {
	st := rq.Region
	if st.MetadataDefaults == nil {
		st.MetadataDefaults = metadataDefaults{}
	}
	for name, v := range sent {
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

// metadataTag is the form of a tag's key that instance metadata can show.
var metadataTag = regexp.MustCompile(`^[0-9a-zA-Z\-_+=,.@:]{1,255}$`)

// CheckMetadataTags refuses tags of an instance that its metadata is to show and
// cannot: where the template says nothing of it, the account's default counts.
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

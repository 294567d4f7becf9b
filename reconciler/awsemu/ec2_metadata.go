package awsemu

import (
	"regexp"
	"strings"
)

// metadataDefaults are an account's defaults of instance metadata in a region, by
// EC2's names of the members; one that is absent has none.
type metadataDefaults map[string]string

func parseModifyMetadataDefaults(p *params) metadataDefaults {
	sent := metadataDefaults{}
	for _, name := range []string{"HttpTokens", "HttpEndpoint", "InstanceMetadataTags", "HttpTokensEnforced"} {
		if v := p.text(name); v != "" {
			sent[name] = v
		}
	}
	if n := p.optionalInt("HttpPutResponseHopLimit"); n != nil {
		if *n == 0 || *n < -1 || *n > 64 {
			p.bad("HttpPutResponseHopLimit", decimal(*n), "The hop limit is -1 or from 1 to 64.")
		}
		sent["HttpPutResponseHopLimit"] = decimal(*n)
	}
	return sent
}

const noPreference = "no-preference"

func modifyInstanceMetadataDefaults(rq *request, sent metadataDefaults) error {
	st := &rq.region.EC2
	if st.MetadataDefaults == nil {
		st.MetadataDefaults = metadataDefaults{}
	}
	for name, v := range sent {
		if st.MetadataDefaults[name] = v; v == noPreference || v == "-1" {
			delete(st.MetadataDefaults, name)
		}
	}
	rq.xml.boolean("return", true)
	return nil
}

func getInstanceMetadataDefaults(rq *request, _ struct{}) error {
	w := &rq.xml
	w.open("accountLevel")
	for _, name := range []string{"HttpTokens", "HttpPutResponseHopLimit", "HttpEndpoint", "InstanceMetadataTags", "HttpTokensEnforced"} {
		w.optional(lowerFirst(name), rq.region.EC2.MetadataDefaults[name])
	}
	w.text("managedBy", "account")
	w.close("accountLevel")
	return nil
}

// metadataTag is the form of a tag's key that instance metadata can show.
var metadataTag = regexp.MustCompile(`^[0-9a-zA-Z\-_+=,.@:]{1,255}$`)

// checkMetadataTags refuses tags of an instance that its metadata is to show and
// cannot: where the template says nothing of it, the account's default counts.
func (r *region) checkMetadataTags(data ltData, ts tags) *apiError {
	if first(data.sub("MetadataOptions").text("InstanceMetadataTags"), r.EC2.MetadataDefaults["InstanceMetadataTags"]) != "enabled" {
		return nil
	}
	for _, t := range ts {
		if !strings.HasPrefix(t.Key, "aws:") && (!metadataTag.MatchString(t.Key) || contains([]string{".", "..", "_index"}, t.Key)) {
			return fail("InvalidParameterValue", `'%s' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index')`, t.Key)
		}
	}
	return nil
}

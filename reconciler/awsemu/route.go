package awsemu

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// route finds the service that a request is for: by its credential scope or,
// where that is missing, by a form that only that service's requests have.
func (s *Server) route(r *http.Request, sc model.Credential, form url.Values) *service {
	if sc.Service != "" {
		return s.services[sc.Service]
	}
	target := r.Header.Get("X-Amz-Target")
	for _, sv := range s.services {
		switch {
		case target != "":
			if sv.Target != "" && strings.HasPrefix(target, sv.Target+".") {
				return sv
			}
		case sv.Protocol == "rest-json":
			if op, _ := sv.Match(r); op != nil {
				return sv
			}
		case sv.Version != "" && form.Get("Version") == sv.Version:
			return sv
		}
	}
	return nil
}

// knownRegion says whether a name is one of AWS's regions. The list is that of
// the partitions aws, aws-cn and aws-us-gov.
func knownRegion(name string) bool {
	switch name {
	case "us-east-1", "us-east-2", "us-west-1", "us-west-2",
		"af-south-1",
		"ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3",
		"ap-south-1", "ap-south-2",
		"ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4",
		"ap-southeast-5", "ap-southeast-6", "ap-southeast-7",
		"ca-central-1", "ca-west-1",
		"eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2",
		"eu-west-1", "eu-west-2", "eu-west-3",
		"il-central-1", "me-central-1", "me-south-1", "mx-central-1", "sa-east-1",
		"cn-north-1", "cn-northwest-1", "us-gov-east-1", "us-gov-west-1":
		return true
	}
	return false
}

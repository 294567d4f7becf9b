package awsemu

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// route finds the service of a request: by its credential scope or, if that is missing, by a form that only
// requests of that service have.
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

// knownRegion reports whether AWS has a region of the name.
func knownRegion(name string) bool {
	return slices.Contains(world.RegionsOf(world.Partition(name)), name)
}

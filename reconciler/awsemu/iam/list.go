package iam

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// page selects the requested part of a list.
type page struct {
	Marker   string
	MaxItems *int64
}

// list writes a page of sorted names, and whether more names follow.
func (p page) list(rq *request, element string, names []string, write func(name string)) error {
	limit := 100
	if p.MaxItems != nil {
		limit = int(*p.MaxItems)
	}
	w := &rq.XML
	w.Open(element)
	next, err := rq.Page(names, p.Marker, limit, func(name string) bool {
		write(name)
		return true
	})
	if err != nil {
		return wire.Fail("ValidationError", "The specified Marker is not valid")
	}
	w.Close(element)
	w.Boolean("IsTruncated", next != "")
	w.Optional("Marker", next)
	return nil
}

func listRoles(rq *request, in struct {
	page
	PathPrefix string
},
) error {
	a := rq.Region.Entities
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(a.Roles)), func(name string) bool { return !strings.HasPrefix(a.Roles[name].Path, in.PathPrefix) })
	return in.list(rq, "Roles", names, func(name string) {
		rq.XML.Open("member")
		writeRole(&rq.XML, a.Roles[name])
		rq.XML.Close("member")
	})
}

type ofRole struct {
	page
	RoleName string
}

func (in ofRole) find(rq *request) error {
	if rq.Region.Entities.Roles[in.RoleName] == nil {
		return wire.Fail("NoSuchEntity", "The role with name %s cannot be found.", in.RoleName)
	}
	return nil
}

// listRolePolicies lists the inline policies of a role. The emulator's roles have none.
func listRolePolicies(rq *request, in ofRole) error {
	if err := in.find(rq); err != nil {
		return err
	}
	return in.list(rq, "PolicyNames", nil, func(string) {})
}

func listInstanceProfilesForRole(rq *request, in ofRole) error {
	if err := in.find(rq); err != nil {
		return err
	}
	a := rq.Region.Entities
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(a.InstanceProfiles)), func(name string) bool { return a.InstanceProfiles[name].Role != in.RoleName })
	return in.list(rq, "InstanceProfiles", names, func(name string) {
		rq.XML.Open("member")
		writeProfile(rq, a.InstanceProfiles[name])
		rq.XML.Close("member")
	})
}

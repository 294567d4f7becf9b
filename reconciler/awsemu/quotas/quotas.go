// Package quotas emulates the reads of Service Quotas: the limits of a service's resources for an account in
// a region, and AWS's defaults for a new account.
//
// The applied values are those that the emulator's services enforce. They are set by name
// ([world.QuotaNames]), for all regions or for one. One table here maps the names to AWS's quotas. A quota
// of AWS that is not in the table does not exist here.
package quotas

import (
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Region is the Service Quotas part of a region. The values belong to the region.
type Region struct{ *world.Region }

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns the reads of Service Quotas.
func Service() *wire.Service {
	d := wire.JSONDialect("IllegalArgumentException")
	d.Throttled = func(string) *wire.Error { return wire.Fail("TooManyRequestsException", "Rate exceeded") }
	return wire.NewService("servicequotas", d,
		wire.JSONOp("ListServiceQuotas", wire.Reads, listServiceQuotas),
		wire.JSONOp("GetServiceQuota", wire.Reads, getServiceQuota),
		wire.JSONOp("ListAWSDefaultServiceQuotas", wire.Reads, listDefaults),
		wire.JSONOp("GetAWSDefaultServiceQuota", wire.Reads, getDefault),
	)
}

type listInput struct {
	ServiceCode         string
	QuotaCode           string
	QuotaAppliedAtLevel string
	MaxResults          *int
	NextToken           string
}

func listServiceQuotas(rq *request, in listInput) (any, error) { return list(rq, in, true) }
func listDefaults(rq *request, in listInput) (any, error)      { return list(rq, in, false) }

// list returns a page of a service's quotas: the applied values, or AWS's defaults.
func list(rq *request, in listInput, applied bool) (any, error) {
	rows := byCode(in.ServiceCode)
	if rows.Len() == 0 {
		return nil, noService(in.ServiceCode)
	}
	limit := 100
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	out := []map[string]any{}
	next, err := rq.Page(rows.Sorted(), in.NextToken, limit, func(code string) bool {
		// All of them apply to the account, and none to a resource.
		if in.QuotaCode != "" && code != in.QuotaCode || in.QuotaAppliedAtLevel == "RESOURCE" {
			return false
		}
		out = append(out, rows.Get(code).shown(rq.Region, applied))
		return true
	})
	if err != nil {
		return nil, wire.Fail("InvalidPaginationTokenException", "Invalid input was provided: NextToken")
	}
	reply := map[string]any{"Quotas": out}
	if next != "" {
		reply["NextToken"] = next
	}
	return reply, nil
}

type getInput struct {
	ServiceCode string
	QuotaCode   string
	ContextId   string //nolint:revive // the name on the wire; for quotas of single resources, which are not supported
}

func getServiceQuota(rq *request, in getInput) (any, error) { return get(rq, in, true) }
func getDefault(rq *request, in getInput) (any, error)      { return get(rq, in, false) }

func get(rq *request, in getInput, applied bool) (any, error) {
	rows := byCode(in.ServiceCode)
	switch q := rows.Get(in.QuotaCode); {
	case rows.Len() == 0:
		return nil, noService(in.ServiceCode)
	case q == nil || in.ContextId != "":
		return nil, wire.Fail("NoSuchResourceException", "The request failed because the specified quota %s does not exist for the service %s.", in.QuotaCode, in.ServiceCode)
	default:
		return map[string]any{"Quota": q.shown(rq.Region, applied)}, nil
	}
}

func noService(code string) *wire.Error {
	return wire.Fail("NoSuchResourceException", "The request failed because the specified service %s does not exist.", code)
}

package ssm

import (
	"cmp"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// alone returns a version without the earlier ones.
func (p *Parameter) alone() *Parameter {
	one := *p
	one.Before, one.Tags = nil, nil
	return &one
}

// versions returns all stored versions, oldest first.
func (p *Parameter) versions() []*Parameter {
	return append(append([]*Parameter(nil), p.Before...), p)
}

type getParameterHistoryInput struct {
	Name           string
	WithDecryption bool
	MaxResults     *int
	NextToken      string
}

type parameterHistory struct {
	Name             string
	Type             string
	KeyId            string `json:",omitempty"` //nolint:revive // the name on the wire
	LastModifiedDate float64
	LastModifiedUser string
	Description      string `json:",omitempty"`
	Value            string
	Version          int64
	Labels           []string
	Tier             string
	Policies         []string
	DataType         string
}

// getParameterHistory lists a parameter's versions, oldest first. A public parameter has only one visible
// version.
func getParameterHistory(rq *request, in getParameterHistoryInput) (any, error) {
	p := rq.Region.Parameters.Get(in.Name)
	if p == nil {
		return nil, wire.Fail("ParameterNotFound", "Parameter %s not found.", in.Name)
	}
	limit := 50
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	rows, keys := map[string]*Parameter{}, []string(nil)
	for _, v := range p.versions() {
		key := fmt.Sprintf("%020d", v.Version)
		rows[key], keys = v, append(keys, key)
	}
	out := []parameterHistory{}
	next, err := rq.Page(keys, in.NextToken, limit, func(key string) bool {
		v := rows[key]
		out = append(out, parameterHistory{
			Name: v.Name, Type: v.Type, KeyId: v.Key, LastModifiedDate: wire.Epoch(v.Modified), Description: v.Description,
			LastModifiedUser: cmp.Or(v.Writer, "arn:aws:iam::"+rq.Region.Account+":root"), Value: v.shown(in.WithDecryption), Version: v.Version,
			Labels: []string{}, Tier: "Standard", Policies: []string{}, DataType: "text",
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

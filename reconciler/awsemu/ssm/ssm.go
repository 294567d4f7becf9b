// Package ssm emulates the parameter store of SSM: the public parameters that name images, and the account's
// own parameters.
package ssm

import (
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/kms"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Region is the SSM part of a region.
type Region struct {
	*world.Region `json:"-"`
	kms           *kms.Region

	Parameters world.Table[*Parameter] // by name
}

// Parameter is one parameter of the parameter store.
type Parameter struct {
	Name     string
	Value    string
	Type     string // String, StringList or SecureString
	Version  int64
	Modified time.Time

	Description string            `json:",omitempty"`
	Key         string            `json:",omitempty"` // of a SecureString
	Tags        map[string]string `json:",omitempty"`

	Writer string       `json:",omitempty"` // ARN
	Before []*Parameter `json:",omitempty"` // earlier versions, oldest first
}

// Find returns a parameter by name, or one of its versions by name:version. It returns nil if none exists.
func (r *Region) Find(name string) *Parameter {
	if p := r.Parameters.Get(name); p != nil {
		return p
	}
	base, version, found := strings.Cut(name, ":")
	if p := r.Parameters.Get(base); found && p != nil {
		for _, v := range p.versions() {
			if wire.Decimal(v.Version) == version {
				return v
			}
		}
	}
	return nil
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns the parameter store of SSM.
func Service() *wire.Service {
	return wire.NewService("ssm", wire.JSONDialect("ValidationException"),
		wire.JSONOp("GetParameter", wire.Reads, getParameter),
		wire.JSONOp("GetParameters", wire.Reads, getParameters),
		wire.JSONOp("GetParametersByPath", wire.Reads, getParametersByPath),
		wire.JSONOp("GetParameterHistory", wire.Reads, getParameterHistory),
		wire.JSONOp("PutParameter", wire.Writes, putParameter),
		wire.JSONOp("DeleteParameter", wire.Writes, deleteParameter),
		wire.JSONOp("DescribeParameters", wire.Reads, describeParameters),
		wire.JSONOp("AddTagsToResource", wire.Writes, addParameterTags),
		wire.JSONOp("ListTagsForResource", wire.Reads, listParameterTags),
	)
}

// Join connects the region, which is new or was read from JSON, with KMS, because parameters name its keys.
func (r *Region) Join(base *world.Region, keys *kms.Region) { r.Region, r.kms = base, keys }

type parameterOut struct {
	Name             string
	Type             string
	Value            string
	Version          int64
	Selector         string `json:",omitempty"`
	LastModifiedDate float64
	ARN              string
	DataType         string
}

func (r *Region) parameterOut(p *Parameter, asked string, decrypt bool) parameterOut {
	out := parameterOut{
		Name: p.Name, Type: p.Type, Value: p.shown(decrypt), Version: p.Version, DataType: "text",
		LastModifiedDate: wire.Epoch(p.Modified), ARN: r.ARN("ssm", "parameter/"+strings.TrimPrefix(p.Name, "/")),
	}
	if strings.HasPrefix(p.Name, "/aws/service/") {
		// Public parameters do not belong to an account.
		out.ARN = "arn:" + world.Partition(r.Name) + ":ssm:" + r.Name + "::parameter" + p.Name
	}
	if _, selector, found := strings.Cut(asked, ":"); found {
		out.Selector = ":" + selector
	}
	return out
}

type getParameterInput struct {
	Name           string
	WithDecryption bool
}

func checkParameterName(name string) error {
	if !validParameterName(name) {
		return wire.Fail("ValidationException", "Invalid parameter name. Please use correct syntax for referencing a version/label <name>:<version/label>")
	}
	return nil
}

// validParameterName accepts a name or a name with a version or label after a colon.
func validParameterName(name string) bool {
	base, selector, selected := strings.Cut(name, ":")
	return base != "" && wire.ConsistsOf(base, wire.Alphanumeric+"_.-/") && (!selected || selector != "" && wire.ConsistsOf(selector, wire.Alphanumeric+"_.-"))
}

func getParameter(rq *request, in getParameterInput) (any, error) {
	if err := checkParameterName(in.Name); err != nil {
		return nil, err
	}
	st := rq.Region
	p := st.Find(in.Name)
	if p == nil {
		if base, _, found := strings.Cut(in.Name, ":"); found && st.Parameters.Has(base) {
			return nil, wire.Fail("ParameterVersionNotFound", "Systems Manager could not find version of %s. Verify the version and try again.", base)
		}
		return nil, wire.Fail("ParameterNotFound", "Parameter %s not found.", in.Name)
	}
	return map[string]any{"Parameter": rq.Region.parameterOut(p, in.Name, in.WithDecryption)}, nil
}

type getParametersInput struct {
	Names          []string
	WithDecryption bool
}

func getParameters(rq *request, in getParametersInput) (any, error) {
	found, invalid := []parameterOut{}, []string{}
	seen := map[string]bool{}
	for _, name := range in.Names {
		if err := checkParameterName(name); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, wire.Fail("ValidationException", "Duplicate parameter name: %s", name)
		}
		seen[name] = true
		if p := rq.Region.Find(name); p != nil {
			found = append(found, rq.Region.parameterOut(p, name, in.WithDecryption))
		} else {
			invalid = append(invalid, name)
		}
	}
	return map[string]any{"Parameters": found, "InvalidParameters": invalid}, nil
}

type getParametersByPathInput struct {
	Path           string
	Recursive      bool
	WithDecryption bool
	MaxResults     *int
	NextToken      string
}

func getParametersByPath(rq *request, in getParametersByPathInput) (any, error) {
	if !strings.HasPrefix(in.Path, "/") || strings.Contains(in.Path, ":") {
		return nil, wire.Fail("ValidationException", "The parameter doesn't meet the parameter name requirements. The parameter name must begin with a forward slash \"/\".")
	}
	limit := 10
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	prefix := strings.TrimSuffix(in.Path, "/") + "/"
	out := []parameterOut{}
	st := rq.Region
	next, err := rq.Page(st.Parameters.Sorted(), in.NextToken, limit, func(name string) bool {
		rest, below := strings.CutPrefix(name, prefix)
		if !below || !in.Recursive && strings.Contains(rest, "/") {
			return false
		}
		out = append(out, rq.Region.parameterOut(st.Parameters.Get(name), "", in.WithDecryption))
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

// AddParameter stores a public parameter.
func (r *Region) AddParameter(name, value string, at time.Time) {
	r.Parameters.Put(name, &Parameter{Name: name, Value: value, Type: "String", Version: 1, Modified: at})
}

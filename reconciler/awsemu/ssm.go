package awsemu

import (
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// ssmState is SSM's part of a region.
type ssmState struct {
	Parameters table[*parameter] // by name
}

// parameter is one parameter of the parameter store.
type parameter struct {
	Name     string
	Value    string
	Type     string // String, StringList or SecureString
	Version  int64
	Modified time.Time

	Description string            `json:",omitempty"`
	Key         string            `json:",omitempty"` // of a SecureString
	Tags        map[string]string `json:",omitempty"`
}

// find returns a parameter by name, or by name:version while that is its version;
// nil where there is none.
func (st *ssmState) find(name string) *parameter {
	if p := st.Parameters.get(name); p != nil {
		return p
	}
	base, version, found := strings.Cut(name, ":")
	if p := st.Parameters.get(base); found && p != nil && decimal(p.Version) == version {
		return p
	}
	return nil
}

// ssmService is SSM's parameter store.
func ssmService() *service {
	sv := &service{
		Service: model.Services()["ssm"], dialect: jsonDialect("ValidationException"),
	}
	sv.register(
		jsonOp("GetParameter", reads, getParameter),
		jsonOp("GetParameters", reads, getParameters),
		jsonOp("GetParametersByPath", reads, getParametersByPath),
	)
	sv.register(ssmWrites()...)
	return sv
}

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

func (r *region) parameterOut(p *parameter, asked string, decrypt bool) parameterOut {
	out := parameterOut{
		Name: p.Name, Type: p.Type, Value: p.shown(decrypt), Version: p.Version, DataType: "text",
		LastModifiedDate: epoch(p.Modified), ARN: r.arn("ssm", "parameter/"+strings.TrimPrefix(p.Name, "/")),
	}
	if strings.HasPrefix(p.Name, "/aws/service/") {
		// Public parameters belong to no account.
		out.ARN = "arn:" + partition(r.Name) + ":ssm:" + r.Name + "::parameter" + p.Name
	}
	if _, selector, found := strings.Cut(asked, ":"); found {
		out.Selector = ":" + selector
	}
	return out
}

// epoch is how the JSON protocols write times: seconds with milliseconds.
func epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

type getParameterInput struct {
	Name           string
	WithDecryption bool
}

func checkParameterName(name string) error {
	if !validParameterName(name) {
		return fail("ValidationException", "Invalid parameter name. Please use correct syntax for referencing a version/label <name>:<version/label>")
	}
	return nil
}

// validParameterName accepts a name or a name with a version or label after a colon.
func validParameterName(name string) bool {
	base, selector, selected := strings.Cut(name, ":")
	return base != "" && consistsOf(base, alphanumeric+"_.-/") && (!selected || selector != "" && consistsOf(selector, alphanumeric+"_.-"))
}

func getParameter(rq *request, in getParameterInput) (any, error) {
	if err := checkParameterName(in.Name); err != nil {
		return nil, err
	}
	st := &rq.region.SSM
	p := st.find(in.Name)
	if p == nil {
		if base, _, found := strings.Cut(in.Name, ":"); found && st.Parameters.has(base) {
			return nil, fail("ParameterVersionNotFound", "Systems Manager could not find version of %s. Verify the version and try again.", base)
		}
		return nil, fail("ParameterNotFound", "Parameter %s not found.", in.Name)
	}
	return map[string]any{"Parameter": rq.region.parameterOut(p, in.Name, in.WithDecryption)}, nil
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
			return nil, fail("ValidationException", "Duplicate parameter name: %s", name)
		}
		seen[name] = true
		if p := rq.region.SSM.find(name); p != nil {
			found = append(found, rq.region.parameterOut(p, name, in.WithDecryption))
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
		return nil, fail("ValidationException", "The parameter doesn't meet the parameter name requirements. The parameter name must begin with a forward slash \"/\".")
	}
	limit := 10
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	prefix := strings.TrimSuffix(in.Path, "/") + "/"
	out := []parameterOut{}
	st := &rq.region.SSM
	next, err := rq.page(st.Parameters.sorted(), in.NextToken, limit, func(name string) bool {
		rest, below := strings.CutPrefix(name, prefix)
		if !below || !in.Recursive && strings.Contains(rest, "/") {
			return false
		}
		out = append(out, rq.region.parameterOut(st.Parameters.get(name), "", in.WithDecryption))
		return true
	})
	if err != nil {
		return nil, fail("InvalidNextToken", "The specified token isn't valid.")
	}
	reply := map[string]any{"Parameters": out}
	if next != "" {
		reply["NextToken"] = next
	}
	return reply, nil
}

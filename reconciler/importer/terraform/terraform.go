// Package terraform reads the groups, nodegroups, launch templates and launch configurations in a Terraform
// state. It writes the blocks with which Terraform forgets them without destroying them.
//
// A state contains secrets, such as user data. The package takes only names, ids and ARNs from it, and no
// error quotes it.
package terraform

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Kind is a type of resource of the AWS provider.
type Kind string

// The kinds that are read. All other kinds are ignored.
const (
	Group               Kind = "aws_autoscaling_group"
	Nodegroup           Kind = "aws_eks_node_group"
	LaunchTemplate      Kind = "aws_launch_template"
	LaunchConfiguration Kind = "aws_launch_configuration"
)

// Resource is one instance of a resource of a state.
type Resource struct {
	Kind Kind
	// Module is the path of its module, including instance keys, or empty for the root module. Name is its
	// name in the configuration. Key is its own instance key in brackets, or empty.
	Module, Name, Key string
	// ID is AWS's id: a template's id, the name of a group or launch configuration, or CLUSTER/NAME. InAWS
	// is the name in AWS, which a template has in addition to its id.
	ID, InAWS string
	// Region and Account come from its ARN. They are empty if the state has no ARN.
	Region, Account string
}

// Address returns the resource's name in Terraform's commands.
func (r Resource) Address() string { return r.resource(r.Module) + r.Key }

func (r Resource) resource(module string) string {
	at := string(r.Kind) + "." + r.Name
	if module != "" {
		at = module + "." + at
	}
	return at
}

// from returns the address for a removed block. Such a block covers all instances of the resource in all
// instances of its modules.
func (r Resource) from() string {
	var b strings.Builder
	quoted, depth := false, 0
	for i := 0; i < len(r.Module); i++ {
		switch c := r.Module[i]; {
		case quoted && c == '\\':
			i++
		case depth > 0 && c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	return r.resource(b.String())
}

// State contains a state's resources of the four kinds, sorted by address.
type State struct{ Resources []Resource }

// attributes contains the attributes that are read of a resource.
type attributes struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	ARN         string `json:"arn"`
	Region      string `json:"region"`
	Cluster     string `json:"cluster_name"`
	NodegroupIs string `json:"node_group_name"`
}

// shown is a module in the output of terraform show -json.
type shown struct {
	Address   string `json:"address"`
	Resources []struct {
		Mode   string          `json:"mode"`
		Type   Kind            `json:"type"`
		Name   string          `json:"name"`
		Index  json.RawMessage `json:"index"`
		Values attributes      `json:"values"`
	} `json:"resources"`
	Children []shown `json:"child_modules"`
}

// document covers every file that people may mistake for a state.
type document struct {
	Version   *int `json:"version"`
	Resources []struct {
		Module    string `json:"module"`
		Mode      string `json:"mode"`
		Type      Kind   `json:"type"`
		Name      string `json:"name"`
		Instances []struct {
			Index      json.RawMessage `json:"index_key"`
			Deposed    string          `json:"deposed"`
			Attributes attributes      `json:"attributes"`
		} `json:"instances"`
	} `json:"resources"`
	Backend *struct {
		Type string `json:"type"`
	} `json:"backend"`
	Format  string          `json:"format_version"`
	Changes json.RawMessage `json:"resource_changes"`
	Values  *struct {
		Root shown `json:"root_module"`
	} `json:"values"`
	Encrypted json.RawMessage `json:"encrypted_data"`
}

// Error describes why a file cannot be used, and what to do instead.
type Error struct{ What, Do string }

func (e *Error) Error() string { return e.What }

const pull = "terraform state pull >state.json, and name that file"

// version is the supported version of states: Terraform since 0.12, and OpenTofu.
const version = 4

// Read reads a state in Terraform's own format, or in the output format of terraform show -json. An error
// with advice is an *Error.
func Read(text []byte) (State, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return State{}, &Error{fmt.Sprintf("it is not JSON: there is an error at byte %d", syntax.Offset), pull}
		}
		return State{}, &Error{"it is not a Terraform state", pull}
	}
	switch {
	case len(d.Encrypted) > 0:
		return State{}, &Error{"it is encrypted", "tofu state pull >state.json, and name that file"}
	case d.Backend != nil && d.Backend.Type != "" && d.Backend.Type != "local":
		return State{}, &Error{"it only says where the state is: in a backend of type " + strconv.Quote(d.Backend.Type), pull}
	case len(d.Changes) > 0:
		return State{}, &Error{"it is a plan", "terraform show -json >state.json without a plan's file, or " + pull}
	case d.Values != nil || d.Format != "":
		var s State
		if d.Values != nil {
			s.show(d.Values.Root)
		}
		return s.sorted()
	case d.Version == nil:
		return State{}, &Error{"it is not a Terraform state", pull}
	case *d.Version != version:
		return State{}, &Error{fmt.Sprintf("it is a state of version %d, and weir reads version %d", *d.Version, version), "terraform apply -refresh-only with Terraform 0.13 or newer writes it again"}
	}
	var s State
	for _, r := range d.Resources {
		for _, i := range r.Instances {
			if r.Mode == "managed" && i.Deposed == "" {
				s.add(r.Type, r.Module, r.Name, i.Index, i.Attributes)
			}
		}
	}
	return s.sorted()
}

func (s *State) show(m shown) {
	for _, r := range m.Resources {
		if r.Mode == "managed" {
			s.add(r.Type, m.Address, r.Name, r.Index, r.Values)
		}
	}
	for _, c := range m.Children {
		s.show(c)
	}
}

// add adds a resource of a Terraform state, if it is of a kind that weir manages and has a name in AWS. index
// is its key of count or for_each, "" without one.
func (s *State) add(kind Kind, module, name string, index json.RawMessage, a attributes) {
	r := Resource{Kind: kind, Module: module, Name: name, ID: a.ID, InAWS: cmp.Or(a.Name, a.ID), Region: a.Region}
	switch kind {
	case Nodegroup:
		r.ID = a.Cluster + "/" + a.NodegroupIs
		r.InAWS = a.NodegroupIs
	case Group, LaunchTemplate, LaunchConfiguration:
	default:
		return
	}
	if key := string(index); key != "" && key != "null" {
		r.Key = "[" + key + "]"
	}
	// arn:PARTITION:SERVICE:REGION:ACCOUNT:…
	if parts := strings.SplitN(a.ARN, ":", 6); len(parts) == 6 {
		r.Region, r.Account = cmp.Or(r.Region, parts[3]), parts[4]
	}
	if r.InAWS != "" {
		s.Resources = append(s.Resources, r)
	}
}

// names matches resource names that Terraform accepts. modules matches module paths with their instance
// keys.
var names = lazyregexp.New(`^[\pL_][\pL\pN_-]*$`)
var modules = lazyregexp.New(`^(module\.[\pL_][\pL\pN_-]*(\[("([^"\\\n]|\\.)*"|[0-9]+)\])?(\.|$))*$`)

// sorted returns the state with its resources in order. It fails if a name is not a valid Terraform address,
// because names are printed for people to paste.
func (s State) sorted() (State, error) {
	for _, r := range s.Resources {
		if !names.MatchString(r.Name) || !modules.MatchString(r.Module) {
			return State{}, &Error{"it holds a resource of type " + string(r.Kind) + " whose name Terraform does not take", pull}
		}
	}
	slices.SortFunc(s.Resources, func(a, b Resource) int { return strings.Compare(a.Address(), b.Address()) })
	return s, nil
}

// In returns the state's resources of one account and region. It includes resources with an unknown account
// or region.
func (s State) In(account, region string) State {
	return State{slices.DeleteFunc(slices.Clone(s.Resources), func(r Resource) bool {
		return r.Region != "" && r.Region != region || r.Account != "" && account != "" && r.Account != account
	})}
}

// Elsewhere returns the other regions with resources, sorted.
func (s State) Elsewhere(region string) []string {
	found := map[string]bool{}
	for _, r := range s.Resources {
		if r.Region != "" && r.Region != region {
			found[r.Region] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Accounts returns the accounts of the resources, sorted.
func (s State) Accounts() []string {
	found := map[string]bool{}
	for _, r := range s.Resources {
		if r.Account != "" {
			found[r.Account] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Names returns the names in AWS of one kind. For nodegroups they are CLUSTER/NAME.
func (s State) Names(kind Kind) []string {
	var out []string
	for _, r := range s.Resources {
		switch {
		case r.Kind != kind:
		case kind == Nodegroup:
			out = append(out, r.ID)
		default:
			out = append(out, r.InAWS)
		}
	}
	return out
}

// Removed returns the blocks with which Terraform 1.7 or newer forgets the resources that taken selects,
// without destroying them. Such a block covers all instances of a resource. If only some instances were
// taken, Removed returns commands instead, as comments.
func (s State) Removed(taken func(Resource) bool) string {
	byFrom := map[string][]Resource{}
	for _, r := range s.Resources {
		byFrom[r.from()] = append(byFrom[r.from()], r)
	}
	var b strings.Builder
	for _, from := range slices.Sorted(maps.Keys(byFrom)) {
		var gone []Resource
		for _, r := range byFrom[from] {
			if taken(r) {
				gone = append(gone, r)
			}
		}
		switch {
		case len(gone) == 0:
		case len(gone) == len(byFrom[from]):
			fmt.Fprintf(&b, "removed {\n  from = %s\n  lifecycle {\n    destroy = false\n  }\n}\n", from)
		default:
			fmt.Fprintf(&b, "# %s has %d instances, and some of them stay, but a removed block applies to all.\n", from, len(byFrom[from]))
			for _, r := range gone {
				fmt.Fprintf(&b, "# terraform state rm '%s'\n", strings.ReplaceAll(r.Address(), "'", `'\''`))
			}
		}
	}
	return b.String()
}

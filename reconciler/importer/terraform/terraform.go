// Package terraform reads which groups, nodegroups, launch templates and launch
// configurations a Terraform state holds, and writes the blocks by which Terraform forgets
// them without destroying any.
//
// A state has secrets, such as user data. Only names, ids and ARNs are taken from it, and
// no error quotes it.
package terraform

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kind is a type of resource of the AWS provider.
type Kind string

// The kinds that are read; all others are left out.
const (
	Group               Kind = "aws_autoscaling_group"
	Nodegroup           Kind = "aws_eks_node_group"
	LaunchTemplate      Kind = "aws_launch_template"
	LaunchConfiguration Kind = "aws_launch_configuration"
)

// Resource is one instance of a resource of a state.
type Resource struct {
	Kind Kind
	// Module is the path of its module with the keys of instances, "" for the root's; Name
	// is its name in the configuration, and Key its own key in brackets, "" for none.
	Module, Name, Key string
	// ID is AWS's: a template's id, a group's or a configuration's name, CLUSTER/NAME.
	// InAWS is its name there, which a template has beside its id.
	ID, InAWS string
	// Region and Account are as its ARN says; "" where the state does not.
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

// from returns the name in a removed block: it covers all instances at once, in all modules'
// instances.
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

// State holds a state's resources of the four kinds, sorted by address.
type State struct{ Resources []Resource }

// attributes are those that are read of a resource.
type attributes struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	ARN         string `json:"arn"`
	Region      string `json:"region"`
	Cluster     string `json:"cluster_name"`
	NodegroupIs string `json:"node_group_name"`
}

// shown is a module of what terraform show -json writes.
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

// document is any of the files that people may take for a state.
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

// Error is a file that cannot be used, with what to do instead.
type Error struct{ What, Do string }

func (e *Error) Error() string { return e.What }

const pull = "terraform state pull >state.json, and name that file"

// version is that of the states that are read: Terraform's since 0.12, and OpenTofu's.
const version = 4

// Read reads a state as Terraform keeps it, or as terraform show -json writes it. An error
// that says what to do is an *Error.
func Read(text []byte) (State, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return State{}, &Error{fmt.Sprintf("it is not JSON, by its byte %d", syntax.Offset), pull}
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

// names are those that Terraform takes in a configuration, with modules before them and
// the keys of their instances.
var names = regexp.MustCompile(`^[\pL_][\pL\pN_-]*$`)
var modules = regexp.MustCompile(`^(module\.[\pL_][\pL\pN_-]*(\[("([^"\\\n]|\\.)*"|[0-9]+)\])?(\.|$))*$`)

// sorted is the state with its resources in order, or an error where one has a name that
// is not an address of Terraform's: it would be printed for people to paste.
func (s State) sorted() (State, error) {
	for _, r := range s.Resources {
		if !names.MatchString(r.Name) || !modules.MatchString(r.Module) {
			return State{}, &Error{"it holds a resource of type " + string(r.Kind) + " whose name Terraform does not take", pull}
		}
	}
	slices.SortFunc(s.Resources, func(a, b Resource) int { return strings.Compare(a.Address(), b.Address()) })
	return s, nil
}

// In returns the state's resources of one account and region. A resource without a place is
// included.
func (s State) In(account, region string) State {
	return State{slices.DeleteFunc(slices.Clone(s.Resources), func(r Resource) bool {
		return r.Region != "" && r.Region != region || r.Account != "" && account != "" && r.Account != account
	})}
}

// Elsewhere are the regions of other resources than those of In, sorted.
func (s State) Elsewhere(region string) []string {
	found := map[string]bool{}
	for _, r := range s.Resources {
		if r.Region != "" && r.Region != region {
			found[r.Region] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Accounts are those of the resources, sorted.
func (s State) Accounts() []string {
	found := map[string]bool{}
	for _, r := range s.Resources {
		if r.Account != "" {
			found[r.Account] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Names are the names in AWS of one kind; of nodegroups, CLUSTER/NAME.
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

// Removed are the blocks for a configuration by which Terraform, 1.7 or newer, forgets
// what taken says of its resources, and destroys none. Such a block is about all instances
// of a resource: where only some are taken, there are commands in its place, as comments.
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
			fmt.Fprintf(&b, "# %s has %d instances, and others of them stay: a removed block is about all.\n", from, len(byFrom[from]))
			for _, r := range gone {
				fmt.Fprintf(&b, "# terraform state rm '%s'\n", strings.ReplaceAll(r.Address(), "'", `'\''`))
			}
		}
	}
	return b.String()
}

// Package model holds the facts of AWS's own service models, and checks requests and
// answers against them. They are AWS's, not weir's: nothing in it knows which members
// weir sets, so that a request that weir gets wrong cannot be right here.
//
// # The facts
//
// data holds a table for each service: operations, the members of their requests
// and answers, which are required, their types, lengths, ranges, patterns and
// enumerations, the errors that an operation names, and what members are called on
// the wire. Command gen writes it from the models that AWS publishes with botocore,
// for the operations of gen/operations.txt and the shapes that they reach; each
// table names its release. The models are Copyright Amazon.com, Inc. or its
// affiliates, under the Apache License 2.0, and the repository holds a copy of it. To
// move to another release: install it, run go generate here, read the difference.
//
// # Checks
//
// A request must have no member that its operation does not have, all that are
// required, each of its type and within its limits. The services are laxer in some
// places; these are listed in laxities, each with its reason. Answers must have no
// member that the operation does not have, each of its type: their limits bind
// callers, and AWS's own answers break them.
package model

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:generate go run ./gen

//go:embed data/*.json
var data embed.FS

// Service is the part of one service's published model that the emulator holds.
type Service struct {
	// Source says which release of the published models the facts are from, and of
	// which day that release is.
	Source     string                `json:"source"`
	Name       string                `json:"name"` // in the credential scope
	Protocol   string                `json:"protocol"`
	Version    string                `json:"version"`
	Namespace  string                `json:"namespace,omitempty"` // of XML answers
	Target     string                `json:"target,omitempty"`    // prefix of X-Amz-Target
	JSON       string                `json:"json,omitempty"`      // version of the JSON protocol
	CBOR       bool                  `json:"cbor,omitempty"`      // it speaks RPC v2 with CBOR as well as JSON
	Codes      bool                  `json:"codes,omitempty"`     // errors tell the code that the query protocol had
	Operations map[string]*Operation `json:"operations"`
	Shapes     map[string]*Shape     `json:"shapes"`
}

// Operation is one action of a service.
type Operation struct {
	Name    string   `json:"-"`
	Method  string   `json:"method,omitempty"` // REST
	Path    string   `json:"path,omitempty"`   // REST, with {label} segments
	Input   string   `json:"input,omitempty"`
	Output  string   `json:"output,omitempty"`
	Wrapper string   `json:"wrapper,omitempty"` // the element around a query answer's members
	Errors  []string `json:"errors,omitempty"`

	In, Out *Shape   `json:"-"` // nil where the operation has none
	Service *Service `json:"-"`
}

// Shape is a type of a service: its members, and its limits.
type Shape struct {
	Type      string             `json:"type"`
	Members   map[string]*Member `json:"members,omitempty"`
	Required  []string           `json:"required,omitempty"`
	Item      *Member            `json:"item,omitempty"` // a list's
	Key       *Member            `json:"key,omitempty"`  // a map's
	Value     *Member            `json:"value,omitempty"`
	Flat      bool               `json:"flat,omitempty"`
	Min       *float64           `json:"min,omitempty"`
	Max       *float64           `json:"max,omitempty"`
	Pattern   string             `json:"pattern,omitempty"`
	Enum      []string           `json:"enum,omitempty"`
	Sensitive bool               `json:"sensitive,omitempty"`

	Names []string `json:"-"` // of the members, in order

	pattern func() *regexp.Regexp
}

// Member is a named member of a structure, with its type.
type Member struct {
	Type     string `json:"type"`               // a shape, or one of AWS's simple types
	Wire     string `json:"wire,omitempty"`     // on the wire, where it is not the member's name
	Query    string `json:"query,omitempty"`    // in requests of EC2's protocol, where that differs again
	Location string `json:"location,omitempty"` // uri, querystring, header: where it is not the body

	Shape *Shape `json:"-"`
}

// simple are the types that need no shape of their own: those without limits.
var simple = func() map[string]*Shape {
	all := map[string]*Shape{}
	for _, name := range []string{"string", "boolean", "integer", "long", "float", "double", "timestamp", "blob"} {
		all[name] = &Shape{Type: name}
	}
	return all
}()

// Services are all services of the data, by their name in the credential scope.
var Services = sync.OnceValue(func() map[string]*Service {
	files, err := data.ReadDir("data")
	if err != nil {
		panic(fmt.Errorf("read embedded models: %w", err)) // the data is part of the program
	}
	all := map[string]*Service{}
	for _, f := range files {
		raw, err := data.ReadFile("data/" + f.Name())
		if err != nil {
			panic(fmt.Errorf("read embedded model: %w", err))
		}
		sv, err := parse(raw)
		if err != nil {
			panic(fmt.Errorf("read embedded model %s: %w", f.Name(), err))
		}
		all[sv.Name] = sv
	}
	return all
})

func parse(raw []byte) (*Service, error) {
	sv := &Service{}
	if err := json.Unmarshal(raw, sv); err != nil {
		return nil, err
	}
	find := func(name string) *Shape {
		if s := sv.Shapes[name]; s != nil {
			return s
		}
		return simple[name]
	}
	for name, op := range sv.Operations {
		op.Name, op.Service, op.In, op.Out = name, sv, find(op.Input), find(op.Output)
	}
	for name, s := range sv.Shapes {
		s.Names = slices.Sorted(maps.Keys(s.Members))
		members := slices.Collect(maps.Values(s.Members))
		for _, m := range append(members, s.Item, s.Key, s.Value) {
			if m == nil {
				continue
			}
			if m.Shape = find(m.Type); m.Shape == nil {
				return nil, fmt.Errorf("shape %s names %s, which is not there", name, m.Type)
			}
		}
		if s.Pattern != "" {
			s.pattern = sync.OnceValue(func() *regexp.Regexp {
				p, err := Pattern(s.Pattern)
				if err != nil {
					panic(err) // the generator leaves these out
				}
				return p
			})
		}
	}
	return sv, nil
}

var surrogates = strings.NewReplacer(`\uD800\uDC00-\uDBFF\uDFFF`, `\x{10000}-\x{10FFFF}`, `\ud800\udc00-\udbff\udfff`, `\x{10000}-\x{10FFFF}`)

var codePoint = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

// Pattern is one of AWS's patterns, which are Java's, as Go says it: over a whole
// text. Lookaheads and the like are errors.
func Pattern(java string) (*regexp.Regexp, error) {
	return regexp.Compile("^(?:" + codePoint.ReplaceAllString(surrogates.Replace(java), `\x{$1}`) + ")$")
}

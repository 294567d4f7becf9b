// Package model contains AWS's own service models, and checks requests and answers against them. It does not
// know which members weir sets, so it detects wrong requests from weir.
//
// # The facts
//
// The directory data has a table for each service: operations, the members of their requests and answers,
// their types, lengths, ranges, patterns and enumerations, which of them are required, their names on the
// wire, and the errors of an operation. Command gen writes the tables from the models that AWS publishes
// with botocore, for the operations of gen/operations.txt and the shapes that they use. Each table names its
// release. The models are Copyright Amazon.com, Inc. or its affiliates, under the Apache License 2.0, and
// the repository contains a copy of the license. To update to another release, install it, run go generate
// here, and read the diff.
//
// # Checks
//
// A request must have no member that its operation does not have, and all required members, each of its type
// and within its limits. Some services accept more. These cases are in laxities, each with its reason.
// Answers must have no member that the operation does not have, and each member must have its type. Limits
// do not apply to answers, because AWS's own answers violate them.
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

	"github.com/weir-gitops/weir/render/lazyregexp"
)

//go:generate go run ./gen

//go:embed data/*.json
var data embed.FS

// Service is the part of one service's published model that the emulator uses.
type Service struct {
	// Source names the release of the published models that the facts come from, and the day of that
	// release.
	Source     string                `json:"source"`
	Name       string                `json:"name"` // in the credential scope
	Protocol   string                `json:"protocol"`
	Version    string                `json:"version"`
	Namespace  string                `json:"namespace,omitempty"` // of XML answers
	Target     string                `json:"target,omitempty"`    // prefix of X-Amz-Target
	JSON       string                `json:"json,omitempty"`      // version of the JSON protocol
	CBOR       bool                  `json:"cbor,omitempty"`      // supports RPC v2 with CBOR as well as JSON
	Codes      bool                  `json:"codes,omitempty"`     // errors include the code of the query protocol
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

	In, Out *Shape   `json:"-"` // nil if the operation has none
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
	Wire     string `json:"wire,omitempty"`     // name on the wire, if it differs from the member's name
	Query    string `json:"query,omitempty"`    // name in requests of EC2's protocol, if it differs again
	Location string `json:"location,omitempty"` // uri, querystring or header, if it is not the body

	Shape *Shape `json:"-"`
}

// simple holds the types without limits, which need no shape of their own.
var simple = func() map[string]*Shape {
	all := map[string]*Shape{}
	for _, name := range []string{"string", "boolean", "integer", "long", "float", "double", "timestamp", "blob"} {
		all[name] = &Shape{Type: name}
	}
	return all
}()

// Services returns all services of the data, by their name in the credential scope.
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
					panic(err) // the generator omits invalid patterns
				}
				return p
			})
		}
	}
	return sv, nil
}

var surrogates = strings.NewReplacer(`\uD800\uDC00-\uDBFF\uDFFF`, `\x{10000}-\x{10FFFF}`, `\ud800\udc00-\udbff\udfff`, `\x{10000}-\x{10FFFF}`)

var codePoint = lazyregexp.New(`\\u([0-9A-Fa-f]{4})`)

// Pattern converts one of AWS's patterns, which use Java's syntax, to a Go pattern that matches a whole
// text. Unsupported syntax, such as lookaheads, is an error.
func Pattern(java string) (*regexp.Regexp, error) {
	return regexp.Compile("^(?:" + codePoint.ReplaceAllString(surrogates.Replace(java), `\x{$1}`) + ")$")
}

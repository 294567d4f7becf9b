package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// errNotJSON is AWS's error for a body that it cannot read.
var errNotJSON = errors.New("the request body is not a valid JSON object")

// Match finds the operation of a REST request, and its path labels. It matches the escaped path, so a label
// may contain an encoded slash.
func (sv *Service) Match(r *http.Request) (*Operation, map[string]string) {
	path := strings.Split(r.URL.EscapedPath(), "/")
	for _, op := range sv.Operations {
		pattern := strings.Split(op.Path, "/")
		if op.Method != r.Method || len(pattern) != len(path) {
			continue
		}
		if labels, ok := matchSegments(pattern, path); ok {
			return op, labels
		}
	}
	return nil, nil
}

// matchSegments matches an escaped path against a pattern. It returns the unescaped values of labels.
func matchSegments(pattern, path []string) (map[string]string, bool) {
	labels := map[string]string{}
	for i, want := range pattern {
		if !strings.HasPrefix(want, "{") {
			if want != path[i] {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(path[i])
		if err != nil || value == "" {
			return nil, false
		}
		labels[strings.Trim(want, "{}")] = value
	}
	return labels, true
}

// Object parses the JSON of a request. An empty body becomes an empty object.
func Object(body []byte) (map[string]any, error) {
	out := map[string]any{}
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return out, nil
	}
	if !json.Valid(body) {
		return nil, errNotJSON
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil || out == nil {
		return nil, errNotJSON
	}
	return out, nil
}

// CheckForm checks a form against the operation.
func (op *Operation) CheckForm(f *Form) []Fault {
	known := *f
	known.Kids = make(map[string]*Form, len(f.Kids))
	for name, kid := range f.Kids {
		if name != "Action" && name != "Version" {
			known.Kids[name] = kid
		}
	}
	in := op.In
	if in == nil {
		in = &Shape{Type: "structure"}
	}
	d := decoder{sv: op.Service, dropEmpty: op.Service.Protocol == "ec2"}
	v := d.value(&known, in, "")
	return append(d.faults, op.Service.Check(in, v, true)...)
}

// CheckJSON checks a JSON body against the operation, and the path and query of a REST request.
func (op *Operation) CheckJSON(body map[string]any, labels map[string]string, query url.Values) []Fault {
	in := op.In
	if in == nil {
		in = &Shape{Type: "structure"}
	}
	var faults []Fault
	whole := map[string]any{}
	for name, v := range body {
		if m := in.Members[name]; m != nil && m.Location != "" {
			faults = append(faults, Fault{Kind: Unknown, Path: name}) // it belongs in another place
			continue
		}
		whole[name] = v
	}
	known := map[string]bool{}
	for name, m := range in.Members {
		wire := op.Service.wire(name, m)
		switch {
		case m.Location == "uri" && labels[wire] != "":
			whole[name] = typed(m.Shape, labels[wire])
		case m.Location == "querystring":
			known[wire] = true
			if query.Has(wire) && m.Shape.Type == "list" {
				items := []any{}
				for _, text := range query[wire] {
					items = append(items, typed(m.Shape.Item.Shape, text))
				}
				whole[name] = items
			} else if query.Has(wire) {
				whole[name] = typed(m.Shape, query.Get(wire))
			}
		}
	}
	for name := range query {
		if !known[name] {
			faults = append(faults, Fault{Kind: Unknown, Path: name})
		}
	}
	return append(faults, op.Service.Check(in, whole, false)...)
}

// typed converts a text in a path or a query to its JSON type.
func typed(s *Shape, text string) any {
	switch s.Type {
	case "integer", "long", "float", "double":
		return json.Number(text)
	case "boolean":
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return text
}

// Credential holds the parts of a request's credential scope.
type Credential struct{ Key, Region, Service string }

// ParseCredential reads the credential scope of SigV4 from the Authorization
// header or, for a presigned request, from the query.
func ParseCredential(r *http.Request) (Credential, bool) {
	credential := r.URL.Query().Get("X-Amz-Credential")
	if auth := r.Header.Get("Authorization"); auth != "" {
		rest, ok := strings.CutPrefix(auth, "AWS4-HMAC-SHA256 ")
		if !ok {
			return Credential{}, false
		}
		credential = ""
		for _, part := range strings.Split(rest, ",") {
			if v, ok := strings.CutPrefix(strings.TrimSpace(part), "Credential="); ok {
				credential = v
			}
		}
	}
	parts := strings.Split(credential, "/")
	if len(parts) != 5 || parts[4] != "aws4_request" || parts[0] == "" {
		return Credential{}, false
	}
	return Credential{Key: parts[0], Region: parts[2], Service: parts[3]}, true
}

// Find returns the operation of a signed request, and the request's violations of the model. It returns
// neither for a service that the model does not have.
func Find(r *http.Request, body []byte) (*Operation, []Fault) {
	scope, _ := ParseCredential(r)
	sv := Services()[scope.Service]
	if sv == nil {
		return nil, nil
	}
	noSuch := func(name string) (*Operation, []Fault) {
		return nil, []Fault{{Kind: Unknown, Path: sv.Name + " " + name}}
	}
	switch sv.Protocol {
	case "ec2", "query":
		f, pairs, err := ParseForm(string(body))
		if err != nil {
			return nil, []Fault{{Kind: Type, Path: sv.Name, Rule: err.Error()}}
		}
		op := sv.Operations[pairs.Get("Action")]
		if op == nil || pairs.Get("Version") != sv.Version {
			return noSuch(pairs.Get("Action") + " " + pairs.Get("Version"))
		}
		return op, op.CheckForm(f)
	}
	name, inCBOR := sv.CBOROperation(r)
	var err error
	if inCBOR {
		body, err = JSONOfCBOR(body)
	} else {
		name, _ = strings.CutPrefix(r.Header.Get("X-Amz-Target"), sv.Target+".")
	}
	object := map[string]any{}
	if err == nil {
		object, err = Object(body)
	}
	if err != nil {
		return nil, []Fault{{Kind: Type, Path: sv.Name, Rule: err.Error()}}
	}
	if sv.Protocol == "rest-json" {
		op, labels := sv.Match(r)
		if op == nil {
			return noSuch(r.Method + " " + r.URL.Path)
		}
		return op, op.CheckJSON(object, labels, r.URL.Query())
	}
	op := sv.Operations[name]
	if op == nil {
		return noSuch(name)
	}
	return op, op.CheckJSON(object, nil, nil)
}

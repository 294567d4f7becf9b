package awsemu

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"strconv"
	"strings"
)

// request is one call while it is being served, and its answer.
type request struct {
	srv       *Server
	svc       *service
	op        *operation
	region    *region
	accessKey string
	id        string

	params *params           // form protocols
	body   []byte            // JSON protocols
	labels map[string]string // REST path
	query  url.Values        // REST query

	xml   xmlWriter // answer of the form protocols, without its envelope
	reply any       // answer of the JSON protocols
}

// account is the account that the caller's key belongs to.
func (rq *request) account() *account { return rq.region.account() }

// label is the value of a {label} of the REST path.
func (rq *request) label(name string) string { return rq.labels[name] }

// queryValue is a REST query parameter, "" where it was not sent.
func (rq *request) queryValue(name string) string { return rq.query.Get(name) }

// queryInt is a numeric REST query parameter, nil where it was not sent.
func (rq *request) queryInt(name string) (*int64, error) {
	if !rq.query.Has(name) {
		return nil, nil
	}
	v := rq.query.Get(name)
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return nil, rq.svc.dialect.badParam(name, v, "Expected an integer.")
	}
	return &n, nil
}

// decode reads a JSON body strictly: unknown members and trailing text are
// refused, an empty body is an empty object.
func (rq *request) decode(into any) error {
	for name := range rq.query {
		if !contains(rq.op.queries, name) {
			return rq.svc.dialect.unknownParam(name)
		}
	}
	body := bytes.TrimSpace(rq.body)
	if len(body) == 0 {
		body = []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return rq.decodeError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return rq.svc.dialect.malformed("Unexpected text after the request's JSON object")
	}
	return nil
}

func (rq *request) decodeError(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return rq.svc.dialect.malformed(fmt.Sprintf("Expected %s at %s, found %s", wrongType.Type, wrongType.Field, wrongType.Value))
	}
	if _, name, found := strings.Cut(err.Error(), "unknown field "); found {
		return rq.svc.dialect.unknownParam(strings.Trim(name, `"`))
	}
	return rq.svc.dialect.malformed("The request body is not valid JSON")
}

// digest identifies what the request asks for, without its client token.
func (rq *request) digest() string {
	if rq.params != nil {
		return rq.params.digest()
	}
	h := sha256.New()
	writeField(h, rq.op.name)
	for _, segment := range rq.op.segments {
		writeField(h, rq.labels[strings.Trim(segment, "{}")])
	}
	var body map[string]any
	if json.Unmarshal(rq.body, &body) == nil {
		delete(body, "clientRequestToken")
		canonical, err := json.Marshal(body)
		if err == nil {
			h.Write(canonical)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// writeField adds a text to a hash so that neighbours cannot run together.
func writeField(h hash.Hash, s string) {
	fmt.Fprintf(h, "%d:%s,", len(s), s)
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// matchSegments matches an escaped path against a pattern; a label's value is
// unescaped.
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

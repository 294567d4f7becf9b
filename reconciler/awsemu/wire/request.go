package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Exchange is a call in progress and its answer.
type Exchange struct {
	Service   *Service
	Operation *Operation
	World     *world.Region // shared by the services of the region
	Part      any           // the service's part of the region
	AccessKey string
	Caller    string // ARN
	ID        string

	Form   *Form             // form protocols
	Body   []byte            // JSON protocols
	CBOR   bool              // the body was CBOR, and so the answer is CBOR
	Labels map[string]string // REST path
	Query  url.Values        // REST query

	XML   XML // answer of the form protocols, without its envelope
	Reply any // answer of the JSON protocols
}

// Request is an exchange with R, the service's part of the region.
type Request[R any] struct {
	*Exchange
	Region R
}

// Label returns the value of a {label} in the REST path.
func (rq *Exchange) Label(name string) string { return rq.Labels[name] }

// QueryValue returns a REST query parameter, or "" if it was not sent.
func (rq *Exchange) QueryValue(name string) string { return rq.Query.Get(name) }

// Handle checks the request against AWS's model of the operation, then runs it.
func (rq *Exchange) Handle() error {
	var faults []model.Fault
	if rq.Form != nil {
		faults = rq.Operation.Model.CheckForm(rq.Form.root)
	} else {
		body, err := model.Object(rq.Body)
		if err != nil {
			return rq.Service.Dialect.Malformed(err.Error())
		}
		faults = rq.Operation.Model.CheckJSON(body, rq.Labels, rq.Query)
	}
	if err := rq.Service.refuse(faults); err != nil {
		return err
	}
	return rq.Operation.handle(rq)
}

// decode parses a JSON body that was checked before. A member without a field exists in AWS, but not in the
// emulator.
func (rq *Exchange) decode(into any) error {
	body := bytes.TrimSpace(rq.Body)
	if len(body) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			return refused
		}
		if _, name, found := strings.Cut(err.Error(), "unknown field "); found {
			return rq.Service.Dialect.unknownParam(strings.Trim(name, `"`))
		}
		return rq.Service.Dialect.Malformed(err.Error())
	}
	return nil
}

// digest identifies the contents of the request without its client token.
func (rq *Exchange) digest() string {
	if rq.Form != nil {
		return rq.Form.digest()
	}
	h := sha256.New()
	writeField(h, rq.Operation.Name)
	for _, name := range slices.Sorted(maps.Keys(rq.Labels)) {
		writeField(h, rq.Labels[name])
	}
	var body map[string]any
	if json.Unmarshal(rq.Body, &body) == nil {
		delete(body, "clientRequestToken")
		delete(body, "ClientRequestToken")
		canonical, err := json.Marshal(body)
		if err == nil {
			h.Write(canonical)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// writeField adds a text to a hash, with its length, so that adjacent texts do not merge.
func writeField(h hash.Hash, s string) {
	fmt.Fprintf(h, "%d:%s,", len(s), s)
}

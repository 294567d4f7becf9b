package awsemu

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
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

// handle checks the request against AWS's model of the operation, then runs it.
func (rq *request) handle() error {
	var faults []model.Fault
	if rq.params != nil {
		faults = rq.op.model.CheckForm(rq.params.node)
	} else {
		body, err := model.Object(rq.body)
		if err != nil {
			return rq.svc.dialect.malformed(err.Error())
		}
		faults = rq.op.model.CheckJSON(body, rq.labels, rq.query)
	}
	if err := rq.svc.refuse(faults); err != nil {
		return err
	}
	return rq.op.handle(rq)
}

// decode reads a JSON body that was checked before. A member that is not in the
// value is one that AWS has and the emulator does not.
func (rq *request) decode(into any) error {
	body := bytes.TrimSpace(rq.body)
	if len(body) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if _, name, found := strings.Cut(err.Error(), "unknown field "); found {
			return rq.svc.dialect.unknownParam(strings.Trim(name, `"`))
		}
		return rq.svc.dialect.malformed(err.Error())
	}
	return nil
}

// digest identifies what the request asks for, without its client token.
func (rq *request) digest() string {
	if rq.params != nil {
		return rq.params.digest()
	}
	h := sha256.New()
	writeField(h, rq.op.name)
	for _, name := range sortedKeys(rq.labels) {
		writeField(h, rq.labels[name])
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

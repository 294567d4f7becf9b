// Package modeltest checks requests and answers in tests against AWS's service models.
package modeltest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// Client checks requests against the model of their operation before it sends them, and checks successful
// answers. It sends even requests that violate the model, because the server has its own checks. It wraps a
// client instead of a transport, because http.Client runs a goroutine for each call of an unknown transport.
type Client struct {
	Next interface {
		Do(*http.Request) (*http.Response, error)
	}
	// Request and Answer receive every violation of the model. If nil, the check does not run.
	Request, Answer func(error)
	// Answered receives every operation whose answer was checked.
	Answered func(op *model.Operation)
}

// Do implements the HTTP client interface of SDKs.
func (t *Client) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close() // it was read to the end
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	op, faults := model.Find(r, body)
	for _, f := range faults {
		if t.Request == nil {
			break
		}
		t.Request(fmt.Errorf("request %s breaks AWS's model: %s", name(op), f))
	}
	resp, err := t.Next.Do(r)
	if err != nil || op == nil || t.Answer == nil || resp.StatusCode >= http.StatusMultipleChoices {
		return resp, err
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read to the end, or failed
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(answer))
		if err != nil {
			return nil, err
		}
		if answer, err = io.ReadAll(z); err != nil {
			return nil, err
		}
	}
	if op.Service.CBOR && resp.Header.Get("Content-Type") == "application/cbor" {
		if answer, err = model.JSONOfCBOR(answer); err != nil {
			return nil, err
		}
	}
	for _, f := range op.CheckAnswer(answer) {
		t.Answer(fmt.Errorf("answer to %s breaks AWS's model: %s", name(op), f))
	}
	if t.Answered != nil {
		t.Answered(op)
	}
	return resp, nil
}

func name(op *model.Operation) string {
	if op == nil {
		return "to no known operation"
	}
	return op.Service.Name + " " + op.Name
}

// Operations collects the operations that received answers.
type Operations struct {
	mu   sync.Mutex
	seen map[*model.Operation]bool
}

// Add records an operation.
func (o *Operations) Add(op *model.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[*model.Operation]bool{}
	}
	o.seen[op] = true
}

// Missing returns the operations of the models that never received an answer.
func (o *Operations) Missing() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, sv := range model.Services() {
		for _, op := range sv.Operations {
			if !o.seen[op] {
				out = append(out, name(op))
			}
		}
	}
	return out
}

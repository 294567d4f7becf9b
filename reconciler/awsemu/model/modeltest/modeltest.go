// Package modeltest holds what goes over the wire in tests against AWS's service
// models.
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

// Client holds requests against the model of their operation before it sends
// them, and answers that are no errors when they come. It passes on even a request that
// breaks the model: the other end checks for itself. It goes around a client rather
// than a transport, as http.Client keeps a goroutine beside each call of a transport
// that it does not know.
type Client struct {
	Next interface {
		Do(*http.Request) (*http.Response, error)
	}
	// Request and Answer get every breach of the model; nil: it is not looked at.
	Request, Answer func(error)
	// Answered gets every operation whose answer was checked.
	Answered func(op *model.Operation)
}

// Do implements what SDKs need of an HTTP client.
func (t *Client) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close() // it was read to its end
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
	_ = resp.Body.Close() // it was read to its end, or failed
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

// Operations collects the operations that were answered.
type Operations struct {
	mu   sync.Mutex
	seen map[*model.Operation]bool
}

// Add notes one.
func (o *Operations) Add(op *model.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[*model.Operation]bool{}
	}
	o.seen[op] = true
}

// Missing are those of the models that were never answered.
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

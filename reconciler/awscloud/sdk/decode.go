package sdk

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The two pages that a resting fleet is read by, of groups and of templates, are
// most of what a pass computes. They are read straight into weir's values by a
// scanner that does nothing else; the SDK's reflection-free but general decoding
// takes ten times as long. Whatever the scanner does not understand, errors
// first of all, is left to the SDK, so that a surprise costs time and nothing else.

// operationDeserializer is the SDK's name for the step that decodes an answer.
const operationDeserializer = "OperationDeserializer"

// ReadPage returns an option for a client's stack that has read decode the body of
// an answer. output is what the call returns then; read has to tell it what the
// caller needs of the page. read may be called again after a retry.
func ReadPage(read func(body []byte) (output any, err error)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		p := &pageReader{read: read}
		sdk, err := stack.Deserialize.Swap(operationDeserializer, p)
		p.sdk = sdk
		return err
	}
}

// pageReader stands in place of the SDK's decoder, and asks it where it must.
type pageReader struct {
	sdk  middleware.DeserializeMiddleware
	read func(body []byte) (any, error)
}

// ID implements middleware.DeserializeMiddleware.
func (*pageReader) ID() string { return operationDeserializer }

// HandleDeserialize implements middleware.DeserializeMiddleware.
func (p *pageReader) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleDeserialize(ctx, in)
	leave := func() (middleware.DeserializeOutput, middleware.Metadata, error) {
		return p.sdk.HandleDeserialize(ctx, in, replay{out, meta, err})
	}
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || response.StatusCode != http.StatusOK {
		return leave()
	}
	buffer := bodies.Get().(*bytes.Buffer)
	buffer.Reset()
	body, readErr := readAll(buffer, response)
	if readErr != nil {
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{readErr}))
		return leave()
	}
	result, scanErr := p.read(body)
	if scanErr != nil {
		response.Body = io.NopCloser(bytes.NewReader(body))
		return leave()
	}
	bodies.Put(buffer) // nothing of the result points into it: the scanner copies texts
	out.Result = result
	return out, meta, nil
}

// bodies are buffers for pages, which have about a megabyte each and come by the
// hundred in a pass over a large fleet.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readAll reads and closes a body.
func readAll(b *bytes.Buffer, response *smithyhttp.Response) ([]byte, error) {
	if n := response.ContentLength; n > 0 && n < 1<<24 {
		b.Grow(int(n) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(response.Body); err != nil {
		return b.Bytes(), err
	}
	err := response.Body.Close()
	response.Body = http.NoBody // for the SDK, which closes it as well
	return b.Bytes(), err
}

// replay answers the SDK's decoder with what was answered already.
type replay struct {
	out  middleware.DeserializeOutput
	meta middleware.Metadata
	err  error
}

// HandleDeserialize implements middleware.DeserializeHandler.
func (r replay) HandleDeserialize(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
	return r.out, r.meta, r.err
}

// broken is the end of a body that ended too early.
type broken struct{ err error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

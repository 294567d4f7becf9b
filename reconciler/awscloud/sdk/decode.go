package sdk

import (
	"bytes"
	"context"
	"net/http"
	"sync"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// operationDeserializer is the SDK's name for the step that decodes an answer.
const operationDeserializer = "OperationDeserializer"

// ReadPage returns an option for a client's stack that makes read decode the body of an answer. The SDK's
// general decoder still decodes errors. The call returns output, so read must pass the content of the page
// to the caller in another way. read may run again after a retry.
func ReadPage(read func(body []byte) (output any, err error)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		p := &pageReader{read: read}
		sdk, err := stack.Deserialize.Swap(operationDeserializer, p)
		p.sdk = sdk
		return err
	}
}

// pageReader replaces the SDK's decoder, and calls it for errors.
type pageReader struct {
	sdk  middleware.DeserializeMiddleware
	read func(body []byte) (any, error)
}

// ID implements middleware.DeserializeMiddleware.
func (*pageReader) ID() string { return operationDeserializer }

// HandleDeserialize implements middleware.DeserializeMiddleware.
func (p *pageReader) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || response.StatusCode != http.StatusOK {
		return p.sdk.HandleDeserialize(ctx, in, replay{out, meta, err})
	}
	buffer := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(buffer) // read copies texts, so the result does not point into the buffer
	buffer.Reset()
	body, err := readAll(buffer, response)
	if err == nil {
		out.Result, err = p.read(body)
	}
	if err != nil {
		return out, meta, &smithy.DeserializationError{Err: err}
	}
	return out, meta, nil
}

// bodies contains buffers for pages. Pages have about a megabyte each, and a pass over a large fleet reads
// hundreds.
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
	response.Body = http.NoBody // for the SDK, which also closes it
	return b.Bytes(), err
}

// replay passes an existing answer to the SDK's decoder.
type replay struct {
	out  middleware.DeserializeOutput
	meta middleware.Metadata
	err  error
}

// HandleDeserialize implements middleware.DeserializeHandler.
func (r replay) HandleDeserialize(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
	return r.out, r.meta, r.err
}

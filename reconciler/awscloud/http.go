package awscloud

import (
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// attemptTimeout bounds one attempt of one call. The SDK has no bound of its
// own, and a connection that nobody answers must not hold a pass.
const attemptTimeout = 60 * time.Second

// newHTTPClient returns a client with the transport that the SDK configured,
// custom certificate authorities included.
func newHTTPClient(configured aws.HTTPClient) (aws.HTTPClient, *http.Transport) {
	builder, ok := configured.(interface{ GetTransport() *http.Transport })
	if !ok {
		builder = awshttp.NewBuildableClient()
	}
	transport := builder.GetTransport()
	client := &http.Client{
		Transport: transport, Timeout: attemptTimeout,
		// No API redirects, and a signed request must not follow where one points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return plainBodies{client}, transport
}

// plainBodies hides from net/http that the SDK's request bodies have a WriteTo.
// The SDK closes a body as soon as it has the header of the answer, and WriteTo
// then returns io.EOF as an error; if net/http is still about to look for the
// body's end, it takes that for a broken connection and drops the answer. A
// server on the same machine is quick enough for that to happen.
type plainBodies struct{ next aws.HTTPClient }

// Do implements aws.HTTPClient.
func (p plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy: the SDK keeps its own for a retry
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return p.next.Do(r)
}

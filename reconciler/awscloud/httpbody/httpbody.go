// Package httpbody prevents that answers of a fast server are lost.
package httpbody

import (
	"io"
	"net/http"
)

// Doer is the HTTP client interface of aws-sdk-go-v2.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Client hides from net/http that the request bodies of aws-sdk-go-v2 implement io.WriterTo. The SDK closes
// a body as soon as it has the header of the answer, and WriteTo then returns io.EOF as an error. If
// net/http has not finished sending the body, it treats that as a broken connection and drops the answer
// ("use of closed network connection"). This happens with a server on the same machine. Client is no
// http.RoundTripper, because http.Client runs a goroutine for each call of a RoundTripper of an unknown
// type.
type Client struct{ Next Doer }

// Do implements aws.HTTPClient.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy: the SDK needs the original for a retry
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.Next.Do(r)
}

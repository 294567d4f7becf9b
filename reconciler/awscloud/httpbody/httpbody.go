// Package httpbody keeps a quick server's answers from being dropped.
package httpbody

import (
	"io"
	"net/http"
)

// Doer is the HTTP client interface of aws-sdk-go-v2.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Client hides from net/http that the request bodies of aws-sdk-go-v2 have a
// WriteTo. The SDK closes a body as soon as it has the header of the answer, and
// WriteTo then returns io.EOF as an error. Where net/http is still about to look for
// the body's end, it takes that for a broken connection and drops the answer ("use of
// closed network connection"). A server on the same machine is quick enough for that.
// It is no http.RoundTripper, as http.Client keeps a goroutine beside each call of one
// that it does not know.
type Client struct{ Next Doer }

// Do implements aws.HTTPClient.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy: the SDK keeps its own for a retry
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.Next.Do(r)
}

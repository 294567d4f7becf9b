package sdk

import (
	"crypto/x509"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
)

// attemptTimeout bounds one attempt of one call. The SDK sets no bound, and a
// connection without an answer must not hold a pass.
const attemptTimeout = 60 * time.Second

// longestHeader bounds the header of an answer.
const longestHeader = 64 << 10

// newBuilder returns what the SDK makes HTTP clients from: also those that get
// credentials, which are made before newHTTPClient has its say.
func newBuilder() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(attemptTimeout).
		WithTransportOptions(func(t *http.Transport) { t.MaxResponseHeaderBytes = longestHeader })
}

// Around goes around every HTTP client that is made after it was set; nil: nothing
// does. It is for tests, which hold each request against AWS's models, however deep
// in the program it is that opens a Cloud.
var Around func(httpbody.Doer) httpbody.Doer

// authorities is the pool of custom certificate authorities that was loaded first.
var authorities atomic.Pointer[x509.CertPool]

// shareAuthorities has clients with the same custom authorities hold them once. The SDK
// reads AWS_CA_BUNDLE for each role, and a usual bundle takes some 200 KiB.
func shareAuthorities(t *http.Transport) {
	if t.TLSClientConfig == nil || t.TLSClientConfig.RootCAs == nil {
		return
	}
	own := t.TLSClientConfig.RootCAs
	if !authorities.CompareAndSwap(nil, own) {
		if first := authorities.Load(); first.Equal(own) {
			t.TLSClientConfig.RootCAs = first
		}
	}
}

// newHTTPClient returns a client with the transport that the SDK configured,
// custom certificate authorities included; with instead, that answers in its place.
func newHTTPClient(configured aws.HTTPClient, instead httpbody.Doer) (aws.HTTPClient, *http.Transport) {
	builder, ok := configured.(interface{ GetTransport() *http.Transport })
	if !ok {
		builder = newBuilder()
	}
	transport := builder.GetTransport()
	shareAuthorities(transport)
	client := instead
	if client == nil {
		client = &http.Client{
			Transport: transport, Timeout: attemptTimeout,
			// No API redirects, and a signed request must not follow where one points.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if Around != nil {
		return httpbody.Client{Next: Around(client)}, transport
	}
	return httpbody.Client{Next: client}, transport
}

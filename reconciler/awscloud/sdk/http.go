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

// attemptTimeout bounds one attempt of a call. The SDK sets no bound, and a connection without an answer
// must not block a pass.
const attemptTimeout = 60 * time.Second

// longestHeader bounds the header of an answer.
const longestHeader = 64 << 10

// newBuilder returns the builder of the SDK's HTTP clients. It is also for the clients that get credentials,
// which are made before newHTTPClient runs.
func newBuilder() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTimeout(attemptTimeout).
		WithTransportOptions(func(t *http.Transport) { t.MaxResponseHeaderBytes = longestHeader })
}

// Around wraps every HTTP client that is made after it was set. It may be nil. Tests use it to check each
// request against AWS's models, wherever the program opens a Cloud.
var Around func(httpbody.Doer) httpbody.Doer

// authorities is the first pool of custom certificate authorities that was loaded.
var authorities atomic.Pointer[x509.CertPool]

// shareAuthorities makes clients with the same custom authorities share them. The SDK reads AWS_CA_BUNDLE
// for each role, and a usual bundle takes some 200 KiB.
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

// newHTTPClient returns a client with the SDK's configured transport, including custom certificate
// authorities. If instead is set, it answers in place of that transport.
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
			// AWS APIs do not redirect, and a signed request must not follow a redirect.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if Around != nil {
		return httpbody.Client{Next: Around(client)}, transport
	}
	return httpbody.Client{Next: client}, transport
}

package awscloud

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/weir-gitops/weir/reconciler/awscloud/plainbody"
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
	return plainbody.Client{Next: client}, transport
}

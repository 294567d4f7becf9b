package sdk

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// TestPlainWords: what a mistyped region, an address that is none, and no credentials
// end in.
func TestPlainWords(t *testing.T) {
	noHost := func(host string) error {
		return &url.Error{Op: "Post", URL: "https://" + host + "/", Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}}
	}
	for name, test := range map[string]struct {
		err  error
		kind observed.ErrorKind
		want []string
	}{
		"a mistyped region":          {noHost("sts.eu-wset-1.amazonaws.com"), observed.Transient, []string{`check the region "eu-wset-1"`, `did you mean "eu-west-1"?`}},
		"a region that is new":       {noHost("ec2.zz-moonbase-9.api.aws"), observed.Transient, []string{`check the region "zz-moonbase-9", and`}},
		"an endpoint that is none":   {noHost("aws.example.com"), observed.Transient, []string{"host aws.example.com not found", "check the endpoint's address"}},
		"a region of no credentials": {&credentialsError{err: noHost("sts.us-eats-1.amazonaws.com")}, observed.Credentials, []string{`did you mean "us-east-1"?`}},
		"a login that has ended":     {&credentialsError{err: errors.New("failed to refresh cached credentials, the SSO session has expired or is invalid")}, observed.Credentials, []string{"aws sso login"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Classify("sts", "GetCallerIdentity", test.err)
			if got.Kind != test.kind {
				t.Errorf("kind %v", got.Kind)
			}
			for _, w := range test.want {
				if !strings.Contains(got.Message, w) {
					t.Errorf("%q does not say %q", got.Message, w)
				}
			}
		})
	}
}

// TestNoCredentialsInPlainWords asks the SDK's own chain.
func TestNoCredentialsInPlainWords(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithRegion("eu-west-1"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Credentials = aws.NewCredentialsCache(markedCredentials{inner: cfg.Credentials})
	_, err = newSTS(cfg, aws.String("http://127.0.0.1:1")).GetCallerIdentity(context.Background(), nil)
	if got := Classify("sts", "GetCallerIdentity", err); got.Kind != observed.Credentials || !strings.HasPrefix(got.Message, "no AWS credentials were found: log in") {
		t.Errorf("%v", got)
	}
}

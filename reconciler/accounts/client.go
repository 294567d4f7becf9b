package accounts

import (
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/render/sops"
)

// loopbackOnly reports whether an endpoint is on this machine and no credentials are configured anywhere. It
// is then an emulator that accepts any credentials.
func (s *Set) loopbackOnly(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	if u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false
	}
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SHARED_CREDENTIALS_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		if s.o.Getenv(name) != "" {
			return false
		}
	}
	_, err = os.Stat(filepath.Join(s.o.Getenv("HOME"), ".aws", "credentials"))
	return err != nil
}

// KMS returns a KMS client with the scope's credentials. It makes no request before its first use.
func (s *Set) KMS(key reconciler.ScopeKey) sops.KMS {
	return awscloud.NewKMS(s.Options(key))
}

// Options returns the options of the client for the account of a scope.
func (s *Set) Options(key reconciler.ScopeKey) sdk.Options {
	o := sdk.Options{
		Region: key.Region, EndpointURL: key.Endpoint, RoleARN: key.RoleARN, AccountID: key.Account,
		Embedded: key.Endpoint != "" && (key.Endpoint == s.o.Embedded || s.loopbackOnly(key.Endpoint)),
		Logger:   s.o.Logger, Now: s.o.Now, Clock: s.o.Clock.Earliest, Yields: s.o.Yields,
		OnCall: func(c sdk.CallInfo) {
			s.o.Clock.Hear(c.AWSTime)
			if s.o.OnCall != nil {
				s.o.OnCall(c)
			}
		},
	}
	if !o.Embedded {
		o.Limits = s.limits
	}
	if s.o.Fence != nil {
		o.Fence = s.o.Fence(key)
	}
	return o
}

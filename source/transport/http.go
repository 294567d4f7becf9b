package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/weir-gitops/weir/source/fault"
)

// httpRemote is a repository behind smart HTTP. It uses go-git's HTTP client directly, one per session. So it
// does not depend on go-git's process-wide registry of protocols, or on its list of unsupported capabilities.
type httpRemote struct {
	url  string
	host string
	auth Auth
	rt   *http.Transport
}

func newHTTPRemote(loc Location, cfg Settings) (*httpRemote, error) {
	if err := cfg.Auth.validateHTTP(); err != nil {
		return nil, err
	}
	rt, err := NewHTTP(cfg)
	if err != nil {
		return nil, err
	}
	return &httpRemote{url: loc.http.String(), host: displayURL(loc.http), auth: cfg.Auth, rt: rt}, nil
}

// Connect starts a session over HTTP and reads the list of refs. keep selects the refs of the list.
func (r *httpRemote) Connect(ctx context.Context, keep refChoice) (*Session, error) {
	auth, token, err := r.auth.method(ctx)
	if err != nil {
		return nil, err
	}
	ep, err := transport.NewEndpoint(r.url)
	if err != nil {
		return nil, fault.New(fault.RefusedURL, "%s: %v", r.host, err)
	}
	s := &Session{Host: r.host, overhead: overhead{left: maxOverheadBytes}}
	seen := &observer{base: r.rt, keep: keep, session: s}
	client := githttp.NewClient(&http.Client{Transport: seen, CheckRedirect: checkRedirect})
	up, err := client.NewUploadPackSession(ep, auth)
	if err != nil {
		return nil, fault.New(fault.RefusedURL, "%s: %v", r.host, err)
	}
	u := &httpUploader{UploadPackSession: up, remote: r, token: token}
	s.up = u
	if s.Adv, err = up.AdvertisedReferencesContext(ctx); err != nil {
		return nil, u.explain(ctx, err)
	}
	return s, nil
}

func (r *httpRemote) Close() { r.rt.CloseIdleConnections() }

// readScopes names the permissions that a token needs, in the terms of each forge. A forge answers 403 to a
// known token without them.
const readScopes = "a token needs read:repository on Gitea and Forgejo, read_repository on GitLab, Contents: read on GitHub"

// httpUploader is a session of go-git's client.
type httpUploader struct {
	transport.UploadPackSession
	remote *httpRemote
	// token is the token that was created for this session, or "".
	token string
	once  sync.Once
}

func (u *httpUploader) close() {}

// explain adds a reason to an error of go-git's client. It drops the body of an error response, which is
// foreign text and adds nothing to the status.
func (u *httpUploader) explain(ctx context.Context, err error) error {
	if errors.Is(err, transport.ErrAuthenticationRequired) && u.token != "" {
		u.once.Do(func() { u.remote.auth.Tokens.Reject(u.token) })
	}
	return u.remote.explain(ctx, err, readScopes)
}

// explain adds a reason to an error. scopes names the permissions that a token needs.
func (r *httpRemote) explain(ctx context.Context, err error, scopes string) error {
	host := r.host
	var unexpected *plumbing.UnexpectedError
	if errors.As(err, &unexpected) {
		err = unexpected.Err // it has no Unwrap method
	}
	var status *githttp.Err
	switch {
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return &fault.Error{Reason: fault.EmptyRepository, Text: host + " has no commit yet", Err: transport.ErrEmptyRemoteRepository}
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return &fault.Error{Reason: fault.AuthFailed, Text: host + " requires credentials, or does not accept these (401)", Err: transport.ErrAuthenticationRequired}
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return &fault.Error{Reason: fault.AuthFailed, Text: host + " refuses access (403): " + scopes, Err: transport.ErrAuthorizationFailed}
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return &fault.Error{Reason: fault.NotFound, Text: host + " is not there (404)", Err: transport.ErrRepositoryNotFound}
	case errors.As(err, &status):
		if status.StatusCode() == http.StatusProxyAuthRequired {
			return proxyAuthRequired("on the way to " + host)
		}
		return fault.New(fault.Unreachable, "%s answers %d %s", host, status.StatusCode(), http.StatusText(status.StatusCode()))
	}
	return networkFault(ctx, host, err)
}

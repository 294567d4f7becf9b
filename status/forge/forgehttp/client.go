// Package forgehttp is how weir speaks HTTP to a forge: to the forge's own host
// only, with a token that is read for each request, within the forge's rate limit,
// and with answers of bounded size. It knows no forge's API; whoever does uses the
// Client and makes an Error of what is refused.
package forgehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Token returns the token to send. It is called for each request, so that a
// token that was replaced on disk is used at once.
type Token func(ctx context.Context) (string, error)

// Authorization schemes: GitHub and GitLab take the first, Gitea and Forgejo both.
const (
	Bearer = "Bearer"
	Plain  = "token"
)

// Options of a client.
type Options struct {
	// Base is the forge's address. No request leaves its host.
	Base *url.URL
	// Scheme is Bearer or Plain.
	Scheme string
	// Token may be nil: requests are sent without one then.
	Token Token
	// Transport is http.DefaultTransport if nil.
	Transport http.RoundTripper
	// AnswerLimit bounds what is read of one answer, in bytes. 8 MiB if zero, which
	// is far more than a page of a listing of short things.
	AnswerLimit int64
}

// NewClient returns a client for one forge. It follows redirects (a renamed
// repository) on the same host and with the same method only.
func NewClient(o Options) *http.Client {
	rt := o.Transport
	if rt == nil {
		rt = http.DefaultTransport
	}
	return &http.Client{
		Transport: &transport{base: rt, host: o.Base.Host, scheme: o.Scheme, token: o.Token, limit: cmp.Or(o.AnswerLimit, answerLimit)},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			first := via[0]
			if len(via) > 3 || req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme || req.Method != first.Method {
				return errors.New("follow redirect: the repository seems to have moved; configure its new address")
			}
			return nil
		},
	}
}

const answerLimit = 8 << 20

// transport adds the token to each request to the forge's own host.
type transport struct {
	base   http.RoundTripper
	host   string
	scheme string
	token  Token
	limit  int64
	quota  quota
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != t.host {
		return nil, fmt.Errorf("send request to %s: not the forge's host", req.URL.Host)
	}
	if err := t.quota.ask(time.Now()); err != nil {
		return nil, err
	}
	if t.token != nil {
		token, err := t.token(req.Context())
		if err != nil {
			// A file that is being replaced is there a moment later.
			return nil, fmt.Errorf("read forge token: %w", err)
		}
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", t.scheme+" "+token)
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.quota.note(resp.Header, time.Now())
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&counted{r: io.LimitReader(resp.Body, t.limit)}, resp.Body}
	return resp, nil
}

// ParseURL reads a forge's address. Plain http is allowed: forges inside a network
// and on loopback are reached so. No error shows more of it than scheme and host.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("read forge URL: not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("read forge URL: want http(s)://host")
	}
	if u.User != nil {
		return nil, fmt.Errorf("read forge URL %s://%s: it must not hold a user or password; use a token file", u.Scheme, u.Host)
	}
	return u, nil
}

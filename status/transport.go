package status

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// answerLimit bounds what is read of one answer; a page of statuses is far smaller.
const answerLimit = 8 << 20

// tokenTransport adds the token to each request to the forge's own host.
type tokenTransport struct {
	base   http.RoundTripper
	host   string
	scheme string // Bearer or token
	token  Token
	quota  quota
}

// errToken says that the token could not be had; a file that is being replaced
// is there a moment later.
var errToken = errors.New("read forge token")

// RoundTrip implements http.RoundTripper.
func (t *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != t.host {
		return nil, fmt.Errorf("send request to %s: not the forge's host", req.URL.Host)
	}
	if err := t.quota.ask(time.Now()); err != nil {
		return nil, err
	}
	if t.token != nil {
		token, err := t.token(req.Context())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errToken, err)
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
	}{io.LimitReader(resp.Body, answerLimit), resp.Body}
	return resp, nil
}

// forgeClient returns a client for one forge: with its token, following
// redirects (a renamed repository) on the same host and with the same method only.
func forgeClient(o ForgeOptions, base *url.URL, scheme string) *http.Client {
	rt := o.Transport
	if rt == nil {
		rt = http.DefaultTransport
	}
	return &http.Client{
		Transport: &tokenTransport{base: rt, host: base.Host, scheme: scheme, token: o.Token},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			first := via[0]
			if len(via) > 3 || req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme || req.Method != first.Method {
				return errors.New("follow redirect: the repository seems to have moved; configure its new address")
			}
			return nil
		},
	}
}

// parseForgeURL reads a forge's address. Plain http is allowed: forges inside a
// network and on loopback are reached so.
func parseForgeURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("read forge URL: not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("read forge URL %s: want http(s)://host", plainURL(raw))
	}
	if u.User != nil {
		return nil, fmt.Errorf("read forge URL %s: it must not hold a user or password; use a token file", plainURL(raw))
	}
	return u, nil
}

// Package forgehttp is the HTTP transport to a forge, below the library for the forge's API. It guarantees
// the following:
//
//   - Requests, and the token with them, are sent only to the forge's own host. The token is read
//     again for each request. Redirects (a renamed repository) are followed only on that host.
//   - No request is sent while the forge reports that its rate limit is reached.
//   - A read may be conditional: see Exchange.
//   - The part of a response that is passed on is bounded, in bytes, in values and for each text in
//     it, because outsiders write part of the content.
//   - A refusal, or a request without a response, is an Error, and no text in it contains the
//     token. Libraries return it as the error of their transport.
package forgehttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Token returns the token to send. It is called for each request, so that a token that was replaced on disk
// is used at once.
type Token func(ctx context.Context) (string, error)

// Authorization schemes. GitHub and GitLab accept the first, Gitea and Forgejo both.
const (
	Bearer = "Bearer"
	Plain  = "token"
)

// Options configures a client.
type Options struct {
	// Forge is the name of the forge in errors.
	Forge string
	// Base is the forge's address. Requests are sent only to its host.
	Base *url.URL
	// Scheme is Bearer or Plain.
	Scheme string
	// Token may be nil; requests are then sent without a token.
	Token Token
	// Transport defaults to http.DefaultTransport.
	Transport http.RoundTripper
}

// NewClient returns a client for one forge. It follows redirects (a renamed repository) only on the same
// host and with the same method.
func NewClient(o Options) *http.Client {
	rt := o.Transport
	if rt == nil {
		rt = http.DefaultTransport
	}
	return &http.Client{
		Transport: &transport{base: rt, forge: o.Forge, host: o.Base.Host, scheme: o.Scheme, token: o.Token},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			first := via[0]
			if len(via) > 3 || req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme || req.Method != first.Method {
				return errors.New("follow redirect: the repository seems to have moved; configure its new address")
			}
			return nil
		},
	}
}

// answerLimit is the maximum size of a response, in bytes. A page contains the descriptions of up to a
// hundred pull requests, or as many comments, and outsiders can make them long.
const answerLimit = 64 << 20

// Exchange contains inputs and results of the transport for one call of a library, in addition to the
// library's own.
type Exchange struct {
	// ETag makes a read conditional.
	ETag string
	// Same says that the response is unchanged since ETag.
	Same bool
	// Status and Header are from the last response.
	Status int
	Header http.Header
}

type exchangeKey struct{}

// With returns a context whose requests use an exchange.
func With(ctx context.Context, x *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// errSame ends a request that was answered with "not modified".
var errSame = errors.New("the answer is the same")

// transport implements the guarantees of the package.
type transport struct {
	base   http.RoundTripper
	forge  string
	host   string
	scheme string
	token  Token
	sent   atomic.Pointer[string] // the last token
	quota  quota
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.send(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must close it
		}
		return nil, t.unanswered(err)
	}
	x, _ := req.Context().Value(exchangeKey{}).(*Exchange)
	if x != nil {
		x.Status, x.Header = resp.StatusCode, resp.Header
	}
	switch {
	case x != nil && x.ETag != "" && resp.StatusCode == http.StatusNotModified:
		x.Same, err = true, errSame
	case resp.StatusCode/100 == 2, resp.StatusCode/100 == 3 && resp.Header.Get("Location") != "":
		resp.Body = struct {
			io.Reader
			io.Closer
		}{&counted{r: &clipped{r: io.LimitReader(resp.Body, answerLimit)}}, resp.Body}
		return resp, nil
	default:
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // an incomplete text is acceptable
		err = t.refused(resp, said)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be reused
	_ = resp.Body.Close()                                         // opened for reading only
	return nil, err
}

// send sends a request with the forge's token, unless the rate limit is reached. It refuses other hosts,
// which must not see the token.
func (t *transport) send(req *http.Request) (*http.Response, error) {
	if req.URL.Host != t.host {
		return nil, fmt.Errorf("send request to %s: not the forge's host", req.URL.Host)
	}
	if wait := t.quota.wait(time.Now()); wait > 0 {
		return nil, &Error{Forge: t.forge, Fault: FaultBusy, After: wait, Message: "the forge's rate limit is reached"}
	}
	own := req.Clone(req.Context())
	if t.token != nil {
		token, err := t.token(req.Context())
		if err != nil {
			// A file that is being replaced will soon exist again.
			return nil, fmt.Errorf("read forge token: %w", err)
		}
		t.sent.Store(&token)
		own.Header.Set("Authorization", t.scheme+" "+token)
	}
	if x, _ := req.Context().Value(exchangeKey{}).(*Exchange); x != nil && x.ETag != "" {
		own.Header.Set("If-None-Match", x.ETag)
	}
	resp, err := t.base.RoundTrip(own)
	if err == nil {
		t.quota.readHeaders(resp.Header, time.Now())
	}
	return resp, err
}

// unanswered returns the error of a request without a response.
func (t *transport) unanswered(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Forge: t.forge, Fault: FaultBusy, Message: t.clean(err.Error()), Err: err}
}

// refused converts a response to an error.
func (t *transport) refused(resp *http.Response, said []byte) error {
	e := &Error{Forge: t.forge, Status: resp.StatusCode, Message: t.clean(saidIn(said))}
	e.Fault, e.After = faultOf(e.Status, resp.Header)
	if e.Message == "" {
		e.Message = strings.ToLower(http.StatusText(e.Status))
	}
	if e.Status == http.StatusForbidden && strings.Contains(strings.ToLower(e.Message), "rate limit") {
		// GitHub does not always report the end of its secondary rate limit.
		// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
		e.Fault, e.After = FaultBusy, cmp.Or(e.After, time.Minute)
	}
	return e
}

// clean makes a text suitable for an error. A proxy may repeat the request in its response, including the
// token.
func (t *transport) clean(text string) string {
	if token := t.sent.Load(); token != nil && *token != "" {
		text = strings.ReplaceAll(text, *token, "[redacted]")
	}
	return Quote(text)
}

// saidIn returns the message in an error document of any of the forges. GitLab's message can be a string, a
// list or a map of fields, and its authentication errors have the format of OAuth. Any other document is a
// page of a proxy.
func saidIn(body []byte) string {
	var in struct {
		Message     json.RawMessage   `json:"message"`
		Error       json.RawMessage   `json:"error"`
		Description string            `json:"error_description"`
		Errors      []json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &in) != nil {
		return string(body)
	}
	var said []string
	for _, raw := range append([]json.RawMessage{in.Message, in.Error}, in.Errors...) {
		var plain string
		var field struct {
			Message string `json:"message"`
		}
		switch {
		case len(raw) == 0 || string(raw) == "null":
			continue
		case json.Unmarshal(raw, &plain) == nil:
		case json.Unmarshal(raw, &field) == nil && field.Message != "":
			plain = field.Message
		default:
			plain = string(raw)
		}
		said = append(said, plain)
	}
	if in.Description != "" {
		said = append(said, in.Description)
	}
	return strings.Join(said, ": ")
}

// ParseURL parses a forge's address. It accepts plain http, for forges inside a network and on loopback.
// Its errors contain only the scheme and host.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("read forge URL: not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("read forge URL: want http(s)://host")
	}
	if u.User != nil {
		return nil, fmt.Errorf("read forge URL %s://%s: it must not have a user or password; use a token file", u.Scheme, u.Host)
	}
	return u, nil
}

// Package transport connects to the servers of repositories, over HTTP(S) and SSH. A Remote is a repository
// on a server. Its Connect returns a Session, which lists refs and fetches at most one pack. A Pusher creates
// branches of weir's own, with separate credentials.
//
//	Settings ─▶ New ─▶ Remote ──Connect──▶ Session: refs ─▶ pack
//
// Rules:
//
//   - A server decides nothing. It cannot redirect weir to another host. It must have a valid certificate or
//     a known host key. It is disconnected if it sends too much or is too slow.
//   - Credentials are read from their files at each use, and no error contains them.
//   - The time limit of a server grows with the bytes that it sends (Deadline).
package transport

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/weir-gitops/weir/source/fault"
)

const (
	connectTimeout = 10 * time.Second
	// maxErrorBody bounds the part of an error response's body that is read.
	maxErrorBody = 4 << 10
	maxRedirects = 5
	// maxHeaderBytes bounds the header of a response.
	maxHeaderBytes = 64 << 10
	// maxCAFileBytes is several times the size of a system's complete list of authorities.
	maxCAFileBytes = 4 << 20
)

// Settings says how one source's server is reached, and as whom. The keys of the
// configuration are in the tags.
type Settings struct {
	Auth Auth `yaml:"auth"`
	// CAFile holds PEM certificates of authorities that weir trusts in addition to the system's.
	CAFile string `yaml:"caFile"`
	// ClientCert is the certificate that weir sends to servers that request one.
	ClientCert ClientCert `yaml:"clientCert"`
	// Proxy is an http, https or socks5 URL without credentials. Without it weir uses the proxy of
	// the environment, and no proxy for SSH.
	Proxy     string    `yaml:"proxy"`
	ProxyAuth ProxyAuth `yaml:"proxyAuth"`
}

// Dial makes the connections of all HTTP clients that are created after it was set. Tests set it to simulate
// the network.
var Dial = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext

// NewHTTP returns the HTTP transport of a source, with the certificates of CAFile and ClientCert, the proxy,
// and its own limits. It shares nothing with other parts of the process. The API client for the forge of the
// repository uses the same settings.
func NewHTTP(cfg Settings) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           Dial,
		TLSHandshakeTimeout:   connectTimeout,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          4,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		// The longest headers are a forge's links between pages.
		MaxResponseHeaderBytes: maxHeaderBytes,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if cfg.CAFile != "" {
		if info, err := os.Stat(cfg.CAFile); err == nil && info.Size() > maxCAFileBytes {
			return nil, fmt.Errorf("read caFile: %s has %d bytes, which is not a list of certificates", cfg.CAFile, info.Size())
		}
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read caFile: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read caFile: %s has no PEM certificate", cfg.CAFile)
		}
		t.TLSClientConfig.RootCAs = pool
	}
	if cert := cfg.ClientCert; cert != (ClientCert{}) {
		if err := cert.validate(); err != nil {
			return nil, err
		}
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert.load() }
	}
	p, err := newProxySettings(cfg)
	if err != nil {
		return nil, err
	}
	if p.url != nil {
		t.Proxy = func(*http.Request) (*url.URL, error) { return p.current() }
		t.OnProxyConnectResponse = func(_ context.Context, via *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode == http.StatusProxyAuthRequired {
				return proxyAuthRequired(via.Host)
			}
			return nil
		}
	}
	return t, nil
}

// load reads the current certificate. Its errors do not contain the parser's message.
func (c ClientCert) load() (*tls.Certificate, error) {
	cert, err := readCredential(c.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := readCredential(c.KeyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fault.New(fault.AuthFailed, "clientCert: %s and %s are no certificate in PEM and its private key, unencrypted", c.CertFile, c.KeyFile)
	}
	return &pair, nil
}

// checkRedirect refuses redirects to another host, which would let a server choose the host that weir
// connects to.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return fault.New(fault.RefusedURL, "%s redirects more than %d times", displayURL(from), maxRedirects)
	case !strings.EqualFold(req.URL.Hostname(), from.Hostname()),
		from.Scheme == req.URL.Scheme && req.URL.Port() != from.Port(),
		from.Scheme == "https" && req.URL.Scheme != "https":
		return fault.New(fault.RefusedURL, "%s redirects to %s; set the source's url to where the repository is", displayURL(from), displayURL(req.URL))
	}
	return nil
}

// observer records data that go-git's client does not return: whether the response is smart HTTP, and the
// capabilities before go-git filters them. It also bounds response bodies. Each session has its own observer.
type observer struct {
	base    http.RoundTripper
	keep    refChoice
	session *Session
	// service is the requested service. Empty means git-upload-pack.
	service string
}

// RoundTrip sends a request, and bounds the body of its response. It checks and records the list of refs.
func (o *observer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode >= http.StatusMultipleChoices:
		resp.Body = limitBody(resp.Body, maxErrorBody, io.EOF)
	case strings.HasSuffix(req.URL.Path, "/info/refs"):
		if err := o.advertisement(resp); err != nil {
			_ = resp.Body.Close() // the response is refused anyway
			return nil, err
		}
	default:
		resp.Body = body{o.session.overhead.over(resp.Body), resp.Body}
	}
	return resp, nil
}

func (o *observer) advertisement(resp *http.Response) error {
	want := "application/x-" + cmp.Or(o.service, transport.UploadPackServiceName) + "-advertisement"
	if got, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); strings.TrimSpace(got) != want {
		return fault.New(fault.Unsupported, "%s does not answer as a Git server with smart HTTP (content type %q); check the url", displayURL(resp.Request.URL), fault.Plain(got))
	}
	r := bufio.NewReaderSize(limitRefs(resp.Request.Context(), resp.Body), 8<<10)
	head, _ := r.Peek(4 << 10) // for a short response this returns an error and all of the data
	caps := parseCapabilities(head)
	o.session.Caps = caps
	resp.Body = body{filterRefs(r, o.keep, o.session), resp.Body}
	return caps.checkFormat()
}

// body is a response body that is read through another reader.
type body struct {
	io.Reader
	io.Closer
}

// limitRefs bounds a list of refs, and reports its progress to the deadline.
func limitRefs(ctx context.Context, r io.Reader) io.Reader {
	tooLong := fault.New(fault.Unsupported, "the server lists more than %d bytes of refs", maxAdvertBytes)
	return coming{limitBody(io.NopCloser(r), maxAdvertBytes, tooLong), DeadlineOf(ctx)}
}

// coming reports the bytes that it reads to a deadline.
type coming struct {
	io.Reader
	deadline *Deadline
}

func (c coming) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.deadline.extend(n)
	return n, err
}

// parseCapabilities parses the list after the first ref and a NUL.
func parseCapabilities(head []byte) Capabilities {
	_, rest, ok := bytes.Cut(head, []byte{0})
	if !ok {
		return nil
	}
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return strings.Fields(string(line))
}

// limitedBody returns the error end after limit bytes.
type limitedBody struct {
	io.ReadCloser
	left int64
	end  error
}

func limitBody(body io.ReadCloser, limit int64, end error) io.ReadCloser {
	return &limitedBody{ReadCloser: body, left: limit, end: end}
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.end
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// networkFault converts an error of the HTTP client to a fault with a reason. op is the context of the
// operation with its deadline.
func networkFault(op context.Context, host string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // without the URL, which is already in the message
	}
	var ne net.Error
	if errors.Is(op.Err(), context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() {
		return &fault.Error{Reason: fault.Timeout, Text: fmt.Sprintf("%s did not answer in time", host), Err: context.DeadlineExceeded}
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return fault.New(fault.Unreachable, "%s: %v; give the authority's certificate as caFile", host, err)
	}
	var oe *net.OpError
	if errors.As(err, &oe) && oe.Op == "remote error" {
		return fault.New(fault.Unreachable, "%s: %s; if the server requires a client certificate, set clientCert", host, fault.Plain(err.Error()))
	}
	return fault.New(fault.Unreachable, "%s: %s", host, fault.Plain(err.Error()))
}

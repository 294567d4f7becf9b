// Package prometheus sends instant queries to a Prometheus server, or to a server with the same
// API. It uses client_golang's client of that API.
//
// In addition, it protects a process that writes to AWS from the server: answers have a maximum
// size and a deadline, no redirect is followed, the credential is sent only to the configured host,
// and errors never contain it. Files with credentials are read at each query, so a rotated token
// takes effect at once.
package prometheus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/weir-gitops/weir/reconciler/rollout/gate"
)

const (
	// timeout limits the time of a query, including reading its answer.
	timeout = 10 * time.Second
	// mostBytes and mostSamples limit an answer. A gate whose query returns more values needs a
	// different query.
	mostBytes   = 4 << 20
	mostSamples = 10000
	// longest limits the bytes of a reported error.
	longest = 300
	// mostSecret limits the bytes read from a file with a credential.
	mostSecret = 64 << 10
)

// Options configures the access to a server.
type Options struct {
	// URL is the address of the server, to which /api/v1/query is added.
	URL string
	// TokenFile contains a bearer token. Alternatively, Username and PasswordFile authenticate the
	// client. At most one of the two ways is set.
	TokenFile, Username, PasswordFile string
	// CAFile contains the certificates that sign the server's. If it is empty, the system's
	// certificates are used.
	CAFile string
}

// Client sends queries to one server. It is safe for concurrent use.
type Client struct {
	options   Options
	host      *url.URL
	transport *http.Transport
	api       v1.API
}

// Open returns a client. It reads the CA file and sends nothing.
func Open(o Options) (*Client, error) {
	host, err := url.Parse(o.URL)
	if err != nil || host.Host == "" || host.Scheme != "http" && host.Scheme != "https" || host.User != nil || host.RawQuery != "" || host.Fragment != "" {
		return nil, errors.New("the url is not the address of a server, such as https://prometheus.example.org")
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the caFile: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("the caFile " + o.CAFile + " has no PEM certificate")
		}
	}
	c := &Client{options: o, host: host, transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
	}}
	client, err := api.NewClient(api.Config{Address: o.URL, Client: &http.Client{
		Transport: guard{c}, Timeout: timeout,
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return errors.New("the server redirects to " + r.URL.Host + ": configure the address that answers without a redirect")
		},
	}})
	if err != nil {
		return nil, errors.New("the url is not the address of a server, such as https://prometheus.example.org")
	}
	c.api = v1.NewAPI(client)
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Query returns the values of a query now, by the server's clock. The query must return a scalar or
// an instant vector.
func (c *Client) Query(ctx context.Context, query string) ([]gate.Sample, error) {
	header, secret, err := c.credential()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, authorization{}, header), timeout)
	defer cancel()
	value, warnings, _, err := c.api.Query(ctx, query, time.Time{}, v1.WithTimeout(timeout))
	if err == nil && len(warnings) > 0 { // a part of the data is missing
		err = errors.New("its answer is incomplete: " + warnings[0])
	}
	if err != nil {
		return nil, c.redacted(err, secret)
	}
	switch v := value.(type) {
	case *model.Scalar:
		return []gate.Sample{{Value: float64(v.Value)}}, nil
	case model.Vector:
		if len(v) > mostSamples {
			return nil, fmt.Errorf("the query has %d values, more than %d: aggregate them", len(v), mostSamples)
		}
		out := make([]gate.Sample, len(v))
		for i, s := range v {
			if s.Histogram != nil {
				return nil, errors.New("the query has histograms and no numbers: ask for a quantile")
			}
			out[i].Value = float64(s.Value)
			if len(s.Metric) > 0 {
				out[i].Of = s.Metric.String()
			}
		}
		return out, nil
	case nil:
		return nil, errors.New(c.host.Host + ": its answer has no result")
	}
	return nil, fmt.Errorf("the query has a %s and neither a scalar nor an instant vector", value.Type())
}

// redacted returns an error as one sentence, without any part of the credential that a server repeats.
func (c *Client) redacted(err error, secret []string) error {
	text := err.Error()
	var sent *url.Error
	var said *v1.Error
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		text = "no answer within " + timeout.String()
	case errors.As(err, &unknown), errors.As(err, &name):
		text = "its certificate is not trusted: " + errors.Unwrap(err).Error()
	case errors.As(err, &said):
		text = said.Msg
		if said.Type == v1.ErrBadData || said.Type == v1.ErrExec {
			text = "it refuses the query: " + said.Msg
		}
	case errors.As(err, &sent):
		text = sent.Err.Error()
	}
	for _, s := range secret {
		if s != "" {
			text = strings.ReplaceAll(text, s, "(secret)")
		}
	}
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + " …"
	}
	return errors.New(c.host.Host + ": " + text)
}

// credential returns the header to send, and its secret parts.
func (c *Client) credential() (header string, secret []string, err error) {
	o := &c.options
	switch {
	case o.TokenFile != "":
		token, err := readSecret("tokenFile", o.TokenFile)
		return "Bearer " + token, []string{token}, err
	case o.PasswordFile != "":
		password, err := readSecret("passwordFile", o.PasswordFile)
		both := base64.StdEncoding.EncodeToString([]byte(o.Username + ":" + password))
		return "Basic " + both, []string{password, both}, err
	}
	return "", nil, nil
}

// readSecret reads a secret of exactly one line from a file. key names the setting in errors.
func readSecret(key, file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read the %s: %w", key, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostSecret))
	if err != nil {
		return "", fmt.Errorf("read the %s: %w", key, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", fmt.Errorf("the %s %s does not contain exactly one line", key, file)
	}
	return secret, nil
}

type authorization struct{}

// guard wraps the transport. It refuses other hosts, adds the credential and limits the size of
// answers.
type guard struct{ c *Client }

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != g.c.host.Scheme || r.URL.Host != g.c.host.Host {
		return nil, errors.New("the server redirects to " + r.URL.Host)
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "weir")
	if header, _ := r.Context().Value(authorization{}).(string); header != "" {
		r.Header.Set("Authorization", header)
	}
	resp, err := g.c.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{resp.Body, mostBytes}
	return resp, nil
}

// bounded returns an error if a body exceeds its limit.
type bounded struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d MiB: aggregate the query's values", mostBytes>>20)
	}
	return n, err
}

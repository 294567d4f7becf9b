// Package client sends requests to a daemon. It makes sure that a command reaches the daemon that the user
// meant, and authenticates the user only to that daemon.
//
// A remote daemon proves its identity with TLS and receives a token. On this machine, any user may listen
// on a port, possibly without TLS. So a local daemon must first prove that it has the same token, or the
// key in its state directory, and the client signs its request with it (access.Proof). A token is never
// sent unencrypted, and the client does not follow redirects.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/commands"
)

// Answering is the timeout of a response, and MaxAnswer its maximum size in bytes.
const (
	answering = 10 * time.Second
	MaxAnswer = 256 << 20
)

// Options select the daemon and the user. The environment variables WEIR_SERVER and WEIR_TOKEN_FILE replace
// empty fields.
type Options struct {
	Address, TokenFile, CAFile string
	Getenv                     func(string) string
}

// Client sends requests to one daemon.
type Client struct {
	// Address is the daemon's address as the user named it.
	Address string
	// token is sent to daemons that have proved their identity with TLS, and proof is used with daemons on
	// this machine. Both are unset if the daemon requires no token.
	token string
	proof *access.Proof
	// Open says that others can read the connection.
	Open bool
	http *http.Client
	// Patience is the timeout of a response; 0 means Answering. Kind is the content type of the request;
	// empty means JSON.
	Patience time.Duration
	Kind     string
}

// Find returns a client of the daemon that options, a configuration or the environment name.
func Find(o Options, c *config.Config) (Client, error) {
	d := Client{Address: o.Address}
	t := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, ExpectContinueTimeout: 2 * time.Second}
	switch {
	case d.Address != "":
	case c != nil && c.TLS.CertFile != "":
		d.Address = "https://" + config.Reachable(c.Listen)
		if err := pin(t.TLSClientConfig, c.TLS.CertFile); err != nil {
			return d, err
		}
	case c != nil:
		d.Address = "http://" + config.Reachable(c.Listen)
	default:
		d.Address = o.Getenv("WEIR_SERVER")
	}
	if d.Address == "" {
		d.Address = "http://" + config.DefaultListen
	}
	if !strings.Contains(d.Address, "://") {
		d.Address = "http://" + d.Address
	}
	u, err := url.Parse(d.Address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return d, advice.Usage("write it like https://weir.example.com", "--server is not a URL")
	}
	if o.CAFile != "" {
		if err := trust(t.TLSClientConfig, o.CAFile); err != nil {
			return d, err
		}
	}
	here := onThisMachine(u.Hostname())
	d.Open = u.Scheme == "http" && !here
	if !here {
		// A daemon rejects a request from its own machine that comes through a proxy.
		t.Proxy = http.ProxyFromEnvironment
	}
	d.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	err = d.authenticate(o, c, u.Scheme == "https", here)
	return d, err
}

// authenticate sets the token or the proof that the daemon requires.
func (d *Client) authenticate(o Options, c *config.Config, encrypted, here bool) error {
	file := o.TokenFile
	if file == "" {
		file = o.Getenv("WEIR_TOKEN_FILE")
	}
	switch {
	case file != "":
		token, err := access.ReadToken(file)
		switch {
		case err != nil:
			return advice.Hinted(fmt.Errorf("read token: %w", err), "name a file with one of access.tokens in the daemon's configuration")
		case encrypted:
			d.token = token
		case here:
			proof := access.TokenProof(token)
			d.proof = &proof
		default:
			return advice.Usage("write https://", "the token would be sent to %s unencrypted", WithoutUser(d.Address))
		}
	case c != nil && o.Address == "":
		// A user who can read the state directory can read all data of the daemon.
		if proof, ok := access.LocalProof(c.StateDir, LocalUser()); ok {
			d.proof = &proof
		}
	}
	return nil
}

func onThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func trust(t *tls.Config, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read authorities: %w", err)
	}
	if t.RootCAs, err = x509.SystemCertPool(); err != nil {
		t.RootCAs = x509.NewCertPool()
	}
	if !t.RootCAs.AppendCertsFromPEM(text) {
		return advice.Usage("it must have certificates in PEM", "--ca-file %s has no certificate", file)
	}
	return nil
}

// pin trusts only the certificate in a file. A command reaches the configuration's own daemon at its
// address on this machine, which its certificate may not contain.
func pin(t *tls.Config, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read certificate of the daemon: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("read certificate of the daemon: %s has none", file)
	}
	t.InsecureSkipVerify = true //nolint:gosec // the certificate itself is compared below
	t.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
			return errors.New("its certificate is not the one in " + file)
		}
		return nil
	}
	return nil
}

// Ask decodes the daemon's response at path into v.
func (d Client) Ask(ctx context.Context, path string, v any) error {
	body, err := d.Do(ctx, http.MethodGet, path, nil, MaxAnswer)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return d.NotWeir()
	}
	return nil
}

// Post sends a command to the daemon.
func (d Client) Post(ctx context.Context, path string, r gates.Request) (out gates.Answer, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return out, err
	}
	if body, err = d.Do(ctx, http.MethodPost, path, body, 1<<20); err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil || path == commands.SuspendPath && out.Suspension == nil ||
		path == commands.ApprovePath && out.Approval == nil || r.AfterLoss && out.Accepted == nil {
		return out, d.NotWeir()
	}
	return out, nil
}

// Do sends one request, and reads at most most bytes. A daemon on this machine must prove its identity
// before it receives anything, because any user may listen there.
func (d Client) Do(ctx context.Context, method, path string, body []byte, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Patience, answering))
	defer cancel()
	defer d.http.CloseIdleConnections()
	switch {
	case d.token != "":
		return d.send(ctx, method, path, body, most, "Bearer "+d.token)
	case d.proof == nil:
		return d.send(ctx, method, path, body, most, "")
	}
	nonce, hello := d.proof.Hello()
	welcome, err := d.send(ctx, http.MethodGet, access.ProofPath, nil, 1<<10, hello)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimRight(d.Address, "/") + path)
	if err != nil {
		return nil, advice.Usage("write it like https://weir.example.com", "--server is not a URL")
	}
	signed, err := d.proof.Sign(nonce, welcome, method, u.RequestURI(), body)
	if err != nil {
		return nil, advice.Hinted(fmt.Errorf("ask daemon at %s: %w", WithoutUser(d.Address), err), "another program may listen there; check which one, and whether weir run uses this configuration")
	}
	return d.send(ctx, method, path, body, most, signed)
}

// send sends a request. If the daemon returns an error, send returns it.
func (d Client) send(ctx context.Context, method, path string, body []byte, most int64, authorization string) ([]byte, error) {
	shown := WithoutUser(d.Address)
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(d.Address, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, advice.Usage("write it like https://weir.example.com", "--server is not a URL")
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", cmp.Or(d.Kind, "application/json"))
		req.Header.Set(commands.Header, "1")
	}
	if len(body) > 0 && d.Kind != "" {
		req.Header.Set("Expect", "100-continue") // the daemon can refuse before everything is sent
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res, err := d.http.Do(req)
	if err != nil {
		return nil, unreached(shown, err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end below
	answer, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return nil, unreached(shown, err)
	}
	if res.StatusCode == http.StatusOK {
		return answer, nil
	}
	var wrong gates.Fault
	if json.Unmarshal(answer, &wrong) == nil && wrong.Message != "" {
		switch res.StatusCode {
		case http.StatusBadRequest:
			return nil, advice.Hinted(errors.New(wrong.Message), wrong.Hint)
		case http.StatusUnauthorized:
			wrong.Hint = "give a token with --token-file or WEIR_TOKEN_FILE, one of access.tokens in the daemon's configuration"
		}
		return nil, advice.Hinted(fmt.Errorf("ask daemon at %s: %s", shown, wrong.Message), wrong.Hint)
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return nil, advice.Hinted(fmt.Errorf("ask daemon at %s: it redirects", shown), "a proxy may require a login: use the daemon's own address, or an address that the proxy forwards with a token")
	}
	return nil, advice.Hinted(fmt.Errorf("ask daemon at %s: it answers %s", shown, res.Status), "check the daemon's log, and whether weir listens there")
}

// unreached explains why the daemon did not answer.
func unreached(shown string, err error) error {
	var failed *url.Error // it contains the address with the user name
	if errors.As(err, &failed) {
		err = failed.Err
	}
	err = fmt.Errorf("ask daemon at %s: %w", shown, err)
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &unknown):
		return advice.Hinted(err, "name its authority with --ca-file, or the daemon's own configuration with --config")
	case errors.As(err, &record):
		return advice.Hinted(err, "the daemon may have no TLS: write http://")
	case errors.As(err, &dns):
		return advice.Hinted(err, "check --server")
	default:
		return advice.Hinted(err, "start weir run, or name its address with --server")
	}
}

// NotWeir returns an error for a response that does not come from weir's daemon.
func (d Client) NotWeir() error {
	return advice.Hinted(fmt.Errorf("ask daemon at %s: the answer is not from weir", WithoutUser(d.Address)), "check --server")
}

// WithoutUser returns an address for output, without the user name, which readers do not need.
func WithoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "--server"
	}
	u.User, u.RawQuery, u.Path = nil, "", ""
	return u.String()
}

// LocalUser returns the name of the current user on this machine.
func LocalUser() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

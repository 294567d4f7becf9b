package main

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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/commands"
)

// serverFlags say which daemon is asked, and who asks. The environment's WEIR_SERVER
// and WEIR_TOKEN_FILE take their place where they are not given.
type serverFlags struct{ address, tokenFile, caFile string }

func (f *serverFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.address, "server", "", "address of the daemon, such as https://weir.example.com (default: $WEIR_SERVER, else http://"+config.DefaultListen+")")
	c.Flags().StringVar(&f.address, "address", "", "the same as --server")
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the token to show (default: $WEIR_TOKEN_FILE)")
	c.Flags().StringVar(&f.caFile, "ca-file", "", "PEM certificates of authorities to trust beside the system's")
}

// daemonClient asks one daemon.
type daemonClient struct {
	address string
	// token is shown to daemons that TLS has proven, proof to those on this machine;
	// neither where the daemon asks for no token.
	token string
	proof *access.Proof
	// open says that whoever is on the way there reads along.
	open bool
	http *http.Client
	// patience is how long an answer may take, apiTimeout where it is 0; kind is the
	// type of what is sent, JSON where it is empty.
	patience time.Duration
	kind     string
}

// daemonOf finds the daemon that flags, a configuration or the environment name.
func (s surroundings) daemonOf(f serverFlags, c *config.Config) (daemonClient, error) {
	d := daemonClient{address: f.address}
	t := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, ExpectContinueTimeout: 2 * time.Second}
	switch {
	case d.address != "":
	case c != nil && c.TLS.CertFile != "":
		d.address = "https://" + strings.TrimPrefix(reachable("http://"+c.Listen), "http://")
		if err := pin(t.TLSClientConfig, c.TLS.CertFile); err != nil {
			return d, err
		}
	case c != nil:
		d.address = reachable("http://" + c.Listen)
	default:
		d.address = s.getenv("WEIR_SERVER")
	}
	if d.address == "" {
		d.address = "http://" + config.DefaultListen
	}
	if !strings.Contains(d.address, "://") {
		d.address = "http://" + d.address
	}
	u, err := url.Parse(d.address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return d, usage("write it like https://weir.example.com", "--server is no URL")
	}
	if f.caFile != "" {
		if err := trust(t.TLSClientConfig, f.caFile); err != nil {
			return d, err
		}
	}
	here := onThisMachine(u.Hostname())
	d.open = u.Scheme == "http" && !here
	if !here {
		// What comes to this machine through a proxy is refused.
		t.Proxy = http.ProxyFromEnvironment
	}
	d.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	file := f.tokenFile
	if file == "" {
		file = s.getenv("WEIR_TOKEN_FILE")
	}
	switch {
	case file != "":
		token, err := access.ReadToken(file)
		switch {
		case err != nil:
			return d, hinted(fmt.Errorf("read token: %w", err), "name a file with one of access.tokens in the daemon's configuration")
		case u.Scheme == "https":
			d.token = token
		case here:
			proof := access.TokenProof(token)
			d.proof = &proof
		default:
			return d, usage("write https://", "the token would go to %s unencrypted", withoutUser(d.address))
		}
	case c != nil && f.address == "":
		// A user who can read the state directory can read all that the daemon holds.
		if proof, ok := access.LocalProof(c.StateDir, localUser()); ok {
			d.proof = &proof
		}
	}
	return d, nil
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
		return usage("it has certificates in PEM", "--ca-file %s holds no certificate", file)
	}
	return nil
}

// pin trusts the certificate in a file and no other: the configuration's own daemon
// is asked by its address on this machine, which its certificate need not have.
func pin(t *tls.Config, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read certificate of the daemon: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("read certificate of the daemon: %s holds none", file)
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

// ask reads what the daemon answers at path into v.
func (d daemonClient) ask(ctx context.Context, path string, v any) error {
	body, err := d.do(ctx, http.MethodGet, path, nil, maxAnswer)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return notWeir(d.address)
	}
	return nil
}

// post gives the daemon a command.
func (d daemonClient) post(ctx context.Context, path string, r gates.Request) (out gates.Answer, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return out, err
	}
	if body, err = d.do(ctx, http.MethodPost, path, body, 1<<20); err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil || path == commands.SuspendPath && out.Suspension == nil ||
		path == commands.ApprovePath && out.Approval == nil || r.AcceptLostState && out.Accepted == nil {
		return out, notWeir(d.address)
	}
	return out, nil
}

// do asks once. Before a daemon on this machine learns anything it has to prove that
// it is the one that was meant: any user may listen there.
func (d daemonClient) do(ctx context.Context, method, path string, body []byte, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.patience, apiTimeout))
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
	u, err := url.Parse(strings.TrimRight(d.address, "/") + path)
	if err != nil {
		return nil, usage("write it like https://weir.example.com", "--server is no URL")
	}
	signed, err := d.proof.Sign(nonce, welcome, method, u.RequestURI(), body)
	if err != nil {
		return nil, hinted(fmt.Errorf("ask daemon at %s: %w", withoutUser(d.address), err), "another program may listen there: look who does, and whether weir run does with this configuration")
	}
	return d.send(ctx, method, path, body, most, signed)
}

// send asks. What the daemon says is wrong becomes the error.
func (d daemonClient) send(ctx context.Context, method, path string, body []byte, most int64, authorization string) ([]byte, error) {
	shown := withoutUser(d.address)
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(d.address, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, usage("write it like https://weir.example.com", "--server is no URL")
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", cmp.Or(d.kind, "application/json"))
		req.Header.Set(commands.Header, "1")
	}
	if len(body) > 0 && d.kind != "" {
		req.Header.Set("Expect", "100-continue") // a refusal is heard before all of it was sent
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
			return nil, hinted(errors.New(wrong.Message), wrong.Hint)
		case http.StatusUnauthorized:
			wrong.Hint = "give a token with --token-file or WEIR_TOKEN_FILE, one of access.tokens in the daemon's configuration"
		}
		return nil, hinted(fmt.Errorf("ask daemon at %s: %s", shown, wrong.Message), wrong.Hint)
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return nil, hinted(fmt.Errorf("ask daemon at %s: it leads elsewhere", shown), "a proxy may want a login: name the daemon's own address, or one that the proxy passes on with a token")
	}
	return nil, hinted(fmt.Errorf("ask daemon at %s: it answers %s", shown, res.Status), "look at the daemon's log, and whether weir listens there")
}

// unreached says why there is no answer.
func unreached(shown string, err error) error {
	var failed *url.Error // it repeats the address with the user in it
	if errors.As(err, &failed) {
		err = failed.Err
	}
	err = fmt.Errorf("ask daemon at %s: %w", shown, err)
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &unknown):
		return hinted(err, "name its authority with --ca-file, or the daemon's own configuration with --config")
	case errors.As(err, &record):
		return hinted(err, "the daemon may have no TLS: write http://")
	case errors.As(err, &dns):
		return hinted(err, "check --server")
	default:
		return hinted(err, "start weir run, or say with --server where it listens")
	}
}

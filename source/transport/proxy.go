package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/proxy"

	"github.com/weir-gitops/weir/source/fault"
)

// ProxyAuth holds the credentials for a proxy.
type ProxyAuth struct {
	// Username is the user of the proxy.
	Username string `yaml:"username"`
	// PasswordFile holds the password of that user. weir reads it at each use.
	PasswordFile string `yaml:"passwordFile"`
}

// proxySettings define how connections are made. The zero value means without a proxy.
type proxySettings struct {
	url  *url.URL
	auth ProxyAuth
}

// newProxySettings checks the configuration of a proxy. Without one, the result has no URL.
func newProxySettings(cfg Settings) (proxySettings, error) {
	p := proxySettings{auth: cfg.ProxyAuth}
	if cfg.Proxy == "" {
		if p.auth != (ProxyAuth{}) {
			return p, errors.New("proxyAuth needs proxy")
		}
		return p, nil
	}
	u, err := url.Parse(cfg.Proxy)
	if err != nil || u.Host == "" {
		return p, errors.New("proxy: give a URL such as http://proxy.example:3128")
	}
	switch {
	case u.User != nil:
		return p, errors.New("proxy: the URL contains credentials, which must not be in the configuration; give proxyAuth with username and passwordFile")
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		return p, fmt.Errorf("proxy: the scheme %q is unknown: it must be http, https or socks5", fault.Plain(u.Scheme))
	case p.auth != (ProxyAuth{}) && (p.auth.Username == "" || p.auth.PasswordFile == ""):
		return p, errors.New("proxyAuth needs username and passwordFile")
	}
	p.url = u
	return p, nil
}

// current returns the proxy's URL with the current credentials.
func (p proxySettings) current() (*url.URL, error) {
	if p.auth.PasswordFile == "" {
		return p.url, nil
	}
	secret, err := readSecret(p.auth.PasswordFile)
	if err != nil {
		return nil, fault.New(fault.AuthFailed, "proxyAuth.passwordFile: %v", err)
	}
	u := *p.url
	u.User = url.UserPassword(p.auth.Username, secret)
	return &u, nil
}

// dial connects to addr. It does not use the environment's proxies, which are for HTTP.
func (p proxySettings) dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	direct := &net.Dialer{}
	if p.url == nil {
		return direct.DialContext(ctx, "tcp", addr)
	}
	u, err := p.current()
	if err != nil {
		return nil, err
	}
	if u.Scheme == "socks5" {
		via, err := proxy.FromURL(u, direct)
		if err != nil {
			return nil, errors.New("proxy: the URL cannot be used")
		}
		return via.(proxy.ContextDialer).DialContext(ctx, "tcp", addr)
	}
	return tunnel(ctx, direct, u, addr)
}

// maxProxyHead bounds the header of a proxy's response.
const maxProxyHead = 64 << 10

// tunnel requests a connection to addr from an HTTP proxy.
func tunnel(ctx context.Context, direct *net.Dialer, u *url.URL, addr string) (_ net.Conn, err error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	conn, err := direct.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close() // the connection failed
		}
	}()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if u.Scheme == "https" {
		secured := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secured
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: http.Header{}}
	if u.User != nil {
		secret, _ := u.User.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+secret)))
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	// An SSH server may send data first, so the reader may already have read bytes of the connection.
	// bufferedConn returns them.
	head := &io.LimitedReader{R: conn, N: maxProxyHead}
	r := bufio.NewReader(head)
	resp, err := http.ReadResponse(r, req) //nolint:bodyclose // The tunnel follows the head of this answer.
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		return nil, proxyAuthRequired(u.Host)
	case resp.StatusCode != http.StatusOK:
		return nil, fault.New(fault.Unreachable, "the proxy %s answers %d %s", fault.Plain(u.Host), resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	head.N = math.MaxInt64
	return &bufferedConn{Conn: conn, r: r}, nil
}

func proxyAuthRequired(host string) error {
	return fault.New(fault.AuthFailed, "the proxy %s requires credentials, or does not accept these (407); check proxyAuth", fault.Plain(host))
}

// bufferedConn returns the bytes that were read in advance first.
type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

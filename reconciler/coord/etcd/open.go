package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Config configures the connection to etcd.
type Config struct {
	Instance string
	// Endpoints are host:port, or URLs with http, https or unix.
	Endpoints []string
	// CertFile and KeyFile are this member's certificate and key. CAFile is the CA certificate for etcd's
	// certificates; empty means the system's CAs.
	CertFile, KeyFile, CAFile string
	// UsernameFile and PasswordFile contain one line each.
	UsernameFile, PasswordFile string
}

const (
	// dialTimeout bounds an attempt to connect. A connection without traffic for aliveInterval and
	// aliveTimeout together is closed, so that the client tries another endpoint within a renewal.
	dialTimeout   = 2 * time.Second
	aliveInterval = 2 * time.Second
	aliveTimeout  = 2 * time.Second
)

// Open connects. If etcd rejects this member, the error says what to do. Open does not wait for an etcd that
// is unreachable.
func Open(ctx context.Context, c Config) (*Store, error) {
	client := clientv3.Config{
		Endpoints: c.Endpoints, DialTimeout: dialTimeout, DialKeepAliveTime: aliveInterval, DialKeepAliveTimeout: aliveTimeout,
		PermitWithoutStream: true, Logger: zap.NewNop(),
		// Try each endpoint only twice, because retries until the deadline would hide the cause.
		MaxUnaryRetries: uint(2 * len(c.Endpoints)),
	}
	if len(c.Endpoints) == 0 {
		return nil, errors.New("etcd: no endpoints are given")
	}
	var err error
	if client.TLS, err = c.tls(); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	for file, into := range map[string]*string{c.UsernameFile: &client.Username, c.PasswordFile: &client.Password} {
		if file == "" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("etcd: %w", err)
		}
		*into = strings.TrimRight(string(data), "\r\n")
	}
	connected, err := clientv3.New(client)
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", strings.Join(c.Endpoints, ", "), err)
	}
	s := New(connected, c.Instance)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := s.poll(ctx); err != nil && refuses(err) {
		return nil, errors.Join(fmt.Errorf("etcd at %s: %w", strings.Join(c.Endpoints, ", "), err), s.Close())
	}
	return s, nil
}

// tls returns nil if no file is configured and no endpoint needs TLS.
func (c Config) tls() (*tls.Config, error) {
	secure := strings.HasPrefix(strings.Join(c.Endpoints, ""), "https://")
	if c.CertFile == "" && c.CAFile == "" && !secure {
		return nil, nil //nolint:nilnil // a client's configuration is nil without TLS
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("certFile and keyFile go together")
	}
	if c.CertFile != "" {
		// The certificate is read for each connection, because certificates are renewed in place.
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
			return &pair, err
		}
		if _, err := conf.GetClientCertificate(nil); err != nil {
			return nil, err
		}
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, err
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", c.CAFile)
		}
	}
	return conf, nil
}

// refusals lists answers that a retry does not change, and what to do.
var refusals = []struct {
	err  error
	todo string
}{
	{rpctypes.ErrPermissionDenied, "give the user a role that may read and write keys with prefix %s (etcdctl role grant-permission ROLE --prefix=true readwrite %[1]s)"},
	{rpctypes.ErrAuthFailed, "see usernameFile and passwordFile"},
	{rpctypes.ErrUserEmpty, "etcd asks for a user: give usernameFile and passwordFile"},
	{rpctypes.ErrAuthNotEnabled, "etcd has no users: leave usernameFile and passwordFile out"},
	{rpctypes.ErrRequestTooLarge, "etcd's --max-request-bytes must be 1.5 MiB, its default, or more"},
	{rpctypes.ErrTooManyOps, "etcd's --max-txn-ops must be 128, its default, or more"},
	{rpctypes.ErrNoSpace, "etcd's quota (--quota-backend-bytes) is used up, and it takes no writes: compact and defragment it, then etcdctl alarm disarm"},
	{rpctypes.ErrCorrupt, "etcd found its data corrupt, and takes no writes: repair the member that etcdctl alarm list names, then run etcdctl alarm disarm"},
	{rpctypes.ErrGRPCNotSupportedForLearner, "the endpoint is a learner, which only copies: give endpoints of voting members"},
}

// absences lists answers of etcd members that cannot continue by themselves, and what to do. They may
// disappear.
var absences = []struct {
	err  error
	todo string
}{
	{rpctypes.ErrNoLeader, "the member of etcd that answers has no leader, for example because most members are gone: start them again (etcdctl endpoint status)"},
	{rpctypes.ErrTimeout, "etcd has no quorum, or is too slow: see etcdctl endpoint status"},
}

// refuses reports whether an error is one of refusals.
func refuses(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return true
		}
	}
	return false
}

// explain adds to an error what can be done about it.
func (s *Store) explain(err error) error {
	err = rpctypes.Error(err)
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			todo := r.todo
			if strings.Contains(todo, "%") {
				todo = fmt.Sprintf(todo, s.keys.prefix)
			}
			return fmt.Errorf("%w: %s", err, todo)
		}
	}
	for _, a := range absences {
		if errors.Is(err, a.err) {
			return &coord.AwayError{Err: fmt.Errorf("%w: %s", err, a.todo)}
		}
	}
	return &coord.AwayError{Err: fmt.Errorf("etcd: %w", err)}
}

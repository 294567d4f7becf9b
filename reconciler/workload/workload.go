// Package workload is a client of the Kubernetes cluster that a target's machines join. weir keeps join
// tokens in its Secrets, reads Nodes to see which machines have joined, and evicts Pods from machines that
// end. The package uses client-go, with only the types of the core and policy APIs.
//
// It protects a process that may write to AWS. Nothing in a kubeconfig runs code: Load lists what it
// rejects. The package builds its own transport, because client-go's transports are never closed and contain
// plugins. A guard on the transport bounds answers, follows no redirects and reads the token file for each
// request. client-go's typed clients retry some requests and register every API group, so the package uses
// its REST client directly, once for each call. No error contains a credential or the value of a Secret.
package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
)

// Limits of a request.
const (
	// timeout bounds a request, including reading its answer.
	timeout = 15 * time.Second
	// pageSize is the number of objects in a page of a list.
	pageSize = 500
	// bodyLimit bounds an answer, in bytes. A page of nodes with long lists of images has a few MiB.
	bodyLimit = 32 << 20
)

// Dial opens the connections of every Cluster that is opened later. Tests replace it to simulate the
// network.
var Dial = (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext

// Cluster is a workload cluster. It is safe for concurrent use.
type Cluster struct {
	server    *url.URL
	ca        []byte
	transport *http.Transport
	rest      *rest.RESTClient
	// token is the bearer token. If tokenFile is set, its content at the time of a request is used instead.
	token     string
	tokenFile string
	// hidden lists the credentials in the kubeconfig.
	hidden []string
}

// Open reads the kubeconfig file and returns a client of the cluster in its current context. It sends
// nothing. Its error is one of Load's, or names the part of the credentials that cannot be used.
func Open(file string) (*Cluster, error) {
	c, err := Load(file)
	if err != nil {
		return nil, err
	}
	return c.Open()
}

// Open returns a client with the kubeconfig's server and credentials.
func (k *Kubeconfig) Open() (*Cluster, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: k.serverName}
	if len(k.ca) > 0 {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(k.ca) {
			return nil, k.fault("the cluster's certificate authority has no PEM certificate", "write the CA's certificate in PEM, in base64")
		}
	}
	if len(k.certificate) > 0 {
		pair, err := tls.X509KeyPair(k.certificate, k.key)
		if err != nil { // the error of crypto/tls quotes neither
			return nil, k.fault("the user's client certificate and key cannot be used: "+err.Error(), "write both in PEM, in base64, the key without a passphrase")
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: Dial, TLSClientConfig: conf, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: timeout,
	}
	if k.proxy != nil {
		t.Proxy = http.ProxyURL(k.proxy)
	}
	c := &Cluster{server: k.server, ca: k.ca, transport: t, token: k.token, tokenFile: k.tokenFile, hidden: k.hidden()}
	var err error
	c.rest, err = rest.RESTClientForConfigAndClient(&rest.Config{
		Host: k.server.String(), APIPath: "/api", UserAgent: "weir", QPS: -1, WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: codecs.WithoutConversion(), ContentType: runtime.ContentTypeJSON},
	}, &http.Client{Transport: guard{c}, Timeout: timeout})
	if err != nil {
		return nil, k.fault("the cluster's server is not the address of an API server", "write it like https://api.example.org:6443")
	}
	return c, nil
}

// Only the types of the core and policy APIs are registered.
var (
	scheme = func() *runtime.Scheme {
		s := runtime.NewScheme()
		utilruntime.Must(corev1.AddToScheme(s))
		utilruntime.Must(policyv1.AddToScheme(s))
		return s
	}()
	codecs     = serializer.NewCodecFactory(scheme)
	parameters = runtime.NewParameterCodec(scheme)
)

// Server returns the address of the API server in the kubeconfig.
func (c *Cluster) Server() string { return c.server.String() }

// CA returns the certificate authority of the kubeconfig in PEM. It is empty if the system's CAs are
// trusted.
func (c *Cluster) CA() []byte { return c.ca }

// Credentials returns the secret values with which the client authenticates, to hide them in everything that
// is shown.
func (c *Cluster) Credentials() []string {
	token, err := c.bearer()
	if err != nil {
		token = c.token
	}
	return append(slices.Clone(c.hidden), token)
}

// Close closes idle connections.
func (c *Cluster) Close() { c.transport.CloseIdleConnections() }

// bearer returns the token to send, or an empty string.
func (c *Cluster) bearer() (string, error) {
	if c.tokenFile == "" {
		return c.token, nil
	}
	// The file is read for every request, because a projected token is valid for an hour.
	text, err := readFile(c.tokenFile)
	if err != nil {
		return "", &Error{Kind: Unauthorized, Message: fmt.Sprintf("read the token file of the kubeconfig: %v", err)}
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \r\n\t") {
		return "", &Error{Kind: Unauthorized, Message: "the token file " + c.tokenFile + " of the kubeconfig has no token"}
	}
	return token, nil
}

// Kind classifies a failed request.
type Kind string

// Kinds of errors.
const (
	// Unauthorized: the server does not know the caller, or the credentials have expired.
	Unauthorized Kind = "unauthorized"
	// Forbidden: the caller has no permission.
	Forbidden Kind = "forbidden"
	NotFound  Kind = "not-found"
	// Conflict: the object exists, or is another object than the expected one.
	Conflict Kind = "conflict"
	// Invalid: the server refuses the request, however often it is sent.
	Invalid Kind = "invalid"
	// Transient: the failure may pass, such as no connection, no answer in time, or an overloaded or broken
	// server.
	Transient Kind = "transient"
)

// Error is a failed request.
type Error struct {
	Kind Kind
	// Status is the HTTP status, or 0 without an answer.
	Status int
	// Verb and Resource describe the request, such as "create" and "secrets in kube-system".
	Verb, Resource string
	Message        string
	err            error
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Message
	if e.Verb != "" {
		text = e.Verb + " " + e.Resource + ": " + text
	}
	return text
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.err }

// KindOf returns the kind of a failed request. It is empty for nil and for other errors.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// transportError converts the failure of a request without an answer. The URL in the error of net/http
// contains no credentials, because the server's address contains none.
func transportError(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		return &Error{Kind: Transient, Message: ctx.Err().Error(), err: ctx.Err()}
	}
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err
	}
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	if errors.As(err, &unknown) || errors.As(err, &name) {
		return &Error{Kind: Unauthorized, Message: "the server's certificate is not trusted: " + err.Error(), err: err}
	}
	return &Error{Kind: Transient, Message: err.Error(), err: err}
}

package workload

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigLimit bounds the size of a kubeconfig and of each file that it names, in bytes.
const kubeconfigLimit = 1 << 20

// Kubeconfig is the checked current context of a kubeconfig.
type Kubeconfig struct {
	file             string
	server           *url.URL
	serverName       string
	proxy            *url.URL
	ca               []byte
	certificate, key []byte
	token, tokenFile string
}

// BadKubeconfig is an error in a kubeconfig, with what to do. It never quotes the kubeconfig.
type BadKubeconfig struct {
	File            string
	Summary, Advice string
}

// Error implements error.
func (e *BadKubeconfig) Error() string {
	return fmt.Sprintf("kubeconfig %s: %s: %s", e.File, e.Summary, e.Advice)
}

func (k *Kubeconfig) fault(summary, advice string) *BadKubeconfig {
	return &BadKubeconfig{File: k.file, Summary: summary, Advice: advice}
}

// Load reads a kubeconfig file. It accepts client certificates, tokens and token files. It rejects exec
// plugins, auth providers, passwords, impersonation and unverified connections: a configuration must not run
// code, and credentials must not go to an unverified server. Its error is a *BadKubeconfig, or an error of
// reading the file.
func Load(file string) (*Kubeconfig, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return Parse(file, text)
}

// Parse is like Load, for the text of a file.
func Parse(file string, text []byte) (*Kubeconfig, error) {
	k := &Kubeconfig{file: file}
	raw, err := clientcmd.Load(text)
	if err != nil {
		// The decoder's error quotes the invalid text.
		return nil, k.fault("it is not the YAML of a kubeconfig: its kind is not Config, or data in it is not base64", "write it with kubectl config view --raw --minify --flatten")
	}
	context := raw.Contexts[raw.CurrentContext]
	if context == nil {
		return nil, k.fault("its current-context is missing or names no context", "choose one with kubectl config use-context")
	}
	cluster, user := raw.Clusters[context.Cluster], raw.AuthInfos[context.AuthInfo]
	switch {
	case cluster == nil:
		return nil, k.fault("the current context names a cluster that is not there", "correct contexts or clusters")
	case user == nil:
		return nil, k.fault("the current context names a user that is not there", "correct contexts or users")
	}
	if err := k.takeCluster(cluster); err != nil {
		return nil, err
	}
	if err := k.takeUser(user); err != nil {
		return nil, err
	}
	return k, nil
}

// ID returns a text that changes with anything that a client depends on.
func (k *Kubeconfig) ID() string {
	h := sha256.New()
	proxy := ""
	if k.proxy != nil {
		proxy = k.proxy.String()
	}
	fmt.Fprintf(h, "%q", []string{k.server.String(), k.serverName, proxy, string(k.ca), string(k.certificate), string(k.key), k.token, k.tokenFile})
	return hex.EncodeToString(h.Sum(nil))
}

// hidden returns the credentials in the kubeconfig.
func (k *Kubeconfig) hidden() []string {
	out := []string{k.token, string(k.key), base64.StdEncoding.EncodeToString(k.key)}
	if k.proxy != nil {
		if password, ok := k.proxy.User.Password(); ok {
			out = append(out, password)
		}
	}
	return out
}

// takeCluster takes the server, the proxy and the certificate authority from a cluster entry. It rejects
// connections without TLS, and without verification.
func (k *Kubeconfig) takeCluster(c *api.Cluster) error {
	u, err := url.Parse(c.Server)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return k.fault("the cluster's server is not the address of an API server", "write it like https://api.example.org:6443")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return k.fault("the cluster's server is reached without TLS", "write https://, so that credentials are not sent in the clear")
	case c.InsecureSkipTLSVerify:
		return k.fault("insecure-skip-tls-verify is set", "remove it and give certificate-authority-data: join tokens must not go to an unknown server")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	k.server, k.serverName = u, c.TLSServerName
	if c.ProxyURL != "" {
		p, err := url.Parse(c.ProxyURL)
		if err != nil || p.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, p.Scheme) {
			return k.fault("proxy-url is not an http, https or socks5 URL", "write it like http://proxy.example.org:3128")
		}
		k.proxy = p
	}
	k.ca, err = k.data("certificate-authority", c.CertificateAuthorityData, c.CertificateAuthority)
	return err
}

// takeUser takes the credentials from a user entry. It rejects plugins, passwords and impersonation.
func (k *Kubeconfig) takeUser(u *api.AuthInfo) error {
	const advice = "give a client certificate, a token or a token file of a service account that may manage Secrets in kube-system and list nodes"
	switch {
	case u.Exec != nil:
		return k.fault("the user has an exec plugin, and weir runs no program of a kubeconfig", advice)
	case u.AuthProvider != nil:
		return k.fault("the user has an auth-provider, which weir does not run", advice)
	case u.Username != "" || u.Password != "":
		return k.fault("the user has a password, which API servers do not take any more", advice)
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups)+len(u.ImpersonateUserExtra) > 0:
		return k.fault("the user impersonates another, which is not supported", advice)
	}
	var errs [2]error
	k.certificate, errs[0] = k.data("client-certificate", u.ClientCertificateData, u.ClientCertificate)
	k.key, errs[1] = k.data("client-key", u.ClientKeyData, u.ClientKey)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if (len(k.certificate) > 0) != (len(k.key) > 0) {
		return k.fault("the user has only a client certificate, or only a key", "give both")
	}
	k.token = u.Token
	if strings.ContainsAny(k.token, " \r\n\t") {
		return k.fault("the user's token has white space in it", "write it in one line")
	}
	if u.TokenFile != "" {
		// As in kubectl, the file wins over the token.
		k.token, k.tokenFile = "", k.relative(u.TokenFile)
	}
	if len(k.certificate) == 0 && k.token == "" && k.tokenFile == "" {
		return k.fault("the user has no credentials", advice)
	}
	return nil
}

// data returns the inline content of a field, or the content of the file that its sibling names.
func (k *Kubeconfig) data(name string, inline []byte, file string) ([]byte, error) {
	if len(inline) > 0 { // wins over the file, as in kubectl
		return inline, nil
	}
	if file == "" {
		return nil, nil
	}
	out, err := readFile(k.relative(file))
	if err != nil {
		return nil, k.fault(name+" cannot be read: "+err.Error(), "correct the path, or write the data into the kubeconfig")
	}
	return out, nil
}

// relative resolves a path relative to the kubeconfig's directory, as kubectl does.
func (k *Kubeconfig) relative(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(k.file), path)
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > kubeconfigLimit {
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("not a regular file of at most 1 MiB")}
	}
	return os.ReadFile(name)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

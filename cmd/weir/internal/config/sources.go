package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/transport"
)

// Source is a Git repository that weir follows.
type Source struct {
	// Name is the name of the source.
	Name string `yaml:"name"`
	// URL is http(s)://…, ssh://user@host/path, user@host:path, file://… or a path. A relative path
	// starts at the configuration file's directory.
	URL string     `yaml:"url"`
	Ref source.Ref `yaml:"ref"`
	// Interval is the time between polls.
	Interval time.Duration `yaml:"interval"`
	transport.Settings
	// ImageUpdates lets weir propose newer images for pools by pull requests.
	ImageUpdates ImageUpdates `yaml:"imageUpdates"`
	// Verify defines which signatures a revision needs. weir does not apply a revision without
	// them, and keeps the last applied one. The keys are files on this machine, not in the
	// repository, because a commit must not choose who may sign it.
	Verify signature.Policy `yaml:"verify"`
}

// SecretFiles returns the files of a source whose whole content is secret.
func (s Source) SecretFiles() []string {
	return present(s.Auth.TokenFile, s.Auth.PasswordFile, s.Auth.BearerTokenFile, s.Auth.PassphraseFile, s.ProxyAuth.PasswordFile)
}

// KeyFiles returns the files of a source with private keys.
func (s Source) KeyFiles() []string {
	return present(s.Auth.SSHKeyFile, s.Auth.GitHubApp.PrivateKeyFile, s.ClientCert.KeyFile)
}

// WatchedFiles returns the files that every check of the source reads again, so that a change of a file
// triggers a check.
func (s Source) WatchedFiles() []string {
	a := s.Auth
	return append(append(s.SecretFiles(), present(a.SSHKeyFile, a.KnownHostsFile, a.GitHubApp.PrivateKeyFile, s.Verify.SSH.AllowedSignersFile)...), s.Verify.PGP.KeyFiles...)
}

// ConnectionFiles returns the files that are needed for a connection. New connections use their changed
// content.
func (s Source) ConnectionFiles() []string {
	return present(s.CAFile, s.ClientCert.CertFile, s.ClientCert.KeyFile)
}

func present(files ...string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return f == "" })
}

// setDefaults sets the defaults of a source and makes its paths absolute.
func (s *Source) setDefaults(base string) {
	s.Interval = cmp.Or(s.Interval, defaultSourceInterval)
	if s.Verify.HasKeys() {
		s.Verify.Mode = cmp.Or(s.Verify.Mode, signature.Commit)
	}
	a := &s.Auth
	targetspec.Absolute(base, &a.TokenFile, &a.PasswordFile, &a.BearerTokenFile, &a.SSHKeyFile, &a.PassphraseFile, &a.KnownHostsFile, &a.GitHubApp.PrivateKeyFile,
		&s.CAFile, &s.ClientCert.CertFile, &s.ClientCert.KeyFile, &s.ProxyAuth.PasswordFile, &s.Verify.SSH.AllowedSignersFile)
	for i := range s.Verify.PGP.KeyFiles {
		targetspec.Absolute(base, &s.Verify.PGP.KeyFiles[i])
	}
	if isPath(s.URL) {
		targetspec.Absolute(base, &s.URL)
	}
}

func (v *validator) source(at string, s *Source) {
	if err := s.Ref.Validate(); err != nil {
		v.found.fault(at+".ref", "bad-value", "", "%s", strings.TrimPrefix(err.Error(), "ref: "))
	}
	v.verify(at+".verify", s)
	v.imageUpdates(at+".imageUpdates", s)
	v.checkConnection(at, s)
}

// checkConnection checks that credentials, certificates and proxy match the url.
func (v *validator) checkConnection(at string, s *Source) {
	scheme, _ := transport.SchemeOf(s.URL) // an error was already reported
	v.credentials(at+".auth", scheme, s.Auth)
	if c := s.ClientCert; (c.CertFile == "") != (c.KeyFile == "") {
		v.found.fault(at+".clientCert", "missing-key", "", "certFile and keyFile go together")
	}
	switch p := s.ProxyAuth; {
	case p == transport.ProxyAuth{}:
	case s.Proxy == "":
		v.found.fault(at+".proxyAuth", "bad-value", "", "there is no proxy")
	case p.Username == "" || p.PasswordFile == "":
		v.found.fault(at+".proxyAuth", "missing-key", "", "username and passwordFile are required")
	}
	if (scheme == transport.SchemeLocal || scheme == transport.SchemeSSH) && (s.CAFile != "" || s.ClientCert != (transport.ClientCert{})) {
		v.found.fault(at, "bad-value", "", "caFile and clientCert are for https")
	}
}

// credentials checks that credentials match the scheme of the url, and each other.
func (v *validator) credentials(at string, scheme transport.Scheme, a transport.Auth) {
	ways := present(a.TokenFile, a.PasswordFile, a.BearerTokenFile, a.GitHubApp.AppID+a.GitHubApp.PrivateKeyFile)
	ssh := present(a.SSHKeyFile, a.KnownHostsFile, a.PassphraseFile)
	switch {
	case scheme == transport.SchemeLocal && (len(ways)+len(ssh) > 0 || a.Username != ""):
		v.found.fault(at, "bad-value", "", "a repository on this machine is read as it is, without credentials")
	case scheme == transport.SchemeSSH && (len(ways) > 0 || a.Username != ""):
		v.found.fault(at, "bad-value", "give sshKeyFile and knownHostsFile; the user name is part of the url", "tokens and passwords are for https")
	case scheme == transport.SchemeSSH:
		if a.SSHKeyFile == "" {
			v.found.fault(at+".sshKeyFile", "missing-key", "neither an agent nor ~/.ssh is used", "a private key is required over SSH")
		}
		if a.KnownHostsFile == "" {
			v.found.fault(at+".knownHostsFile", "missing-key", "ssh-keyscan HOST prints what to put there, to be compared with what the server's operator publishes", "the server's host keys are required over SSH")
		}
	case len(ssh) > 0 && scheme == transport.SchemeHTTP:
		v.found.fault(at, "bad-value", "", "sshKeyFile, passphraseFile and knownHostsFile are for ssh urls")
	case len(ways) > 1:
		v.found.fault(at, "bad-value", "", "give tokenFile, or username with passwordFile, or bearerTokenFile, or githubApp")
	}
	if a.PasswordFile != "" && a.Username == "" {
		v.found.fault(at, "missing-key", "", "passwordFile needs username")
	}
	if g := a.GitHubApp; g != (transport.GitHubApp{}) && (g.AppID == "" || g.PrivateKeyFile == "") {
		v.found.fault(at+".githubApp", "missing-key", "the App's settings page shows the app ID and generates the private key", "appID and privateKeyFile are required")
	}
}

func (v *validator) verify(at string, s *Source) {
	wrong, _ := ruleOf("sources[].verify.mode").fault(string(s.Verify.Mode))
	switch err := s.Verify.Validate(); {
	case wrong != "":
		// It was already reported, or no signature is required.
	case err != nil:
		v.found.fault(at, "bad-value", "", "%s", strings.TrimPrefix(err.Error(), "verify "))
	case s.Verify.Mode == signature.Tag && s.Ref.Tag == "" && s.Ref.SemVer == "" && !strings.HasPrefix(s.Ref.Name, "refs/tags/"):
		v.found.fault(at+".mode", "bad-value", "", "tag needs a ref that names one: tag, semver, or name with refs/tags/")
	}
}

// forgeToken checks the origin of a forge's token: its own file, or the GitHub App of its source, which
// must be on the same host.
func (v *validator) forgeToken(at string, f *Forge) {
	if f.TokenFile != "" {
		return
	}
	const required = "a file with an access token is required"
	s := v.config.sourceOf(f.Source)
	if !f.Profile().Apps || s == nil || s.Auth.GitHubApp == (transport.GitHubApp{}) {
		v.found.fault(at+".tokenFile", "missing-key", "", required)
		return
	}
	own, err := url.Parse(f.URL)
	of, sourceErr := url.Parse(s.URL)
	if err != nil || sourceErr != nil || !strings.EqualFold(own.Host, of.Host) || !strings.EqualFold(trimRepository(own.Path), trimRepository(of.Path)) {
		v.found.fault(at+".tokenFile", "missing-key", "the GitHub App of the source gives access to the source's own repository only", required)
	}
}

func trimRepository(p string) string { return strings.TrimSuffix(strings.Trim(p, "/"), ".git") }

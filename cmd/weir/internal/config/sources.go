package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/target"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/transport"
)

// Source is a Git repository that is followed.
type Source struct {
	Name string `yaml:"name"`
	// URL is http(s)://…, ssh://user@host/path, user@host:path, file://… or a
	// path; a relative one is below the configuration file's directory.
	URL string `yaml:"url"`
	Ref Ref    `yaml:"ref"`
	// Interval is the time between polls.
	Interval time.Duration `yaml:"interval"`
	Auth     Auth          `yaml:"auth"`
	// CAFile holds PEM certificates of authorities that are trusted beside the system's.
	CAFile string `yaml:"caFile"`
	// ClientCert is shown to servers that ask for a certificate.
	ClientCert ClientCert `yaml:"clientCert"`
	// Proxy is an http, https or socks5 URL without credentials. Without it the
	// environment decides, and over SSH there is none.
	Proxy     string    `yaml:"proxy"`
	ProxyAuth ProxyAuth `yaml:"proxyAuth"`
	Verify    Verify    `yaml:"verify"`
}

// Ref is what is followed: at most one field is set, none means the default
// branch, whatever a work tree on this machine has checked out.
type Ref struct {
	Branch string `yaml:"branch"`
	Tag    string `yaml:"tag"`
	// SemVer is a range of versions, such as ">=1.2.0 <2.0.0": of the tags that
	// are a version, with a leading v or not, the highest in the range counts. A
	// pre-release counts only where the range names one. Tags of equal versions
	// differ in build metadata: the youngest commit counts.
	SemVer string `yaml:"semver"`
	// Commit is a full object name of 40 hex digits.
	Commit string `yaml:"commit"`
	// Name is a ref in full, such as refs/merge-requests/1/head.
	Name string `yaml:"name"`
}

// Auth names the files that hold a source's credentials. They are read at each
// use, so that a new value is taken at once.
type Auth struct {
	// TokenFile holds an access token, sent as a password.
	TokenFile string `yaml:"tokenFile"`
	// Username goes with passwordFile, or with tokenFile where the forge wants a certain one.
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"passwordFile"`
	// BearerTokenFile holds a token that is sent in a Bearer header.
	BearerTokenFile string `yaml:"bearerTokenFile"`
	// SSHKeyFile holds a private key in OpenSSH's form. Neither an agent nor
	// ~/.ssh is used.
	SSHKeyFile string `yaml:"sshKeyFile"`
	// PassphraseFile holds what decrypts the key in sshKeyFile.
	PassphraseFile string `yaml:"passphraseFile"`
	// KnownHostsFile holds the host keys that are trusted, as ssh-keyscan prints
	// them. It is required over SSH.
	KnownHostsFile string    `yaml:"knownHostsFile"`
	GitHubApp      GitHubApp `yaml:"githubApp"`
}

// GitHubApp is an App that is installed on the repository. Its tokens serve Git,
// and commit statuses where the forge has no tokenFile.
type GitHubApp struct {
	// AppID is the App's number or its client id.
	AppID string `yaml:"appID"`
	// InstallationID is found by the repository where it is left out.
	InstallationID string `yaml:"installationID"`
	PrivateKeyFile string `yaml:"privateKeyFile"`
}

// ClientCert names a certificate and its private key, both in PEM.
type ClientCert struct {
	CertFile string `yaml:"certFile"`
	KeyFile  string `yaml:"keyFile"`
}

// ProxyAuth are the credentials of a proxy.
type ProxyAuth struct {
	Username     string `yaml:"username"`
	PasswordFile string `yaml:"passwordFile"`
}

// Verify says which signatures a revision needs; one without is not applied,
// and what was applied last stays. Who may sign stands in files here and never in
// the repository, where the commit under judgement would choose its own judges.
type Verify struct {
	// Mode is commit (the default), tag, or either. For tag the ref must name one.
	Mode string    `yaml:"mode"`
	PGP  VerifyPGP `yaml:"pgp"`
	SSH  VerifySSH `yaml:"ssh"`
}

// VerifyPGP are those who may sign with PGP.
type VerifyPGP struct {
	// KeyFiles hold public keys, as gpg --export --armor writes them.
	KeyFiles []string `yaml:"keyFiles"`
}

// VerifySSH are those who may sign with SSH.
type VerifySSH struct {
	// AllowedSignersFile has the form of ssh-keygen's ALLOWED SIGNERS, as Git's
	// gpg.ssh.allowedSignersFile. Lines with cert-authority are left out.
	AllowedSignersFile string `yaml:"allowedSignersFile"`
}

func (v Verify) isZero() bool {
	return v.Mode == "" && len(v.PGP.KeyFiles) == 0 && v.SSH == VerifySSH{}
}

// Policy is the same as package signature takes it.
func (v Verify) Policy() signature.Policy {
	return signature.Policy{Mode: signature.Mode(v.Mode), PGPKeyFiles: v.PGP.KeyFiles, AllowedSignersFile: v.SSH.AllowedSignersFile}
}

// GitRef is the same as package source takes it.
func (r Ref) GitRef() source.Ref {
	return source.Ref{Branch: r.Branch, Tag: r.Tag, SemVer: r.SemVer, Commit: r.Commit, Name: r.Name}
}

// SecretFiles are the files of a source whose whole content is secret.
func (s Source) SecretFiles() []string {
	return present(s.Auth.TokenFile, s.Auth.PasswordFile, s.Auth.BearerTokenFile, s.Auth.PassphraseFile, s.ProxyAuth.PasswordFile)
}

// KeyFiles are the files of a source that hold private keys.
func (s Source) KeyFiles() []string {
	return present(s.Auth.SSHKeyFile, s.Auth.GitHubApp.PrivateKeyFile, s.ClientCert.KeyFile)
}

// WatchedFiles are the files of a source that are read anew at each look, so that
// a change of one is a reason to look.
func (s Source) WatchedFiles() []string {
	a := s.Auth
	return append(append(s.SecretFiles(), present(a.SSHKeyFile, a.KnownHostsFile, a.GitHubApp.PrivateKeyFile, s.Verify.SSH.AllowedSignersFile)...), s.Verify.PGP.KeyFiles...)
}

// ConnectionFiles are the files of a source that a connection is made with: a
// change of one is taken by new connections.
func (s Source) ConnectionFiles() []string {
	return present(s.CAFile, s.ClientCert.CertFile, s.ClientCert.KeyFile)
}

func present(files ...string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return f == "" })
}

// setDefaults fills in a source and makes its paths absolute.
func (s *Source) setDefaults(base string) {
	orDuration(&s.Interval, DefaultSourceInterval)
	if !s.Verify.isZero() {
		orText(&s.Verify.Mode, string(signature.Commit))
	}
	a := &s.Auth
	target.Absolute(base, &a.TokenFile, &a.PasswordFile, &a.BearerTokenFile, &a.SSHKeyFile, &a.PassphraseFile, &a.KnownHostsFile, &a.GitHubApp.PrivateKeyFile,
		&s.CAFile, &s.ClientCert.CertFile, &s.ClientCert.KeyFile, &s.ProxyAuth.PasswordFile, &s.Verify.SSH.AllowedSignersFile)
	for i := range s.Verify.PGP.KeyFiles {
		target.Absolute(base, &s.Verify.PGP.KeyFiles[i])
	}
	if isPath(s.URL) {
		target.Absolute(base, &s.URL)
	}
}

func (v *validator) sources() {
	seen := map[string]string{}
	if len(v.config.Sources) == 0 {
		v.fault("sources", "missing-key", "", "at least one source is required")
	}
	for i := range v.config.Sources {
		s, at := &v.config.Sources[i], fmt.Sprintf("sources[%d]", i)
		v.name(at+".name", s.Name, seen)
		if s.Interval < 0 {
			v.fault(at+".interval", "bad-value", "", "must be positive")
		}
		if err := s.Ref.GitRef().Validate(); err != nil {
			v.fault(at+".ref", "bad-value", "", "%s", strings.TrimPrefix(err.Error(), "ref: "))
		}
		v.proxy(at, s)
		v.verify(at, s)
		v.reach(at, s)
	}
}

// reach checks the url, and that the credentials fit it.
func (v *validator) reach(at string, s *Source) {
	scheme, err := transport.SchemeOf(s.URL)
	switch {
	case s.URL == "":
		v.fault(at+".url", "missing-key", "", "the repository's url is required")
	case err != nil:
		v.fault(at+".url", "bad-value", "", "%v", err)
	}
	a := s.Auth
	ways := present(a.TokenFile, a.PasswordFile, a.BearerTokenFile, a.GitHubApp.AppID+a.GitHubApp.PrivateKeyFile)
	ssh := present(a.SSHKeyFile, a.KnownHostsFile, a.PassphraseFile)
	switch {
	case scheme == transport.SchemeLocal && (len(ways)+len(ssh) > 0 || a.Username != ""):
		v.fault(at+".auth", "bad-value", "", "a repository on this machine is read as it is, without credentials")
	case scheme == transport.SchemeSSH && (len(ways) > 0 || a.Username != ""):
		v.fault(at+".auth", "bad-value", "give sshKeyFile and knownHostsFile; the user stands in the url", "tokens and passwords are for https")
	case scheme == transport.SchemeSSH:
		if a.SSHKeyFile == "" {
			v.fault(at+".auth.sshKeyFile", "missing-key", "neither an agent nor ~/.ssh is used", "a private key is required over SSH")
		}
		if a.KnownHostsFile == "" {
			v.fault(at+".auth.knownHostsFile", "missing-key", "ssh-keyscan HOST prints what to put there, to be compared with what the server's operator publishes", "the server's host keys are required over SSH")
		}
	case len(ssh) > 0 && scheme == transport.SchemeHTTP:
		v.fault(at+".auth", "bad-value", "", "sshKeyFile, passphraseFile and knownHostsFile are for ssh urls")
	case len(ways) > 1:
		v.fault(at+".auth", "bad-value", "", "give tokenFile, or username with passwordFile, or bearerTokenFile, or githubApp")
	}
	if a.PasswordFile != "" && a.Username == "" {
		v.fault(at+".auth", "missing-key", "", "passwordFile needs username")
	}
	if g := a.GitHubApp; g != (GitHubApp{}) && (g.AppID == "" || g.PrivateKeyFile == "") {
		v.fault(at+".auth.githubApp", "missing-key", "the App's settings page shows the one and makes the other", "appID and privateKeyFile are required")
	}
	if c := s.ClientCert; (c.CertFile == "") != (c.KeyFile == "") {
		v.fault(at+".clientCert", "missing-key", "", "certFile and keyFile go together")
	}
	if (scheme == transport.SchemeLocal || scheme == transport.SchemeSSH) && (s.CAFile != "" || s.ClientCert != ClientCert{}) {
		v.fault(at, "bad-value", "", "caFile and clientCert are for https")
	}
}

func (v *validator) proxy(at string, s *Source) {
	if s.Proxy != "" {
		switch u, err := url.Parse(s.Proxy); {
		case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme):
			v.fault(at+".proxy", "bad-value", "", "%q is no http, https or socks5 URL", redact(s.Proxy))
		case u.User != nil:
			v.fault(at+".proxy", "bad-value", "give proxyAuth with username and passwordFile", "the URL carries credentials, which are not kept in the configuration")
		}
	}
	switch p := s.ProxyAuth; {
	case p == ProxyAuth{}:
	case s.Proxy == "":
		v.fault(at+".proxyAuth", "bad-value", "", "there is no proxy")
	case p.Username == "" || p.PasswordFile == "":
		v.fault(at+".proxyAuth", "missing-key", "", "username and passwordFile are required")
	}
}

func (v *validator) verify(at string, s *Source) {
	if s.Verify.isZero() {
		return
	}
	if err := s.Verify.Policy().Validate(); err != nil {
		v.fault(at+".verify", "bad-value", "", "%s", strings.TrimPrefix(err.Error(), "verify "))
		return
	}
	if s.Verify.Mode == string(signature.Tag) && s.Ref.Tag == "" && s.Ref.SemVer == "" && !strings.HasPrefix(s.Ref.Name, "refs/tags/") {
		v.fault(at+".verify.mode", "bad-value", "", "tag needs a ref that names one: tag, semver, or name with refs/tags/")
	}
	for i, file := range s.Verify.PGP.KeyFiles {
		if file == "" {
			v.fault(fmt.Sprintf("%s.verify.pgp.keyFiles[%d]", at, i), "missing-key", "", "a file is required")
		}
	}
}

// forgeToken says where a forge's token comes from: its own file, or the App of its
// source, which must be of the same host.
func (v *validator) forgeToken(at string, f *Forge) {
	if f.TokenFile != "" {
		return
	}
	const required = "a file with an access token is required"
	i := slices.IndexFunc(v.config.Sources, func(s Source) bool { return s.Name == f.Source })
	if f.Type != GitHub || i < 0 || v.config.Sources[i].Auth.GitHubApp == (GitHubApp{}) {
		v.fault(at+".tokenFile", "missing-key", "", required)
		return
	}
	own, err := url.Parse(f.URL)
	of, sourceErr := url.Parse(v.config.Sources[i].URL)
	if err != nil || sourceErr != nil || !strings.EqualFold(own.Host, of.Host) || !strings.EqualFold(trimRepository(own.Path), trimRepository(of.Path)) {
		v.fault(at+".tokenFile", "missing-key", "the GitHub App of the source opens the source's own repository only", required)
	}
}

func trimRepository(p string) string { return strings.TrimSuffix(strings.Trim(p, "/"), ".git") }

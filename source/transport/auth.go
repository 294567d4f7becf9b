package transport

import (
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/weir-gitops/weir/source/fault"
)

// defaultUser is the user name for a token. GitHub requires it for app tokens, and the other forges accept
// any name.
const defaultUser = "x-access-token"

// maxSecretBytes bounds the size of a credentials file.
const maxSecretBytes = 64 << 10

// TokenSource creates access tokens that expire, such as tokens of a GitHub App.
type TokenSource interface {
	// Token returns a token that is still valid for a while.
	Token(context.Context) (string, error)
	// Reject reports that the server did not accept a token, so that the next one is new.
	Reject(token string)
}

// Auth names the files with the credentials of a source. weir reads them at each use, so a new
// value takes effect at once.
type Auth struct {
	// TokenFile holds an access token, which weir sends as a password.
	TokenFile string `yaml:"tokenFile"`
	// Username is the user for passwordFile, or for tokenFile if the forge requires a certain one.
	Username string `yaml:"username"`
	// PasswordFile holds the password of the user.
	PasswordFile string `yaml:"passwordFile"`
	// BearerTokenFile holds a token that weir sends in a Bearer header.
	BearerTokenFile string `yaml:"bearerTokenFile"`
	// SSHKeyFile holds a private key in OpenSSH's format. weir uses no agent and no ~/.ssh.
	SSHKeyFile string `yaml:"sshKeyFile"`
	// PassphraseFile holds the passphrase of sshKeyFile.
	PassphraseFile string `yaml:"passphraseFile"`
	// KnownHostsFile holds the trusted host keys, as ssh-keyscan prints them. It is required for
	// SSH.
	KnownHostsFile string    `yaml:"knownHostsFile"`
	GitHubApp      GitHubApp `yaml:"githubApp"`
	// Tokens gives the App's tokens, sent as a password.
	Tokens TokenSource `yaml:"-"`
}

// GitHubApp is a GitHub App that is installed on the repository. weir uses its tokens for Git, and
// for commit statuses if the forge has no tokenFile.
type GitHubApp struct {
	// AppID is the App's number or its client id.
	AppID string `yaml:"appID"`
	// InstallationID is the number of the installation. Without it weir finds the installation of
	// the repository.
	InstallationID string `yaml:"installationID"`
	// PrivateKeyFile holds the App's private key in PEM.
	PrivateKeyFile string `yaml:"privateKeyFile"`
}

func (a Auth) IsSet() bool { return a != Auth{} }

// validateHTTP checks that at most one way to authenticate is set, with all of its fields, and none that is
// only for SSH.
func (a Auth) validateHTTP() error {
	ways := 0
	for _, set := range []bool{a.TokenFile != "", a.PasswordFile != "", a.BearerTokenFile != "", a.Tokens != nil} {
		if set {
			ways++
		}
	}
	switch {
	case a.SSHKeyFile != "" || a.PassphraseFile != "" || a.KnownHostsFile != "":
		return fault.New(fault.AuthFailed, "auth.sshKeyFile, auth.passphraseFile and auth.knownHostsFile are for ssh:// urls")
	case ways > 1:
		return fault.New(fault.AuthFailed, "auth.tokenFile, auth.passwordFile, auth.bearerTokenFile and auth.githubApp exclude each other")
	case a.PasswordFile != "" && a.Username == "":
		return fault.New(fault.AuthFailed, "auth.passwordFile needs auth.username")
	case a.Username != "" && a.TokenFile == "" && a.PasswordFile == "":
		return fault.New(fault.AuthFailed, "auth.username needs auth.passwordFile or auth.tokenFile")
	}
	return nil
}

func (a Auth) validateSSH() error {
	switch {
	case a.TokenFile != "" || a.PasswordFile != "" || a.BearerTokenFile != "" || a.Tokens != nil || a.Username != "":
		return fault.New(fault.AuthFailed, "for SSH give auth.sshKeyFile; the user is part of the url (ssh://git@host/path), and tokens and passwords are for https")
	case a.SSHKeyFile == "":
		return fault.New(fault.AuthFailed, "auth.sshKeyFile is required over SSH: neither an agent nor ~/.ssh is used")
	case a.KnownHostsFile == "":
		return fault.New(fault.AuthFailed, "auth.knownHostsFile is required over SSH; ssh-keyscan HOST prints what to put there, to be compared with what the server's operator publishes")
	}
	return nil
}

// method returns the current credentials, or nil for none. token is the token of Tokens, if that was
// used.
func (a Auth) method(ctx context.Context) (method transport.AuthMethod, token string, err error) {
	user := a.Username
	if user == "" {
		user = defaultUser
	}
	switch {
	case !a.IsSet():
		return nil, "", nil
	case a.Tokens != nil:
		if token, err = a.Tokens.Token(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, "", networkFault(ctx, "the forge's API", ctx.Err())
			}
			return nil, "", &fault.Error{Reason: fault.AuthFailed, Text: err.Error(), Err: err}
		}
		return &githttp.BasicAuth{Username: user, Password: token}, token, nil
	case a.BearerTokenFile != "":
		secret, err := readSecret(a.BearerTokenFile)
		if err != nil {
			return nil, "", err
		}
		return &githttp.TokenAuth{Token: secret}, "", nil
	}
	file := a.TokenFile
	if file == "" {
		file = a.PasswordFile
	}
	secret, err := readSecret(file)
	if err != nil {
		return nil, "", err
	}
	return &githttp.BasicAuth{Username: user, Password: secret}, "", nil
}

func readSecret(file string) (string, error) {
	data, err := readCredential(file)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(data), "\r\n")
	switch {
	case secret == "":
		return "", fault.New(fault.AuthFailed, "read credentials: %s is empty", file)
	case strings.ContainsAny(secret, "\r\n\x00"):
		return "", fault.New(fault.AuthFailed, "read credentials: %s has several lines; it must have only the secret", file)
	}
	return secret, nil
}

// ClientCert names a certificate and its private key. weir reads them at each new connection.
type ClientCert struct {
	// CertFile holds the certificate in PEM.
	CertFile string `yaml:"certFile"`
	// KeyFile holds the private key in PEM.
	KeyFile string `yaml:"keyFile"`
}

func (c ClientCert) validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return fault.New(fault.AuthFailed, "clientCert needs certFile and keyFile")
	}
	return nil
}

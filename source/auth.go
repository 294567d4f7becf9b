package source

import (
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// defaultUser goes beside a token: GitHub asks for it with app tokens, and the
// other forges take any name.
const defaultUser = "x-access-token"

// maxSecretBytes bounds what is read of a credentials file.
const maxSecretBytes = 64 << 10

func (a Auth) validate() error {
	switch {
	case a.TokenFile != "" && a.PasswordFile != "":
		return faultf(AuthFailed, "auth.tokenFile and auth.passwordFile exclude each other")
	case a.PasswordFile != "" && a.Username == "":
		return faultf(AuthFailed, "auth.passwordFile needs auth.username")
	case a.Username != "" && a.TokenFile == "" && a.PasswordFile == "":
		return faultf(AuthFailed, "auth.username needs auth.passwordFile or auth.tokenFile")
	}
	return nil
}

// method reads the credentials as they are now; nil without any.
func (a Auth) method() (transport.AuthMethod, error) {
	if !a.isSet() {
		return nil, nil
	}
	user, file := a.Username, a.TokenFile
	if user == "" {
		user = defaultUser
	}
	if file == "" {
		file = a.PasswordFile
	}
	secret, err := readSecret(file)
	if err != nil {
		return nil, err
	}
	return &githttp.BasicAuth{Username: user, Password: secret}, nil
}

func readSecret(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", faultf(AuthFailed, "read credentials: %v", err)
	}
	if info.Size() > maxSecretBytes {
		return "", faultf(AuthFailed, "read credentials: %s has %d bytes, which is no token or password", file, info.Size())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", faultf(AuthFailed, "read credentials: %v", err)
	}
	secret := strings.TrimRight(string(data), "\r\n")
	if secret == "" {
		return "", faultf(AuthFailed, "read credentials: %s is empty", file)
	}
	return secret, nil
}

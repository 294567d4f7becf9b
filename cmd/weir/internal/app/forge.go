package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status"
)

// route is how a source's host, and with it its forge, is reached and trusted.
type route struct {
	proxy, caFile string
	ca            [sha256.Size]byte
}

// routeOf reads the certificates, which may change under the same name. A file
// that cannot be read is a fault of whoever uses it.
func routeOf(s config.Source) route {
	r := route{proxy: s.Proxy, caFile: s.CAFile}
	if s.CAFile != "" {
		if pem, err := os.ReadFile(s.CAFile); err == nil {
			r.ca = sha256.Sum256(pem)
		}
	}
	return r
}

// newForge makes the client of a forge. A private certificate authority or a
// proxy of the source holds for its forge too.
func newForge(f config.Forge, s config.Source) (status.Forge, error) {
	repository, err := status.RepositoryOf(f.URL)
	if err != nil {
		return nil, err
	}
	transport, err := source.NewTransport(source.Config{CAFile: s.CAFile, Proxy: s.Proxy})
	if err != nil {
		return nil, err
	}
	o := status.ForgeOptions{
		URL: strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(f.URL, "/"), ".git"), "/"+repository), Repository: repository, Transport: transport,
		Token: func(context.Context) (string, error) {
			text, err := os.ReadFile(f.TokenFile)
			if err != nil {
				return "", fmt.Errorf("read token: %w", err)
			}
			return strings.TrimSpace(string(text)), nil
		},
	}
	if f.Type == config.GitHub {
		if u, err := url.Parse(o.URL); err == nil && strings.EqualFold(u.Host, "github.com") {
			o.URL = ""
		}
		return status.NewGitHub(o)
	}
	return status.NewGitea(o)
}

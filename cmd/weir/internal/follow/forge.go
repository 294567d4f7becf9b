package follow

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/metrics"
)

// forgeOptions returns the options of a forge's client. The forge uses the certificates and the proxy of
// the source, and its GitHub App if the forge has no token.
func forgeOptions(f config.Forge, of *Source, metrics *metrics.Metrics) (forge.ClientOptions, error) {
	repository, err := f.Profile().RepositoryOf(f.URL)
	if err != nil {
		return forge.ClientOptions{}, err
	}
	rt, err := transport.NewHTTP(of.Config.Settings)
	if err != nil {
		return forge.ClientOptions{}, err
	}
	of.forgeClients = append(of.forgeClients, rt)
	return forge.ClientOptions{
		Kind: f.Profile().Kind,
		URL:  strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(f.URL, "/"), ".git"), "/"+repository), Repository: repository,
		Transport: metrics.ForgeTransport(f.Type, f.Source, rt),
		Token: func(ctx context.Context) (string, error) {
			if f.TokenFile == "" && of.app != nil {
				return of.app.Token(ctx)
			}
			text, err := os.ReadFile(f.TokenFile)
			if err != nil {
				return "", fmt.Errorf("read token: %w", err)
			}
			return strings.TrimSpace(string(text)), nil
		},
	}, nil
}

// NewForge returns the client of a source's forge. ref is the branch or tag that statuses are about, which
// may be unknown.
func NewForge(f config.Forge, of *Source, ref string, metrics *metrics.Metrics) (forge.Client, error) {
	o, err := forgeOptions(f, of, metrics)
	if err != nil {
		return nil, err
	}
	o.Ref = ref
	return forge.New(o)
}

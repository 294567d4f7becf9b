package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/metrics"
)

// forgeOptions say how a forge is reached. The certificates and the proxy of the
// source hold for its forge too, and its GitHub App where the forge has no token.
func forgeOptions(f config.Forge, of *follower, metrics *metrics.Metrics) (forge.ClientOptions, error) {
	repository, err := f.Profile().RepositoryOf(f.URL)
	if err != nil {
		return forge.ClientOptions{}, err
	}
	rt, err := transport.NewHTTP(of.config.Settings)
	if err != nil {
		return forge.ClientOptions{}, err
	}
	of.ways = append(of.ways, rt)
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

// newForge makes the client of a source's forge; ref is the branch or tag that statuses
// are about, which may be unknown.
func newForge(f config.Forge, of *follower, ref string, metrics *metrics.Metrics) (forge.Client, error) {
	o, err := forgeOptions(f, of, metrics)
	if err != nil {
		return nil, err
	}
	o.Ref = ref
	return forge.New(o)
}

// makeForges makes the clients of the forges that get commit statuses, by source.
func makeForges(c *config.Config, fs followers, metrics *metrics.Metrics, tracing *telemetry.Tracing) (map[string]commits.Forge, error) {
	out := map[string]commits.Forge{}
	for _, f := range c.Forges {
		if f.Profile().WebhooksOnly {
			continue
		}
		of := fs[f.Source]
		forge, err := newForge(f, of, cmp.Or(of.config.Ref.Branch, of.config.Ref.Tag), metrics)
		if err != nil {
			return nil, err
		}
		out[f.Source] = tracing.Forge(forge)
	}
	return out, nil
}

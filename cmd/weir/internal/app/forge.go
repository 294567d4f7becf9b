package app

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/metrics"
)

// forgeOptions say how a forge is reached. The certificates and the proxy of the
// source hold for its forge too, and its GitHub App where the forge has no token.
func forgeOptions(f config.Forge, of *follower, metrics *metrics.Metrics) (forge.ClientOptions, error) {
	name := forge.RepositoryOf
	if f.Type == config.GitLab {
		name = forge.ProjectOf
	}
	repository, err := name(f.URL)
	if err != nil {
		return forge.ClientOptions{}, err
	}
	var way source.Config
	connection(of.config, &way)
	rt, err := transport.NewHTTP(way.Access())
	if err != nil {
		return forge.ClientOptions{}, err
	}
	o := forge.ClientOptions{
		Kind: kindOf(f.Type),
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
	}
	if u, err := url.Parse(o.URL); f.Type == config.GitHub && err == nil && strings.EqualFold(u.Host, "github.com") {
		o.URL = ""
	}
	return o, nil
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

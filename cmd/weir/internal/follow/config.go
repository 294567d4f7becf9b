package follow

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/githubapp"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
)

// Hide redacts values in all output. They replace the earlier values of the same owner. It may be nil.
type Hide func(owner string, values *secret.Set)

// Config converts a configured source for package source. Its mirror is below the state directory. It also
// returns the source's GitHub App, if it has one.
func Config(s config.Source, stateDir string, hide Hide) (source.Config, *githubapp.App, error) {
	c := source.Config{Name: s.Name, URL: s.URL, Interval: s.Interval, Dir: filepath.Join(stateDir, "mirrors"), Ref: s.Ref, Settings: s.Settings, Verify: s.Verify}
	if s.Auth.GitHubApp == (transport.GitHubApp{}) {
		return c, nil, nil
	}
	app, err := newApp(s, hide)
	if err != nil {
		return c, nil, fmt.Errorf("configure source %s: %w", s.Name, err)
	}
	c.Auth.Tokens = app
	return c, app, nil
}

// newApp creates the GitHub App of a source. Its API is reached with the same settings as the source.
func newApp(s config.Source, hide Hide) (*githubapp.App, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("the url cannot be parsed") // the parser's error would contain the URL
	}
	repository, err := forge.RepositoryOf(s.URL)
	if err != nil {
		return nil, err
	}
	rt, err := transport.NewHTTP(s.Settings)
	if err != nil {
		return nil, err
	}
	g := s.Auth.GitHubApp
	var tokens []string
	return githubapp.New(githubapp.Options{
		API: githubapp.APIOf(u), AppID: g.AppID, InstallationID: g.InstallationID, Repository: repository, KeyFile: g.PrivateKeyFile, Transport: rt,
		OnToken: func(token string) {
			if hide == nil {
				return
			}
			// The previous token is still valid for a while.
			tokens = append(slices.Clone(tokens[max(0, len(tokens)-1):]), token)
			hide("github-app/"+s.Name, secret.New(tokens...))
		},
	})
}

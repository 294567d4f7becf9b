package status

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// CommitState is a commit status' state; GitHub and Gitea know these four, and
// GitLab has a job's state for each.
type CommitState string

// Commit states. Failure is a verdict on the commit; Error says that there is
// none (superseded, interrupted). Neither satisfies a required check.
const (
	Pending CommitState = "pending"
	Success CommitState = "success"
	Failure CommitState = "failure"
	Error   CommitState = "error"
)

// Final reports whether the state ends a status.
func (s CommitState) Final() bool { return s != Pending }

// CommitStatus is one status of a commit. The newest of a context counts.
type CommitStatus struct {
	Context     string      `json:"context"`
	State       CommitState `json:"state"`
	Description string      `json:"description"`
	TargetURL   string      `json:"targetURL,omitempty"`
}

// Forge writes and reads the statuses of commits of one repository. Its errors
// are *forgehttp.Error.
type Forge interface {
	// Name is the kind of forge, such as "github".
	Name() string
	// Limits says what the forge takes.
	Limits() Limits
	// SetStatus adds a status to a commit.
	SetStatus(ctx context.Context, sha string, s CommitStatus) error
	// Statuses returns the newest status of each context of a commit.
	Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error)
}

// Limits is what a forge takes. Lengths are in UTF-16 units, which is what a
// forge can at most count for a character.
type Limits struct {
	Context     int
	Description int
	// PerMinute bounds the writes, 0 for no bound.
	PerMinute int
}

// ForgeOptions names a repository on a forge.
type ForgeOptions struct {
	// URL is the forge's address, such as https://git.example.com. For GitHub,
	// empty means github.com.
	URL string
	// Repository is owner/name; on GitLab, the project's path with all groups.
	Repository string
	// Ref is the branch or tag that statuses are about, where it is known. Only
	// GitLab asks.
	Ref   string
	Token forgehttp.Token
	// Transport is http.DefaultTransport if nil.
	Transport http.RoundTripper
}

// RepositoryOf returns owner/name of a Git address, which may be a URL or of the
// form user@host:owner/name.git.
func RepositoryOf(address string) (string, error) {
	var path string
	if u, err := url.Parse(address); err == nil && u.Scheme != "" && u.Host != "" {
		path = u.Path
	} else if _, after, ok := strings.Cut(address, ":"); ok && !strings.Contains(address, "://") {
		path = after
	} else {
		return "", fmt.Errorf("find repository of %s: not the address of a forge's repository", plainURL(address))
	}
	parts := strings.Split(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
	if len(parts) < 2 || parts[len(parts)-1] == "" || parts[len(parts)-2] == "" {
		return "", fmt.Errorf("find repository of %s: the path is not owner/name", plainURL(address))
	}
	return parts[len(parts)-2] + "/" + parts[len(parts)-1], nil
}

// ProjectOf returns the whole path of a Git address, as GitLab names a project:
// groups may be in groups.
func ProjectOf(address string) (string, error) {
	if _, err := RepositoryOf(address); err != nil {
		return "", err
	}
	var path string
	if u, err := url.Parse(address); err == nil && u.Scheme != "" && u.Host != "" {
		path = u.Path
	} else {
		_, path, _ = strings.Cut(address, ":")
	}
	return strings.TrimSuffix(strings.Trim(path, "/"), ".git"), nil
}

// client returns a client of the forge at base.
func (o ForgeOptions) client(base *url.URL, scheme string) *http.Client {
	return forgehttp.NewClient(forgehttp.Options{Base: base, Scheme: scheme, Token: o.Token, Transport: o.Transport})
}

func splitRepository(r string) (owner, name string, err error) {
	owner, name, ok := strings.Cut(r, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("read repository %q: want owner/name", r)
	}
	return owner, name, nil
}

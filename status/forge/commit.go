package forge

import (
	"context"
	"errors"
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
	Errored CommitState = "error"
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

// Limits is what a forge takes. Lengths are in UTF-16 units, which is what a
// forge can at most count for a character.
type Limits struct {
	Context     int
	Description int
	// PerMinute bounds the writes, 0 for no bound.
	PerMinute int
}

// RepositoryOf returns owner/name of a Git address, which may be a URL or of the
// form user@host:owner/name.git.
func RepositoryOf(address string) (string, error) {
	project, err := ProjectOf(address)
	if err != nil {
		return "", err
	}
	parts := strings.Split(project, "/")
	return strings.Join(parts[len(parts)-2:], "/"), nil
}

// ProjectOf returns the whole path of a Git address, as GitLab names a project:
// groups may be in groups.
func ProjectOf(address string) (string, error) {
	path := pathOf(address)
	if path == strings.TrimSuffix(strings.Trim(address, "/"), ".git") || strings.HasPrefix(address, "file:") {
		return "", fmt.Errorf("find repository %s: not the address of a forge's repository", path)
	}
	parts := strings.Split(path, "/")
	if n := len(parts); n < 2 || parts[n-1] == "" || parts[n-2] == "" {
		return "", fmt.Errorf("find repository %s: the path of its address is not owner/name", path)
	}
	return path, nil
}

// client returns a client of the forge at base.
func (o ClientOptions) client(base *url.URL, scheme string) *http.Client {
	return forgehttp.NewClient(forgehttp.Options{Base: base, Scheme: scheme, Token: o.Token, Transport: o.Transport})
}

func splitRepository(r string) (owner, name string, err error) {
	owner, name, ok := strings.Cut(r, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("read repository %q: want owner/name", r)
	}
	return owner, name, nil
}

// PostedComment is a comment that is on a forge.
type PostedComment struct {
	ID     int64
	Author string
	Body   string
}

// grant is what a token needs to do something, for who reads that it may not.
type grant struct {
	does       string // such as "write statuses"
	permission string // GitHub's, of an App or a fine-grained token
	scope      string
}

const (
	// commentPages bounds a listing of comments: a conversation of more than some
	// thousand has had its comment of weir early.
	commentPages = 50
	comments     = "write comments on pull requests"
)

// commentRefusal says what forges say of comments only: that the conversation is
// locked, and that a text is too long.
func commentRefusal(err error) error {
	var e *forgehttp.Error
	if errors.As(err, &e) && e.Status/100 == 4 && e.Status != http.StatusTooManyRequests && strings.Contains(strings.ToLower(e.Message), "locked") {
		return &forgehttp.Error{Forge: e.Forge, Fault: forgehttp.FaultRefused, Status: e.Status, Err: err,
			Message: "the conversation of the pull request is locked: unlock it to see the plan there; it is on weir's page meanwhile"}
	}
	return err
}

// TooLong reports whether a forge refuses a text for its length. Gitea's databases
// say so, and Gitea answers 500 then.
func TooLong(err error) bool {
	var e *forgehttp.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Status == http.StatusRequestEntityTooLarge || e.Status >= 400 && strings.Contains(strings.ToLower(e.Message), "too long")
}

// Gone reports whether a forge says that there is no such thing.
func Gone(err error) bool {
	var e *forgehttp.Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}

// Writer writes statuses of commits, and comments on pull requests. Its errors are
// *forgehttp.Error.
type Writer interface {
	Kind() Kind
	Limits() Limits
	SetStatus(ctx context.Context, sha string, s CommitStatus) error
	Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error)
	Login(ctx context.Context) (string, error)
	ListComments(ctx context.Context, number int64) ([]PostedComment, error)
	CreateComment(ctx context.Context, number int64, body string) (id int64, err error)
	EditComment(ctx context.Context, number, id int64, body string) error
	DeleteComment(ctx context.Context, number, id int64) error
}

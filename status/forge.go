package status

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
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
// are *ForgeError.
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

// Token returns the token to send. It is called for each request, so that a
// token that was replaced on disk is used at once.
type Token func(ctx context.Context) (string, error)

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
	Token Token
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

func splitRepository(r string) (owner, name string, err error) {
	owner, name, ok := strings.Cut(r, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("read repository %q: want owner/name", r)
	}
	return owner, name, nil
}

// Fault says what to do about a forge's refusal.
type Fault string

// Faults.
const (
	// FaultBusy passes: unreachable, throttled, in maintenance.
	FaultBusy Fault = "busy"
	// FaultMissing may pass: forges answer so for a commit that was pushed a
	// moment ago.
	FaultMissing Fault = "missing"
	// FaultDenied needs a better token: one that is accepted, may write, and may
	// see the repository.
	FaultDenied Fault = "denied"
	// FaultRefused does not pass: the request itself is refused.
	FaultRefused Fault = "refused"
)

// ForgeError is a failed request to a forge.
type ForgeError struct {
	Forge  string
	Fault  Fault
	Status int // HTTP's, 0 without an answer
	// After is how long the forge asks to wait, 0 if it does not say.
	After   time.Duration
	Message string
	Err     error
}

// Error says what failed and, where a person can mend it, how.
func (e *ForgeError) Error() string {
	s := e.Forge + ": "
	if e.Status != 0 {
		s += strconv.Itoa(e.Status) + ": "
	}
	return s + e.Message
}

// Unwrap returns the cause.
func (e *ForgeError) Unwrap() error { return e.Err }

// faultOf reads an HTTP status as the forges use it.
func faultOf(code int, h http.Header) (Fault, time.Duration) {
	after := max(retryAfter(h), resetOf(h, time.Now()))
	switch {
	case code == http.StatusTooManyRequests,
		code == http.StatusForbidden && (after > 0 || h.Get("X-RateLimit-Remaining") == "0"),
		code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout,
		code == http.StatusRequestTimeout:
		return FaultBusy, after
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return FaultDenied, 0
	case code == http.StatusNotFound, code >= 500:
		return FaultMissing, after
	case code == 0:
		return FaultBusy, 0
	default:
		return FaultRefused, 0
	}
}

// maxRetryAfter bounds what a forge may ask for: a wrong clock must not stop
// statuses for a day.
const maxRetryAfter = time.Hour

// retryAfter reads Retry-After, which is seconds or a date.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if n, err := strconv.Atoi(v); err == nil {
		return min(max(0, time.Duration(n)*time.Second), maxRetryAfter)
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(0, time.Until(t)), maxRetryAfter)
	}
	return 0
}

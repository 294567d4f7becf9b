package forge

import (
	"fmt"
	"strings"
)

// CommitState is a commit status' state; GitHub and Gitea know these four, and
// GitLab maps each to a job's state.
type CommitState string

// Commit states. Failure is a verdict on the commit; Error says that the verdict is missing
// (superseded, interrupted). Neither satisfies a required check.
const (
	Pending CommitState = "pending"
	Success CommitState = "success"
	Failure CommitState = "failure"
	Errored CommitState = "error"
)

// Final reports whether the state ends a status.
func (s CommitState) Final() bool { return s != Pending }

// CommitStatus is one status of a commit. The newest of a context is the valid one.
type CommitStatus struct {
	Context     string      `json:"context"`
	State       CommitState `json:"state"`
	Description string      `json:"description"`
	TargetURL   string      `json:"targetURL,omitempty"`
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

package forge

import (
	"fmt"
	"strings"
)

// CommitState is the state of a commit status. GitHub and Gitea have these four states. GitLab's client
// maps each to the state of a job.
type CommitState string

// The states of a commit status. Failure is a verdict on the commit. Error means that there is no verdict
// (superseded, interrupted). Neither satisfies a required check.
const (
	Pending CommitState = "pending"
	Success CommitState = "success"
	Failure CommitState = "failure"
	Errored CommitState = "error"
)

// Final reports whether the state is a final one.
func (s CommitState) Final() bool { return s != Pending }

// CommitStatus is a status of a commit. Only the newest status of each context is valid.
type CommitStatus struct {
	Context     string      `json:"context"`
	State       CommitState `json:"state"`
	Description string      `json:"description"`
	TargetURL   string      `json:"targetURL,omitempty"`
}

// RepositoryOf returns owner/name from a Git address, which is a URL or has the form
// user@host:owner/name.git.
func RepositoryOf(address string) (string, error) {
	project, err := ProjectOf(address)
	if err != nil {
		return "", err
	}
	parts := strings.Split(project, "/")
	return strings.Join(parts[len(parts)-2:], "/"), nil
}

// ProjectOf returns the whole path from a Git address, which is the name of a GitLab project: groups may
// contain groups.
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

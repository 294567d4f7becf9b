package forge

import "testing"

// Helpers of the tests here, for the tests of package forge_test.

// NewStatusServer is a forge with GitHub's and Gitea's statuses.
func NewStatusServer(t *testing.T) (*forgeServer, func(kind string) Client) {
	f, url := newForgeServer(t)
	return f, func(kind string) Client { return forges(t, url, token("s3cret"))[kind] }
}

// NewGitLabServer is one with GitLab's.
func NewGitLabServer(t *testing.T, commits ...string) (*gitlabServer, Client) {
	s, g := newGitLabServer(t, commits...)
	return s, g
}

// Push has a commit be there.
func (f *forgeServer) Push(sha string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits[sha] = nil
}

// Counts are the requests and the writes so far.
func (f *forgeServer) Counts() (requests, writes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests), f.writes
}

// Newest are a commit's statuses, by context.
func (f *forgeServer) Newest(sha string) map[string]CommitStatus { return f.newest(sha) }

// Jobs are the states of all jobs.
func (s *gitlabServer) Jobs() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs
}

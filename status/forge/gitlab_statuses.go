package forge

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// gitlabCommit contains the known jobs of a commit. GitLab's commit status is a job of an external
// pipeline, with the states and transitions of a job.
// https://docs.gitlab.com/api/commits/#set-commit-pipeline-status
type gitlabCommit struct {
	// pipeline is the ID of the pipeline that contains the statuses, 0 if unknown.
	pipeline int64
	states   map[string]string // in GitLab's terms, by context
}

// gitlabText is the maximum length of a name, description, ref and target URL.
const gitlabText = 255

// gitlabStates maps our states to states of a job. See next for jobs that are already pending.
var gitlabStates = map[CommitState]string{Pending: "pending", Success: "success", Failure: "failed", Errored: "canceled"}

// stateOfGitLab converts the state of a job.
func stateOfGitLab(s string) CommitState {
	switch s {
	case "success":
		return Success
	case "failed":
		return Failure
	case "canceled", "canceling", "skipped":
		return Errored
	default: // created, pending, running, waiting_for_resource, preparing, manual, scheduled
		return Pending
	}
}

// next returns the job's next state to request, empty if the job cannot be changed. A pending job can
// become running, and a running job can only end. After a job has ended, a new job is created.
func (c *gitlabCommit) next(name string, want CommitState) string {
	if want != Pending {
		return gitlabStates[want]
	}
	switch had := c.states[name]; {
	case had == "" || stateOfGitLab(had) != Pending:
		return "pending"
	case had == "pending" || had == "created":
		return "running"
	default:
		return ""
	}
}

var gitlabStatuses = need{does: "write statuses", grant: gitlabStatus}

// SetStatus implements Client. The description of a running job can be changed only once. If a description
// cannot be changed, that is not an error, because the state is correct.
func (g *gitLab) SetStatus(ctx context.Context, sha string, s CommitStatus) error {
	commit := g.commit(sha)
	state := commit.next(s.Context, s.State)
	if state == "" {
		return nil
	}
	err := g.set(ctx, sha, commit, state, s)
	var refusal *forgehttp.Error
	if !errors.As(err, &refusal) {
		return err
	}
	switch {
	case refusal.Status == http.StatusBadRequest && strings.Contains(refusal.Message, "annot transition"):
		// Another writer changed the job: another process, or an earlier write of ours whose response was
		// lost.
		return g.confirmState(ctx, sha, s, refusal)
	case commit.pipeline != 0 && (refusal.Status == http.StatusBadRequest || refusal.Status == http.StatusNotFound):
		// The pipeline was deleted, or accepts no more jobs. GitLab then chooses another one.
		g.mu.Lock()
		commit.pipeline = 0
		g.mu.Unlock()
		return g.set(ctx, sha, commit, state, s)
	case refusal.Status == http.StatusConflict:
		refusal.Fault = forgehttp.FaultBusy // concurrent writes to one pipeline
	}
	return err
}

// set requests a state of the job that stands for a commit status, and records the state and the pipeline
// that GitLab chose.
func (g *gitLab) set(ctx context.Context, sha string, commit *gitlabCommit, state string, s CommitStatus) error {
	o := &gitlab.SetCommitStatusOptions{State: gitlab.BuildStateValue(state), Name: &s.Context, Description: &s.Description}
	if s.TargetURL != "" && len(s.TargetURL) <= gitlabText { // a truncated URL would be broken
		o.TargetURL = &s.TargetURL
	}
	if g.ref != "" {
		o.Ref = &g.ref
	}
	if commit.pipeline != 0 {
		o.PipelineID = gitlab.Ptr(commit.pipeline)
	}
	var job *gitlab.CommitStatus
	err := g.write(ctx, gitlabStatuses, func(ctx context.Context) (err error) {
		job, _, err = g.client.Commits.SetCommitStatus(g.project, sha, o, with(ctx))
		return err
	})
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	commit.states[s.Context] = state
	if job.PipelineID != 0 {
		commit.pipeline = job.PipelineID
	}
	return nil
}

// confirmState reads the state of a job that could not be changed. It returns no error if the job already
// has the wanted state.
func (g *gitLab) confirmState(ctx context.Context, sha string, want CommitStatus, refusal *forgehttp.Error) error {
	has, err := g.Statuses(ctx, sha)
	if err != nil {
		return err
	}
	if has[want.Context].State == want.State {
		return nil
	}
	// The state differs and is now known, so the next attempt requests the state that follows it.
	refusal.Fault = forgehttp.FaultMissing
	return refusal
}

// Statuses implements Client.
func (g *gitLab) Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error) {
	newest := map[string]*gitlab.CommitStatus{}
	err := eachPage(g.size, func(page int) (n int, a answer, err error) {
		var list []*gitlab.CommitStatus
		a, err = g.once(ctx, gitlabStatuses, "", func(ctx context.Context) (err error) {
			list, _, err = g.client.Commits.GetCommitStatuses(g.project, sha, &gitlab.GetCommitStatusesOptions{ListOptions: g.page(page)}, with(ctx))
			return err
		})
		for _, job := range list {
			if job != nil && (newest[job.Name] == nil || job.ID >= newest[job.Name].ID) {
				newest[job.Name] = job
			}
		}
		return len(list), a, err
	})
	if err != nil {
		return nil, err
	}
	commit := g.commit(sha)
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]CommitStatus{}
	clear(commit.states)
	for name, job := range newest {
		commit.states[name] = job.Status
		out[name] = CommitStatus{Context: name, State: stateOfGitLab(job.Status), Description: job.Description, TargetURL: job.TargetURL}
	}
	return out, nil
}

// gitlabCommits is the maximum number of commits whose pipelines and statuses are in memory.
const gitlabCommits = 64

func (g *gitLab) commit(sha string) *gitlabCommit {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.commits[sha]; c != nil {
		return c
	}
	if len(g.order) == gitlabCommits {
		delete(g.commits, g.order[0])
		g.order = slices.Delete(g.order, 0, 1)
	}
	c := &gitlabCommit{states: map[string]string{}}
	g.commits[sha], g.order = c, append(g.order, sha)
	return c
}

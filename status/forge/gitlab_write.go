package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// GitLab writes commit statuses to GitLab, through its REST API version 4. What
// GitLab calls a commit status is a job of an external pipeline, with a job's
// states and transitions.
// https://docs.gitlab.com/api/commits/#set-commit-pipeline-status
type GitLabWriter struct {
	api     string // its address
	project string // the project's below it
	name    string
	ref     string
	http    *http.Client

	mu sync.Mutex
	// commits holds what is known of commits' jobs; order has the oldest first.
	commits map[string]*gitlabCommit
	order   []string
}

// gitlabCommit is what is known of the jobs of a commit.
type gitlabCommit struct {
	// pipeline is the one that the statuses are in, 0 if that is not known.
	pipeline int64
	states   map[string]string // GitLab's own, by context
}

// NewGitLab returns a Forge for one project on GitLab. Repository is the project's
// whole path, with all of its groups. The token needs the scope api and the role
// Developer, or one that may push to the branch where it is protected.
func NewGitLabWriter(o ClientOptions) (*GitLabWriter, error) {
	project := strings.Trim(o.Repository, "/")
	if strings.Count(project, "/") < 1 || slices.Contains(strings.Split(project, "/"), "") {
		return nil, fmt.Errorf("read project %q: want group/project, with all groups", o.Repository)
	}
	base, err := forgehttp.ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	api := strings.TrimSuffix(base.String(), "/") + "/api/v4"
	return &GitLabWriter{
		api: api, project: api + "/projects/" + url.PathEscape(project), name: project, ref: clipRef(o.Ref),
		http: o.client(base, forgehttp.Bearer), commits: map[string]*gitlabCommit{},
	}, nil
}

// clipRef leaves out what GitLab does not take: it finds a ref by itself then.
func clipRef(ref string) string {
	if len(ref) > gitlabText {
		return ""
	}
	return ref
}

// gitlabText is the length of the longest name, description, ref and target URL.
const gitlabText = 255

// Limits are GitLab's. Each instance has its own rate limit, which its answers tell.
func (g *GitLabWriter) Limits() Limits { return Limits{Context: gitlabText, Description: gitlabText} }

// gitlabStates are a job's states for ours. A job that is pending is not made
// pending again, see next.
var gitlabStates = map[CommitState]string{Pending: "pending", Success: "success", Failure: "failed", Errored: "canceled"}

// stateOfGitLab is ours for a job's state.
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

// next is the job's state to ask for, empty where the job cannot be changed: what
// is pending can be made running, which then can be changed by its end only. A job
// that has ended is followed by a new one.
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

// gitlabJob is a status as GitLab answers with it.
type gitlabJob struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Status      string `json:"status"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
	PipelineID  int64  `json:"pipeline_id"`
}

// SetStatus adds or changes a status. A description of what is under way can be
// changed once: what cannot be shown is no error, as the state is right.
func (g *GitLabWriter) SetStatus(ctx context.Context, sha string, s CommitStatus) error {
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
		// Somebody else changed the job: another writer, or one of our own writes
		// whose answer was lost.
		return g.settle(ctx, sha, s, refusal)
	case commit.pipeline != 0 && (refusal.Status == http.StatusBadRequest || refusal.Status == http.StatusNotFound):
		// The pipeline was deleted, or takes no more jobs: GitLab chooses another.
		g.mu.Lock()
		commit.pipeline = 0
		g.mu.Unlock()
		return g.set(ctx, sha, commit, state, s)
	default:
		return err
	}
}

// set asks for a job's state.
func (g *GitLabWriter) set(ctx context.Context, sha string, commit *gitlabCommit, state string, s CommitStatus) error {
	in := struct {
		State       string `json:"state"`
		Name        string `json:"name"`
		Description string `json:"description"`
		TargetURL   string `json:"target_url,omitempty"`
		Ref         string `json:"ref,omitempty"`
		PipelineID  int64  `json:"pipeline_id,omitempty"`
	}{State: state, Name: s.Context, Description: s.Description, TargetURL: s.TargetURL, Ref: g.ref, PipelineID: commit.pipeline}
	if len(in.TargetURL) > gitlabText {
		in.TargetURL = "" // a cut address leads nowhere
	}
	body, err := json.Marshal(in)
	if err != nil {
		return g.fault(nil, nil, err, "write statuses")
	}
	var job gitlabJob
	if _, err := g.call(ctx, http.MethodPost, "/statuses/"+url.PathEscape(sha), body, &job); err != nil {
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

// settle reads what became of a job that could not be changed. It is no error that
// the job has the state already.
func (g *GitLabWriter) settle(ctx context.Context, sha string, want CommitStatus, refusal *forgehttp.Error) error {
	has, err := g.Statuses(ctx, sha)
	if err != nil {
		return err
	}
	if has[want.Context].State == want.State {
		return nil
	}
	// It is something else, and known now: the next try asks for what follows it.
	refusal.Fault = forgehttp.FaultMissing
	return refusal
}

const (
	gitlabPageSize = 100
	gitlabPages    = 20
)

// Statuses lists a commit's statuses, the newest of each context.
func (g *GitLabWriter) Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error) {
	newest := map[string]gitlabJob{}
	for page := 1; page <= gitlabPages; page++ {
		query := url.Values{"per_page": {strconv.Itoa(gitlabPageSize)}, "page": {strconv.Itoa(page)}}
		var list []gitlabJob
		h, err := g.call(ctx, http.MethodGet, "/repository/commits/"+url.PathEscape(sha)+"/statuses?"+query.Encode(), nil, &list)
		if err != nil {
			return nil, err
		}
		for _, job := range list {
			if job.ID >= newest[job.Name].ID {
				newest[job.Name] = job
			}
		}
		if len(list) == 0 || h.Get("X-Next-Page") == "" {
			break
		}
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

// gitlabCommits bounds the commits of which something is known.
const gitlabCommits = 64

func (g *GitLabWriter) commit(sha string) *gitlabCommit {
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

// call makes one request. Its errors are *forgehttp.Error.
func (g *GitLabWriter) call(ctx context.Context, method, path string, body []byte, out any) (http.Header, error) {
	return g.ask(ctx, method, g.project+path, body, out, "write statuses")
}

// ask makes one request to do something, whose answer is not read where out is nil.
func (g *GitLabWriter) ask(ctx context.Context, method, address string, body []byte, out any, does string) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, g.fault(nil, nil, err, does)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.http.Do(req)
	if err != nil {
		return nil, g.fault(nil, nil, err, does)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		return nil, g.fault(resp, answer, err, does)
	}
	if out == nil {
		return resp.Header, nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return nil, g.fault(resp, nil, errors.New("the answer is not GitLab's"), does)
	}
	return resp.Header, nil
}

// fault makes a forgehttp.Error of an answer, or of why there is none.
func (g *GitLabWriter) fault(resp *http.Response, body []byte, err error, does string) error {
	e := &forgehttp.Error{Forge: string(g.Kind()), Fault: forgehttp.FaultBusy, Err: err}
	if err != nil {
		e.Message = forgehttp.Quote(err.Error())
		e.After = forgehttp.LimitedFor(err)
	}
	if resp == nil {
		return e
	}
	e.Status = resp.StatusCode
	if e.Status/100 == 2 {
		// The answer could not be read; whether the write took effect is open.
		return e
	}
	said := gitlabAnswer(body)
	e.Message = said.text
	if e.Message == "" {
		e.Message = http.StatusText(e.Status)
	}
	e.Fault, e.After = forgehttp.FaultOf(e.Status, resp.Header)
	switch {
	case e.Status == http.StatusUnauthorized:
		e.Message = "the token is not accepted (" + e.Message + "): it is wrong, expired or revoked"
	case e.Fault == forgehttp.FaultDenied && said.code == "insufficient_scope":
		e.Message = "the token may not " + does + " (" + e.Message + "): it needs the scope api"
	case e.Fault == forgehttp.FaultDenied:
		e.Message = "the token may not " + does + " (" + e.Message + "): it needs the scope api and the role Developer, or one that may push to the branch where it is protected"
	case e.Status == http.StatusNotFound && strings.Contains(e.Message, "Project"):
		e.Fault = forgehttp.FaultDenied
		e.Message = "the project " + g.name + " is not found (" + e.Message + "): the token's user must be a member with the role Developer, and the token have the scope api"
	case e.Status == http.StatusConflict:
		// Statuses of one pipeline that are written at the same time.
		e.Fault = forgehttp.FaultBusy
	}
	return e
}

// gitlabError is what an error of GitLab says: message may be a text, a list, or a
// mapping of fields; errors of authentication have OAuth's form.
type gitlabError struct{ code, text string }

func gitlabAnswer(body []byte) gitlabError {
	var in struct {
		Message     json.RawMessage `json:"message"`
		Error       string          `json:"error"`
		Description string          `json:"error_description"`
	}
	if json.Unmarshal(body, &in) != nil {
		return gitlabError{text: forgehttp.Quote(string(body))} // a proxy's page
	}
	text := string(in.Message)
	var plain string
	if json.Unmarshal(in.Message, &plain) == nil {
		text = plain
	}
	for _, more := range []string{in.Error, in.Description} {
		if more != "" {
			text = strings.TrimPrefix(text+": "+more, ": ")
		}
	}
	return gitlabError{code: in.Error, text: forgehttp.Quote(text)}
}

package forge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v84/github"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// GitHub writes commit statuses to GitHub or GitHub Enterprise Server.
type GitHubWriter struct {
	client      *github.Client
	owner, repo string
}

// NewGitHub returns a Forge for one repository on GitHub. The token needs
// permission "Commit statuses: read and write" (fine-grained, App) or scope
// repo:status (classic).
func NewGitHubWriter(o ClientOptions) (*GitHubWriter, error) {
	owner, repo, err := splitRepository(o.Repository)
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(o.URL, "/")
	if address == "" || address == "https://github.com" {
		base := &url.URL{Scheme: "https", Host: "api.github.com"}
		return &GitHubWriter{client: github.NewClient(o.client(base, forgehttp.Bearer)), owner: owner, repo: repo}, nil
	}
	base, err := forgehttp.ParseURL(address)
	if err != nil {
		return nil, err
	}
	client, err := github.NewClient(o.client(base, forgehttp.Bearer)).WithEnterpriseURLs(address, address)
	if err != nil {
		return nil, errors.New("read forge URL " + base.Redacted() + ": not a GitHub address")
	}
	return &GitHubWriter{client: client, owner: owner, repo: repo}, nil
}

// Limits are GitHub's: 140 characters of description, 255 of context, and
// 80 content-creating requests a minute, of which some are left to others.
// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
func (g *GitHubWriter) Limits() Limits { return Limits{Context: 255, Description: 140, PerMinute: 60} }

// SetStatus posts a status.
func (g *GitHubWriter) SetStatus(ctx context.Context, sha string, s CommitStatus) error {
	body := github.RepoStatus{
		State: github.Ptr(string(s.State)), Description: github.Ptr(s.Description), Context: github.Ptr(s.Context),
	}
	if s.TargetURL != "" {
		body.TargetURL = github.Ptr(s.TargetURL)
	}
	_, resp, err := g.client.Repositories.CreateStatus(ctx, g.owner, g.repo, sha, body)
	return g.fault(resp, err)
}

// githubPages bounds a listing: GitHub keeps at most 1,000 statuses of a commit
// and context.
const githubPages = 10

// Statuses lists a commit's statuses, which GitHub gives newest first.
func (g *GitHubWriter) Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error) {
	out := map[string]CommitStatus{}
	opts := &github.ListOptions{PerPage: 100}
	for range githubPages {
		list, resp, err := g.client.Repositories.ListStatuses(ctx, g.owner, g.repo, sha, opts)
		if err != nil {
			return nil, g.fault(resp, err)
		}
		for _, s := range list {
			if _, newer := out[s.GetContext()]; !newer {
				out[s.GetContext()] = CommitStatus{
					Context: s.GetContext(), State: CommitState(s.GetState()),
					Description: s.GetDescription(), TargetURL: s.GetTargetURL(),
				}
			}
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return out, nil
}

func (g *GitHubWriter) fault(resp *github.Response, err error) error {
	return g.faultOf(resp, err, grant{"write statuses", "the permission \"Commit statuses: read and write\"", "repo:status"})
}

func (g *GitHubWriter) faultOf(resp *github.Response, err error, to grant) error {
	if err == nil {
		return nil
	}
	e := &forgehttp.Error{Forge: string(g.Kind()), Fault: forgehttp.FaultBusy, Message: err.Error(), After: forgehttp.LimitedFor(err), Err: err}
	if resp != nil && resp.Response != nil {
		e.Status = resp.StatusCode
		e.Fault, e.After = forgehttp.FaultOf(resp.StatusCode, resp.Header)
	}
	var limit *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	var answer *github.ErrorResponse
	switch {
	case errors.As(err, &limit):
		e.Fault, e.Message = forgehttp.FaultBusy, "rate limit reached"
		e.After = min(max(time.Second, time.Until(limit.Rate.Reset.Time)), forgehttp.MaxRetryAfter)
	case errors.As(err, &abuse):
		e.Fault, e.Message = forgehttp.FaultBusy, "secondary rate limit reached"
		e.After = min(max(time.Minute, abuse.GetRetryAfter()), forgehttp.MaxRetryAfter)
		if abuse.RetryAfter != nil {
			e.After = min(abuse.GetRetryAfter(), forgehttp.MaxRetryAfter)
		}
	case errors.As(err, &answer):
		e.Message = answer.Message
		for _, detail := range answer.Errors {
			e.Message = strings.TrimSpace(e.Message + " " + detail.Message)
		}
	}
	g.advise(e, to)
	return e
}

// advise says what a person can do, and tells the two kinds of 422 apart: a
// commit that is not there yet, and a context that is full for ever.
func (g *GitHubWriter) advise(e *forgehttp.Error, to grant) {
	switch {
	case e.Status == http.StatusUnauthorized:
		e.Message = "the token is not accepted (" + e.Message + "): it is wrong, expired or revoked"
	case e.Fault == forgehttp.FaultDenied:
		e.Message = "the token may not " + to.does + " (" + e.Message + "): it needs " + to.permission + ", or the scope " + to.scope + " if it is a classic token"
	case e.Status == http.StatusNotFound:
		e.Fault = forgehttp.FaultDenied
		e.Message = "the repository " + g.owner + "/" + g.repo + " is not found (" + e.Message + "): the token must have access to it, with " + to.permission + " or the scope " + to.scope
	case e.Status == http.StatusUnprocessableEntity && strings.Contains(e.Message, "No commit found"):
		e.Fault = forgehttp.FaultMissing
	}
}

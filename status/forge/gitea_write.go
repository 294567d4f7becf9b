package forge

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// Gitea writes commit statuses to Gitea or Forgejo, whose API is the same here.
type GiteaWriter struct {
	base        string
	http        *http.Client
	owner, repo string
}

// NewGitea returns a Forge for one repository on Gitea or Forgejo. The token
// needs the scope write:repository.
func NewGiteaWriter(o ClientOptions) (*GiteaWriter, error) {
	owner, repo, err := splitRepository(o.Repository)
	if err != nil {
		return nil, err
	}
	base, err := forgehttp.ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	return &GiteaWriter{base: base.String(), http: o.client(base, forgehttp.Plain), owner: owner, repo: repo}, nil
}

// Limits keep to what every Gitea takes; none is documented.
func (g *GiteaWriter) Limits() Limits { return Limits{Context: 255, Description: 255} }

// client makes an SDK client for one call: the SDK keeps the context in the
// client. An empty version keeps it from asking the server for its own.
func (g *GiteaWriter) client(ctx context.Context) (*gitea.Client, error) {
	return gitea.NewClient(g.base, gitea.SetGiteaVersion(""), gitea.SetHTTPClient(g.http), gitea.SetContext(ctx))
}

// SetStatus posts a status.
func (g *GiteaWriter) SetStatus(ctx context.Context, sha string, s CommitStatus) error {
	client, err := g.client(ctx)
	if err != nil {
		return g.fault(nil, err)
	}
	_, resp, err := client.CreateStatus(g.owner, g.repo, sha, gitea.CreateStatusOption{
		State: gitea.StatusState(s.State), TargetURL: s.TargetURL, Description: s.Description, Context: s.Context,
	})
	return g.fault(resp, err)
}

const (
	giteaPageSize = 50 // the usual maximum of a server
	giteaPages    = 40
)

// Statuses lists a commit's statuses. Gitea orders them by whole seconds, so
// the highest id of a context is the newest.
func (g *GiteaWriter) Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error) {
	client, err := g.client(ctx)
	if err != nil {
		return nil, g.fault(nil, err)
	}
	out, newest := map[string]CommitStatus{}, map[string]int64{}
	seen := 0
	for page := 1; page <= giteaPages; page++ {
		list, resp, err := client.ListStatuses(g.owner, g.repo, sha, gitea.ListStatusesOption{
			ListOptions: gitea.ListOptions{Page: page, PageSize: giteaPageSize},
		})
		if err != nil {
			return nil, g.missing(client, g.fault(resp, err))
		}
		for _, s := range list {
			if s.ID >= newest[s.Context] {
				newest[s.Context] = s.ID
				out[s.Context] = CommitStatus{
					Context: s.Context, State: CommitState(s.State), Description: s.Description, TargetURL: s.TargetURL,
				}
			}
		}
		seen += len(list)
		total, err := strconv.Atoi(resp.Header.Get("X-Total-Count"))
		if more := resp.NextPage != 0 || err == nil && seen < total; len(list) == 0 || !more {
			break
		}
	}
	return out, nil
}

func (g *GiteaWriter) fault(resp *gitea.Response, err error) error {
	return g.faultOf(resp, err, grant{does: "write statuses", scope: "write:repository"})
}

// missing tells a commit that is not there yet from a repository that the token may
// not see: where statuses are read, Gitea says "not found" of both.
func (g *GiteaWriter) missing(client *gitea.Client, err error) error {
	var e *forgehttp.Error
	if !errors.As(err, &e) || e.Status != http.StatusNotFound || e.Fault != forgehttp.FaultDenied {
		return err
	}
	if _, _, asked := client.GetRepo(g.owner, g.repo); asked != nil {
		return err
	}
	return &forgehttp.Error{Forge: e.Forge, Fault: forgehttp.FaultMissing, Status: e.Status, Message: "the commit is not there yet", Err: e.Err}
}

func (g *GiteaWriter) faultOf(resp *gitea.Response, err error, to grant) error {
	if err == nil {
		return nil
	}
	e := &forgehttp.Error{Forge: string(g.Kind()), Fault: forgehttp.FaultBusy, Message: forgehttp.Quote(err.Error()), After: forgehttp.LimitedFor(err), Err: err}
	if resp == nil || resp.Response == nil {
		return e
	}
	e.Status = resp.StatusCode
	if e.Status/100 == 2 {
		// The answer could not be read; whether the write took effect is open.
		return e
	}
	e.Fault, e.After = forgehttp.FaultOf(resp.StatusCode, resp.Header)
	switch {
	case e.Status == http.StatusUnauthorized:
		e.Message = "the token is not accepted (" + e.Message + "): it is wrong, expired or revoked"
	case e.Fault == forgehttp.FaultDenied:
		e.Message = "the token may not " + to.does + " (" + e.Message + "): it needs the scope " + to.scope + " and its user write access"
	case e.Status == http.StatusNotFound && !strings.Contains(e.Message, "commit"):
		e.Fault = forgehttp.FaultDenied
		e.Message = "the repository " + g.owner + "/" + g.repo + " is not found (" + e.Message + "): the token's user must have access to it, and the token the scope " + to.scope
	}
	return e
}

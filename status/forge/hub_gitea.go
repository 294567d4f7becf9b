package forge

import (
	"context"
	"errors"
	"net/http"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// withoutPulls says why Gitea has no list of pull requests. It answers 404 where
// they are turned off, and also while nothing was pushed yet, and a moment longer:
// then there are none.
func (h *hub) withoutPulls(ctx context.Context, err error) error {
	var refusal *forgehttp.Error
	if !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound {
		return err
	}
	var repository struct {
		Empty bool  `json:"empty"`
		Pulls *bool `json:"has_pull_requests"`
	}
	_, asked := h.do(ctx, ask{method: http.MethodGet, path: h.repo, need: h.theRepository("read the repository", h.canRead)}, into(&repository))
	switch {
	case asked != nil:
		return err
	case repository.Empty:
		return nil
	case repository.Pulls != nil && !*repository.Pulls:
		return &forgehttp.Error{Forge: string(h.kind), Fault: forgehttp.FaultDenied, Status: refusal.Status, Message: "pull requests are turned off in the settings of " + h.name + ": turn them on there, or write pullRequests: {plan: never}"}
	default:
		return err
	}
}

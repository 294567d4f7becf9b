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

// Permission is what a user's role in the repository is. A role that an
// organisation made itself counts as the one that it is based on.
// https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user
func (h *hub) Permission(ctx context.Context, user string) (Level, error) {
	if !plausible(user) {
		return None, nil
	}
	var in struct {
		Permission string   `json:"permission"`
		Role       string   `json:"role_name"`
		User       *hubUser `json:"user"`
	}
	_, err := h.do(ctx, ask{
		method: http.MethodGet, path: h.repo + "/collaborators/" + url.PathEscape(user) + "/permission",
		need: h.thePerson(user, h.canAskLevel),
	}, into(&in))
	var refusal *forgehttp.Error
	switch {
	case errors.As(err, &refusal) && refusal.Status == http.StatusNotFound:
		return None, nil
	case err != nil:
		return None, err
	case in.User != nil && !strings.EqualFold(in.User.Login, user):
		return None, nil // it is about somebody else
	}
	if level, ok := hubLevels[in.Role]; ok && h.kind == GitHub {
		return level, nil
	}
	return hubLevels[in.Permission], nil
}

func (h *hub) thePerson(user, grant string) need {
	return need{does: "ask what a user may do", grant: grant, thing: "the user " + user}
}

var hubLevels = map[string]Level{
	"none": None, "read": Read, "triage": Triage, "write": Write, "maintain": Maintain, "admin": Admin, "owner": Admin,
}

// React marks a comment.
func (h *hub) React(ctx context.Context, number, comment int64, r Reaction) error {
	_, err := h.do(ctx, ask{
		method: http.MethodPost, path: fmt.Sprintf("%s/issues/comments/%d/reactions", h.repo, comment), body: map[string]string{"content": string(r)},
		need: h.thePull("react to comments", h.canWrite, number),
	}, nil)
	var refusal *forgehttp.Error
	if errors.As(err, &refusal) && strings.Contains(refusal.Message, "not an allowed reaction") {
		return nil // Gitea's administrator chooses which there are
	}
	return err
}

// Reply writes a comment.
func (h *hub) Reply(ctx context.Context, number int64, body string) error {
	_, err := h.do(ctx, ask{
		method: http.MethodPost, path: fmt.Sprintf("%s/issues/%d/comments", h.repo, number), body: map[string]string{"body": body},
		need: h.thePull("write comments", h.canWrite, number),
	}, nil)
	return err
}

// Self is the token's user. The token of an App's installation has none: who it
// writes as, GraphQL tells.
func (h *hub) Self(ctx context.Context) (string, error) {
	h.mu.Lock()
	known := h.self
	h.mu.Unlock()
	if known != "" {
		return known, nil
	}
	need := need{does: "ask who it is", grant: h.canAskSelf, thing: "the token's user"}
	var user hubUser
	_, err := h.do(ctx, ask{method: http.MethodGet, path: "/user", need: need}, into(&user))
	var refusal *forgehttp.Error
	if errors.As(err, &refusal) && refusal.Status == http.StatusForbidden && refusal.Fault == forgehttp.FaultDenied && h.graphql != "" {
		var in struct {
			Data struct {
				Viewer hubUser `json:"viewer"`
			} `json:"data"`
		}
		q := ask{method: http.MethodPost, address: h.graphql, body: map[string]string{"query": "query{viewer{login}}"}, need: need}
		if _, err = h.do(ctx, q, into(&in)); err == nil {
			user = in.Data.Viewer
		}
	}
	if err != nil {
		return "", err
	}
	if user.Login == "" {
		return "", &forgehttp.Error{Forge: string(h.kind), Fault: forgehttp.FaultDenied, Message: "the forge does not say whose token it is: it needs " + h.canAskSelf}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.self = user.Login
	return user.Login, nil
}

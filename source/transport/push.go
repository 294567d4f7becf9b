package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/weir-gitops/weir/source/fault"
)

// OwnBranches is the prefix of all branches that weir creates.
const OwnBranches = "weir/"

// pushScopes names the permissions that a token needs to push, in the terms of each forge.
const pushScopes = "a token that pushes needs write:repository on Gitea and Forgejo, write_repository and the role Developer on GitLab, Contents: read and write on GitHub, and its user must be allowed to create branches " + OwnBranches + "*"

// Branch is a branch to create or to advance.
type Branch struct {
	// Name is the name of the branch, such as weir/revert-0123456789ab.
	Name string
	// Commit is the new commit of the branch. Pack has the objects that the server may not have.
	Commit string
	Pack   []byte
	// After is the current commit of the branch, an ancestor of Commit. It is empty for a new branch.
	After string
}

// TakenError means that a branch with that name exists at another commit.
type TakenError struct{ Name, At string }

// Error returns a message with the name of the branch.
func (e *TakenError) Error() string {
	return fmt.Sprintf("the branch %s already exists at %s, which weir did not push", e.Name, e.At)
}

// RefusedError means that a server refused a branch. Said is the server's message.
type RefusedError struct{ Name, Said string }

// Error returns a message that quotes the server.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server refuses the branch %s: %s", e.Name, e.Said)
}

// Pusher creates branches of weir's own in a repository, over HTTP(S), and advances them to descendants of
// their commits. It cannot overwrite or delete a branch. Each of its commands contains the current commit of
// the branch, or that the branch must not exist yet, and the server checks that.
type Pusher struct{ remote *httpRemote }

// NewPusher returns a Pusher for the repository at an address, with the credentials in cfg.
func NewPusher(address string, cfg Settings) (*Pusher, error) {
	loc, err := Parse(address)
	if err != nil {
		return nil, err
	}
	if loc.http == nil {
		return nil, fault.New(fault.RefusedURL, "weir pushes over http(s) only")
	}
	r, err := newHTTPRemote(loc, cfg)
	if err != nil {
		return nil, err
	}
	return &Pusher{r}, nil
}

// Close releases connections.
func (p *Pusher) Close() { p.remote.Close() }

// At returns the current commit of one of weir's branches. It is empty if the branch does not exist.
func (p *Pusher) At(ctx context.Context, branch string) (string, error) {
	name, err := ownBranch(branch)
	if err != nil {
		return "", err
	}
	_, adv, err := p.connect(ctx, name)
	if err != nil {
		return "", err
	}
	if at, there := adv.References[name.String()]; there {
		return at.String(), nil
	}
	return "", nil
}

// ownBranch returns the ref of one of weir's branches.
func ownBranch(branch string) (plumbing.ReferenceName, error) {
	name := plumbing.NewBranchReferenceName(branch)
	if !strings.HasPrefix(branch, OwnBranches) || name.Validate() != nil {
		return "", fault.New(fault.MissingRef, "%q is not a branch that weir makes", fault.Plain(branch))
	}
	return name, nil
}

// connect asks the server for the current commit of a branch and its capabilities.
func (p *Pusher) connect(ctx context.Context, name plumbing.ReferenceName) (transport.ReceivePackSession, *packp.AdvRefs, error) {
	auth, _, err := p.remote.auth.method(ctx)
	if err != nil {
		return nil, nil, err
	}
	ep, err := transport.NewEndpoint(p.remote.url)
	if err != nil {
		return nil, nil, fault.New(fault.RefusedURL, "%s: %v", p.remote.host, err)
	}
	s := &Session{Host: p.remote.host, overhead: overhead{left: maxOverheadBytes}}
	seen := &observer{base: p.remote.rt, keep: func(ref string, _ Capabilities) bool { return ref == name.String() }, session: s, service: transport.ReceivePackServiceName}
	receive, err := githttp.NewClient(&http.Client{Transport: seen, CheckRedirect: checkRedirect}).NewReceivePackSession(ep, auth)
	if err != nil {
		return nil, nil, fault.New(fault.RefusedURL, "%s: %v", p.remote.host, err)
	}
	adv, err := receive.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, nil, p.remote.explain(ctx, err, pushScopes)
	}
	return receive, adv, nil
}

// Make creates a branch, or advances it from its expected commit. It succeeds if the branch is already at the
// new commit, because an earlier response may have been lost. If the branch is at another commit, it returns
// a *TakenError.
func (p *Pusher) Make(ctx context.Context, b Branch) error {
	name, err := ownBranch(b.Name)
	if err != nil {
		return err
	}
	if !plumbing.IsHash(b.Commit) || b.After != "" && !plumbing.IsHash(b.After) {
		return fault.New(fault.MissingRef, "%q is not a commit", fault.Plain(b.Commit))
	}
	receive, adv, err := p.connect(ctx, name)
	if err != nil {
		return err
	}
	old := plumbing.NewHash(b.After) // the zero hash means that the branch does not exist
	if at, there := adv.References[name.String()]; there && at.String() == b.Commit {
		return nil
	} else if there && at != old || !there && !old.IsZero() {
		return &TakenError{Name: b.Name, At: at.String()}
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	said := &firstBytes{}
	if adv.Capabilities.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return fmt.Errorf("push: %w", err)
		}
		req.Progress = said
	}
	req.Commands = []*packp.Command{{Name: name, Old: old, New: plumbing.NewHash(b.Commit)}}
	req.Packfile = io.NopCloser(bytes.NewReader(b.Pack))
	report, err := receive.ReceivePack(ctx, req)
	switch {
	case report != nil && err != nil: // the server's own result
		return &RefusedError{Name: b.Name, Said: fault.Plain(strings.TrimSpace(err.Error() + " " + said.text.String()))}
	case err != nil:
		return p.remote.explain(ctx, err, pushScopes)
	case report == nil:
		return errors.Join(fault.New(fault.Unreachable, "%s does not report the result of the push", p.remote.host), ctx.Err())
	}
	return nil
}

// firstBytes keeps the first written bytes.
type firstBytes struct{ text bytes.Buffer }

func (f *firstBytes) Write(p []byte) (int, error) {
	f.text.Write(p[:min(len(p), maxErrorBody-min(maxErrorBody, f.text.Len()))])
	return len(p), nil
}

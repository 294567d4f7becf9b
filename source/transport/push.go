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

// OwnBranches begins the names of the branches that weir makes. It makes no others.
const OwnBranches = "weir/"

// pushScopes is what a token needs that pushes, in each forge's words.
const pushScopes = "a token that pushes needs write:repository on Gitea and Forgejo, write_repository and the role Developer on GitLab, Contents: read and write on GitHub, and its user may not be kept from making branches " + OwnBranches + "*"

// Branch is a branch to be made.
type Branch struct {
	// Name is that of the branch, such as weir/revert-0123456789ab.
	Name string
	// Commit is what it is to be at, Pack the objects that its server may not have.
	Commit string
	Pack   []byte
}

// TakenError says that there is a branch of that name, at another commit.
type TakenError struct{ Name, At string }

// Error names the branch.
func (e *TakenError) Error() string {
	return fmt.Sprintf("the branch %s is there already, at %s, which weir did not push", e.Name, e.At)
}

// RefusedError says that a server does not make a branch, in its own words.
type RefusedError struct{ Name, Said string }

// Error is what the server said.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server refuses the branch %s: %s", e.Name, e.Said)
}

// Pusher makes branches of weir's own in one repository, over HTTP(S). It cannot move,
// overwrite or delete one: each of its commands says that there is none yet, which the
// server checks.
type Pusher struct{ remote *httpRemote }

// NewPusher is one for the repository at an address, with the credentials in cfg.
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

// Make makes a branch. One that is there at its commit already counts as made: an answer
// may have been lost. One at another commit is a *TakenError.
func (p *Pusher) Make(ctx context.Context, b Branch) error {
	name := plumbing.NewBranchReferenceName(b.Name)
	if !strings.HasPrefix(b.Name, OwnBranches) || name.Validate() != nil || !plumbing.IsHash(b.Commit) {
		return fault.New(fault.MissingRef, "%q is no branch that weir makes", fault.Plain(b.Name))
	}
	auth, _, err := p.remote.auth.method(ctx)
	if err != nil {
		return err
	}
	ep, err := transport.NewEndpoint(p.remote.url)
	if err != nil {
		return fault.New(fault.RefusedURL, "%s: %v", p.remote.host, err)
	}
	s := &Session{Host: p.remote.host, overhead: overhead{left: maxOverheadBytes}}
	seen := &observer{base: p.remote.rt, keep: func(ref string, _ Capabilities) bool { return ref == name.String() }, session: s, service: transport.ReceivePackServiceName}
	receive, err := githttp.NewClient(&http.Client{Transport: seen, CheckRedirect: checkRedirect}).NewReceivePackSession(ep, auth)
	if err != nil {
		return fault.New(fault.RefusedURL, "%s: %v", p.remote.host, err)
	}
	adv, err := receive.AdvertisedReferencesContext(ctx)
	if err != nil {
		return p.remote.explain(ctx, err, pushScopes)
	}
	if at, there := adv.References[name.String()]; there {
		if at.String() == b.Commit {
			return nil
		}
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
	req.Commands = []*packp.Command{{Name: name, Old: plumbing.ZeroHash, New: plumbing.NewHash(b.Commit)}}
	req.Packfile = io.NopCloser(bytes.NewReader(b.Pack))
	report, err := receive.ReceivePack(ctx, req)
	switch {
	case report != nil && err != nil: // the server's own verdict
		return &RefusedError{Name: b.Name, Said: fault.Plain(strings.TrimSpace(err.Error() + " " + said.text.String()))}
	case err != nil:
		return p.remote.explain(ctx, err, pushScopes)
	case report == nil:
		return errors.Join(fault.New(fault.Unreachable, "%s does not say what became of the push", p.remote.host), ctx.Err())
	}
	return nil
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct{ text bytes.Buffer }

func (f *firstBytes) Write(p []byte) (int, error) {
	f.text.Write(p[:min(len(p), maxErrorBody-min(maxErrorBody, f.text.Len()))])
	return len(p), nil
}

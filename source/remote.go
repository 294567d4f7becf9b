package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// remote is a repository behind smart HTTP. It uses go-git's HTTP client
// directly, one per session, so that neither go-git's process-wide registry of
// protocols nor its list of unsupported capabilities is touched.
type remote struct {
	url  string
	host string
	auth Auth
	rt   *http.Transport
}

func newRemote(loc location, cfg Config) (*remote, error) {
	if err := cfg.Auth.validate(); err != nil {
		return nil, fmt.Errorf("configure source %s: %w", cfg.Name, err)
	}
	rt, err := NewTransport(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure source %s: %w", cfg.Name, err)
	}
	return &remote{url: loc.http.String(), host: displayURL(loc.http), auth: cfg.Auth, rt: rt}, nil
}

// session is one exchange with the server: its refs, then at most one pack.
type session struct {
	remote *remote
	seen   *observer
	up     transport.UploadPackSession
	adv    *packp.AdvRefs
}

// connect asks the server for its refs.
func (r *remote) connect(ctx context.Context) (*session, error) {
	auth, err := r.auth.method()
	if err != nil {
		return nil, err
	}
	ep, err := transport.NewEndpoint(r.url)
	if err != nil {
		return nil, faultf(RefusedURL, "%s: %v", r.host, err)
	}
	s := &session{remote: r, seen: &observer{base: r.rt}}
	client := githttp.NewClient(&http.Client{Transport: s.seen, CheckRedirect: checkRedirect})
	if s.up, err = client.NewUploadPackSession(ep, auth); err != nil {
		return nil, faultf(RefusedURL, "%s: %v", r.host, err)
	}
	if s.adv, err = s.up.AdvertisedReferencesContext(ctx); err != nil {
		return nil, s.fault(ctx, err)
	}
	return s, nil
}

// fault gives an error of go-git's client its reason. The body of a refusal is
// dropped: it comes from outside and says nothing that the status does not.
func (s *session) fault(ctx context.Context, err error) error {
	host := s.remote.host
	var unexpected *plumbing.UnexpectedError
	if errors.As(err, &unexpected) {
		err = unexpected.Err // It does not unwrap by itself.
	}
	var status *githttp.Err
	switch {
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return &fault{reason: EmptyRepository, text: host + " has no commit yet", err: transport.ErrEmptyRemoteRepository}
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return &fault{reason: AuthFailed, text: host + " asks for credentials, or does not take these (401)", err: transport.ErrAuthenticationRequired}
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return &fault{reason: AuthFailed, text: host + " refuses access (403)", err: transport.ErrAuthorizationFailed}
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return &fault{reason: NotFound, text: host + " is not there (404)", err: transport.ErrRepositoryNotFound}
	case errors.As(err, &status):
		return faultf(Unreachable, "%s answers %d %s", host, status.StatusCode(), http.StatusText(status.StatusCode()))
	}
	return networkFault(ctx, host, err)
}

// target is what a ref selects among what the server lists.
type target struct {
	ref string
	// hash is what must be here in the end; wants is what to ask the server for.
	hash  plumbing.Hash
	wants []plumbing.Hash
}

// selectRef finds what ref names now.
func (s *session) selectRef(ref Ref) (target, error) {
	if ref.Commit != "" {
		return s.selectCommit(ref.Commit), nil
	}
	name := ref.fullName()
	if name == "" {
		return s.selectHead()
	}
	h, ok := s.adv.References[name]
	if !ok {
		return target{}, missingRef(s.remote.host, name)
	}
	return target{ref: name, hash: h, wants: []plumbing.Hash{h}}, nil
}

func missingRef(where, name string) error {
	return faultf(MissingRef, "%s has no %s; push it, or change the source's ref", where, name)
}

// selectHead follows the branch that HEAD names; a detached HEAD names a commit.
func (s *session) selectHead() (target, error) {
	if s.adv.Head == nil {
		return target{}, faultf(MissingRef, "HEAD of %s names a branch that does not exist; set ref.branch", s.remote.host)
	}
	t := target{ref: plumbing.HEAD.String(), hash: *s.adv.Head, wants: []plumbing.Hash{*s.adv.Head}}
	if branch := s.seen.capability("symref=HEAD:"); branch != "" && s.adv.References[branch] == t.hash {
		t.ref = branch
	}
	return t, nil
}

// selectCommit asks for the commit by name where the server lists it or allows
// that, else for all branches and tags, one of which should contain it.
func (s *session) selectCommit(commit string) target {
	h := plumbing.NewHash(commit)
	t := target{ref: commit, hash: h, wants: []plumbing.Hash{h}}
	for _, c := range []string{"allow-tip-sha1-in-want", "allow-reachable-sha1-in-want", "allow-any-sha1-in-want"} {
		if s.seen.supports(c) {
			return t
		}
	}
	all := map[plumbing.Hash]bool{}
	for name, tip := range s.adv.References {
		if tip == h {
			return t
		}
		if n := plumbing.ReferenceName(name); n.IsBranch() || n.IsTag() {
			all[tip] = true
		}
	}
	t.wants = t.wants[:0]
	for tip := range all {
		t.wants = append(t.wants, tip)
	}
	plumbing.HashesSort(t.wants)
	return t
}

// pack asks for wants and writes the pack to w.
func (s *session) pack(ctx context.Context, wants, haves []plumbing.Hash, w io.Writer) (err error) {
	req := packp.NewUploadPackRequestFromCapabilities(s.adv.Capabilities)
	// go-git's filter drops these two, and Azure DevOps and CodeCommit send
	// nothing without one of them.
	for _, c := range []capability.Capability{capability.MultiACKDetailed, capability.MultiACK} {
		if s.seen.supports(c.String()) {
			if err := req.Capabilities.Set(c); err != nil {
				return fmt.Errorf("ask for a pack: %w", err)
			}
			break
		}
	}
	req.Wants, req.Haves = wants, haves
	resp, err := s.up.UploadPack(ctx, req)
	if err != nil {
		return s.fault(ctx, err)
	}
	defer func() { _ = resp.Close() }() // All that matters was read.
	if _, err := io.Copy(w, demux(req.Capabilities, resp)); err != nil {
		return s.fault(ctx, err)
	}
	return nil
}

func demux(caps *capability.List, r io.Reader) io.Reader {
	switch {
	case caps.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case caps.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	default:
		return r
	}
}

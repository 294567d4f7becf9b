package transport

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/weir-gitops/weir/source/fault"
)

// Remote is a repository on a server.
type Remote interface {
	// Connect asks the server for its refs. The session has the refs that keep selects for a server with
	// these capabilities, HEAD, and maybe one more. The caller must close the session.
	Connect(ctx context.Context, keep refChoice) (*Session, error)
	// Close closes idle connections.
	Close()
}

func New(loc Location, cfg Settings) (Remote, error) {
	if loc.ssh != nil {
		return newSSHRemote(loc, cfg)
	}
	return newHTTPRemote(loc, cfg)
}

// refChoice reports whether a ref with the given full name is needed.
type refChoice func(name string, caps Capabilities) bool

// Session is an exchange with the server: its refs, then at most one pack.
type Session struct {
	// Host is the repository's address without secrets.
	Host string
	Adv  *packp.AdvRefs
	// Caps are the server's capabilities as it reported them. go-git's own list omits some.
	Caps Capabilities
	// Shallow is true if the server has only a part of the history.
	Shallow  bool
	up       uploader
	overhead overhead
}

// uploader requests packs.
type uploader interface {
	UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	// explain adds the reason to an error of UploadPack, or of reading its result. ctx is the context of the
	// operation with its deadline.
	explain(ctx context.Context, err error) error
	close()
}

func (s *Session) Close() { s.up.close() }

// Capabilities are the features that a server reports after its first ref.
type Capabilities []string

// Value returns the remainder of the first capability with the given prefix.
func (c Capabilities) Value(prefix string) string {
	for _, have := range c {
		if v, ok := strings.CutPrefix(have, prefix); ok {
			return v
		}
	}
	return ""
}

func (c Capabilities) Has(name string) bool {
	for _, have := range c {
		if have == name {
			return true
		}
	}
	return false
}

// checkFormat refuses formats of object names that go-git cannot read.
func (c Capabilities) checkFormat() error {
	if format := c.Value("object-format="); format != "" && format != "sha1" {
		return fault.New(fault.Unsupported, "the repository uses the object format %s; only sha1 is supported", fault.Plain(format))
	}
	return nil
}

// Pack requests the commits wants and writes the pack to w.
func (s *Session) Pack(ctx context.Context, wants, haves []plumbing.Hash, w io.Writer) (err error) {
	req := packp.NewUploadPackRequestFromCapabilities(s.Adv.Capabilities)
	// go-git's filter removes these two, but Azure DevOps and CodeCommit send nothing without one of them.
	for _, c := range []capability.Capability{capability.MultiACKDetailed, capability.MultiACK} {
		if s.Caps.Has(c.String()) {
			if err := req.Capabilities.Set(c); err != nil {
				return fmt.Errorf("ask for a pack: %w", err)
			}
			break
		}
	}
	req.Wants, req.Haves = wants, haves
	resp, err := s.up.UploadPack(ctx, req)
	if s.overhead.left < 0 {
		err = errOverhead // go-git preserves only the text of the error
	}
	if err != nil {
		return s.up.explain(ctx, err)
	}
	defer func() { _ = resp.Close() }() // all needed data was read
	_, err = io.Copy(s.arriving(ctx, w), demux(req.Capabilities, resp))
	if err == nil {
		err = ctx.Err() // a cancelled connection ends like a closed one
	}
	if err != nil {
		return s.up.explain(ctx, err)
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

// GivesHidden reports whether the server serves commits whose refs it does not list.
func (s *Session) GivesHidden() bool {
	for _, c := range []string{"allow-tip-sha1-in-want", "allow-reachable-sha1-in-want", "allow-any-sha1-in-want"} {
		if s.Caps.Has(c) {
			return true
		}
	}
	return false
}
